import type { Loaded } from "../../src/core/config"
import { recentLines } from "../../src/core/log"
import type { Secrets } from "../../src/core/secrets"
import type { BeginMode } from "../../src/store/database-file"
import type { Store } from "../../src/store/store"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { fields } from "../lib/table"
import { type BeginOptions, begins, dataSettings, type LocalOptions, sameData } from "./settings"
import { atData } from "./start-errors"
import { enterMigration, requireNoUpgrade } from "./upgrade-entry"

/** Makes master key, account, project and key where there is none. A second time changes nothing. */
export const init: Action<BeginOptions> = async (context, options) => {
  if (context.flags.dryRun)
    throw usage("--dry-run is not possible with this command", "see `migrate --dry-run`")
  const loaded = dataSettings(context.flags, options)
  const first = await withStore(
    loaded,
    { begin: begins(options), waits: true },
    async (store, secrets) => {
      const { ensureFirst } = await import("../../src/tenancy/setup")
      return await ensureFirst(store, await secrets(), { keep_key: false, new_key: false })
    },
  )
  const { data_dir } = loaded.values
  const { key_id: _, ...told } = first
  const record = { ...told, data_dir }
  const { output, paint } = context
  const human = () => {
    if (!first.created) {
      return `${paint.green("✓")} set up before; nothing was changed (${data_dir})`
    }
    const made = fields(
      [
        ["account", first.account_id],
        ["project", first.project_id],
        ["API key", first.api_key],
        ["data", data_dir],
      ],
      paint,
    )
    return `${paint.green("✓")} created; the key cannot be shown again:\n${made}`
  }
  await output.record(record, human, first.api_key ?? "") // with --quiet too: it is shown this once
  await output.next(`belfry serve${sameData(options)}`)
}

interface MigrateOptions extends LocalOptions {
  /** The upgrade that this migration belongs to. */
  upgrade?: string
}

/** Opening the store migrates it; this tells what that did, or with --dry-run would do. */
export const migrate: Action<MigrateOptions> = async (context, options) => {
  const loaded = dataSettings(context.flags, options)
  const engine = loaded.values.database_url ? "postgres" : "sqlite"
  const { output, paint } = context
  if (context.flags.dryRun) {
    const pending = await pendingIn(loaded)
    await output.record({ engine, pending }, () =>
      pending.length === 0
        ? `${engine}: nothing to do, the schema is up to date`
        : `${engine}: would apply ${pending.join(", ")}`,
    )
    if (pending.length > 0) await output.next(`belfry migrate${sameData(options)}`)
    return undefined
  }
  if (options.upgrade !== undefined) enterMigration(loaded.values.data_dir, options.upgrade)
  // On Postgres the url names an empty database on purpose; a folder may be named by mistake.
  const begin = engine === "postgres" ? "if_new" : "never"
  // Also without --upgrade: the upgrade command of an earlier version gives none.
  await withStore(loaded, { begin, waits: true, in_upgrade: true }, async () => {})
  const applied = appliedMigrations()
  await output.record({ engine, applied }, () =>
    applied.length === 0
      ? `${paint.green("✓")} ${engine}: nothing to do, the schema is up to date`
      : `${paint.green("✓")} ${engine}: applied ${applied.join(", ")}`,
  )
}

const pendingIn = (loaded: Loaded): Promise<string[]> =>
  atData(loaded, async () => {
    const { pendingMigrations } = await import("../../src/store/open")
    return pendingMigrations(loaded.values)
  })

interface WithStoreOptions {
  begin: BeginMode
  /** For a Postgres that starts together with this command. */
  waits?: boolean
  /** Also while an upgrade is not over. */
  in_upgrade?: boolean
}

export const withStore = <Result>(
  loaded: Loaded,
  { begin, waits = false, in_upgrade = false }: WithStoreOptions,
  act: (store: Store, secrets: () => Promise<Secrets>) => Promise<Result>,
): Promise<Result> =>
  atData(loaded, async () => {
    const { values } = loaded
    const { openSecretsFor } = await import("../../src/operations/instance")
    const { BOOT_PATIENCE_MS, openStore } = await import("../../src/store/open")
    const { startRouting } = await import("../../src/webhooks/route-events")
    startRouting() // an act without a server, such as a purge of held work, is told to endpoints, too
    const patience_ms = waits ? BOOT_PATIENCE_MS : 0
    const store = await openStore(values, { begin, patience_ms })
    try {
      if (!in_upgrade) await requireNoUpgrade(values)
      const makes = begin !== "never"
      return await act(store, () => openSecretsFor(store, values, { makes }))
    } finally {
      await store.close()
    }
  })

/**
 * The store logs the migrations that it applied, and the log keeps its last lines at every level.
 */
function appliedMigrations(): string[] {
  return recentLines().flatMap((line) => {
    const { message, tags } = JSON.parse(line) as { message?: string; tags?: string[] }
    return message === "migrations applied" ? (tags ?? []) : []
  })
}
