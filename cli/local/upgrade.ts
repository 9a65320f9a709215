import { statSync } from "node:fs"
import { type Loaded, useSettings } from "../../src/core/config"
import { monotonic } from "../../src/core/time"
import { lockUpgrade } from "../../src/operations/upgrade/exchange"
import { readJournal } from "../../src/operations/upgrade/journal"
import type { Action, Context } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { pause } from "../lib/time"
import { isCompiled } from "./own-binary"
import { serverOf } from "./server-process"
import { localSettings } from "./settings"
import { startFailure } from "./start-errors"
import { guardUpgrade } from "./upgrade-guard"
import { endTrial, endUpgrade } from "./upgrade-recovery"
import { type UpgradeOptions, type UpgradeRecord, upgradeNow } from "./upgrade-work"

const LOCK_MILLISECONDS = 3000
const LOOK_MILLISECONDS = 100

const FIELDS = ["from_version", "to_version", "platform", "key_id", "migrations", "done"]

/**
 * Puts a newer release in the place of this program. Signature, backup and trial come before anything is
 * stopped; whatever fails afterwards brings the old program and its database back.
 */
export const upgrade: Action<UpgradeOptions> = async (context, options, source = "") => {
  if (context.flags.dryRun)
    throw usage("--dry-run is not possible with this command", "use --check")
  context.output.promises([...FIELDS, "downtime_ms"])
  if (!isCompiled()) throw usage("Only the compiled binary can be upgraded.", "update the sources")
  const loaded = settingsOfServer(context, options)
  useSettings(loaded)
  const { data_dir } = loaded.values
  if (options.guard) return guardUpgrade(loaded.values)
  await demandData(loaded)
  demandUser(data_dir)
  const release = await lockSoon(data_dir)
  try {
    await endLeftOver(loaded)
    const record = await upgradeNow({ context, options, loaded, source })
    await tell(context, record)
    return exits.done
  } finally {
    release()
  }
}

/** What watches over an upgrade of before, or a server that starts, may have the lock for a moment. */
async function lockSoon(data_dir: string): Promise<() => void> {
  const deadline = monotonic() + LOCK_MILLISECONDS
  for (;;) {
    const release = lockUpgrade(data_dir)
    if (release) return release
    if (monotonic() > deadline)
      throw new Failure(exits.conflict, "running", `An upgrade of ${data_dir} is running.`)
    await pause(LOOK_MILLISECONDS)
  }
}

/** With the environment of the server that runs: the database may be named there alone. */
function settingsOfServer({ flags }: Context, options: UpgradeOptions): Loaded {
  const defaults = { "log.level": "warn" } as const
  const own = localSettings(flags, options, defaults)
  const { data_dir } = own.values
  const server = serverOf(data_dir)
  if (!server) return own
  return localSettings(flags, { ...options, dataDir: data_dir }, defaults, server.environment)
}

/** An upgrade makes no folder and no database. */
async function demandData({ values }: Loaded): Promise<void> {
  const { hasBegun } = await import("../../src/store/open")
  const { nothingIn } = await import("../../src/store/database-file")
  if (!hasBegun(values)) throw startFailure(nothingIn(values.data_dir), { listen: "", ...values })
}

/**
 * Throws Failure for another user than that of the server: files of an upgrade that the server may not read
 * would keep every version from starting.
 */
export function demandUser(data_dir: string, user = process.getuid?.()): void {
  const server = serverOf(data_dir)
  const { uid } = statSync(server ? `/proc/${server.pid}` : data_dir)
  if (user === undefined || user === uid) return
  const message = `The data in ${data_dir} belongs to the user ${uid}, but this command runs as the user ${user}.`
  throw usage(message, "run the command as the user of the server")
}

/** One that a crash has cut off is ended first: the next one must begin with one version and its data. */
async function endLeftOver({ values }: Loaded): Promise<void> {
  const left = readJournal(values.data_dir)
  if (left) await endUpgrade(values, left)
  await endTrial(values.data_dir)
}

/** What was done, or with --check what would be. */
async function tell({ output, paint }: Context, record: UpgradeRecord): Promise<void> {
  const { from_version, to_version, migrations, done, downtime_ms } = record
  const steps = migrations.length === 0 ? "no migration" : `migrations ${migrations.join(", ")}`
  const pause = downtime_ms === null ? "" : `; nothing was accepted for ${downtime_ms} ms`
  const human = done
    ? `${paint.green("✓")} ${from_version} → ${to_version} (${steps})${pause}`
    : `${paint.green("✓")} ${to_version} can take the place of ${from_version} (${steps})`
  await output.record(record, () => human, to_version)
  if (done) await output.next("belfry smoke")
}
