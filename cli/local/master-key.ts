import { randomBytes } from "node:crypto"
import type { RotatedKey } from "../../src/operations/master-key"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { readText } from "../lib/input"
import { confirm } from "../lib/prompts"
import { fields, wide } from "../lib/table"
import { runOrder } from "./admin-socket"
import { withStore } from "./init"
import { dataSettings, type LocalOptions } from "./settings"

interface RotateFlags extends LocalOptions {
  masterKey?: string
  endLinks?: boolean
}

/**
 * Rotates the master key: by the running server, or by this command when no server runs. A rotation that
 * was stopped goes on. The key itself is never shown.
 */
export const rotate: Action<RotateFlags> = async (context, options) => {
  const { masterKey, endLinks = false } = options
  const { output, paint } = context
  output.promises(["from", "to", "resealed"])
  if (endLinks) {
    const what = "Links and addresses in mail that was sent, and recovery codes, will stop working."
    await confirm(context, what, "rotate")
  }
  const new_key =
    masterKey === undefined ? null : (await readText(masterKey, "--master-key")).trim()
  output.passing("sealing all secrets with the new key")
  try {
    const order = { operation: "rotate_master_key", new_key, end_links: endLinks } as const
    const rotated = await runOrder<RotatedKey & Record<string, unknown>>(context, options, order)
    output.passing("")
    const lines = [
      ["old key", rotated.from],
      ["new key", rotated.to],
      ["values", String(rotated.resealed)],
    ] as const
    await output.record(
      rotated,
      () => `${paint.green("✓")} the master key was rotated:\n${fields(lines, paint)}`,
      rotated.to,
    )
    await output.note(AFTERWARDS)
  } catch (error) {
    output.passing("")
    throw error
  }
}

const AFTERWARDS =
  "Keep a copy of the new key apart from the backups. If security.master_key is set, give it the key of " +
  "master.key.next. Older backups need the old key (master.key.old)."

interface LostFlags extends LocalOptions {
  accept?: boolean
}

/** Lists the secrets that the key at hand cannot open. With `--accept` the instance goes on without them. */
export const lostKey: Action<LostFlags> = async (context, options) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  const { output } = context
  output.promises(["column", "what", "count", "remedy"])
  if (options.accept) {
    const what =
      "Secrets that do not open will be dropped. If the old key may still be found, stop here."
    await confirm(context, what, "accept")
  }
  const loaded = dataSettings(context.flags, options)
  const { data_dir, "security.master_key": master_key } = loaded.values
  const lost = await withStore(loaded, { begin: "never" }, async (store) => {
    const { MasterKeyError, openSecrets } = await import("../../src/core/secrets")
    const { acceptLostKey, lostSecrets } = await import("../../src/operations/master-key")
    if (options.accept) return acceptLostKey(store, openSecrets({ data_dir, master_key }))
    try {
      return await lostSecrets(store, openSecrets({ data_dir, master_key, make: false }))
    } catch (error) {
      if (!(error instanceof MasterKeyError)) throw error
      const none = randomBytes(32).toString("base64") // opens nothing
      return lostSecrets(store, openSecrets({ data_dir, master_key: none }))
    }
  })
  await output.list(
    lost.map((row) => ({ ...row })),
    {
      LOST: ({ count }) => String(count),
      WHAT: wide(({ what }) => what),
      REMEDY: wide(({ remedy }) => remedy),
    },
  )
  if (!options.accept && lost.length > 0) await output.next("belfry admin lost-key --accept")
}
