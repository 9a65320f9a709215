import { copyFileSync, realpathSync, rmSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { type Loaded, type Settings, useSettings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { syncPath } from "../../src/core/small-file"
import { backupDir } from "../../src/operations/backup/backup-folder"
import { type BackupProgress, databaseBytes } from "../../src/operations/backup/create-backup"
import { spaceFault } from "../../src/operations/free-space"
import { readJournal } from "../../src/operations/upgrade/journal"
import { requireBegun, sqlitePath } from "../../src/store/open"
import type { Action, Context } from "../lib/context"
import { environment, version } from "../lib/environment"
import { exits, Failure, usage } from "../lib/errors"
import { makeBackup } from "./backup"
import { isCompiled } from "./own-binary"
import { isContainer, type ServerProcess, serverOf } from "./server-process"
import { type LocalOptions, localSettings } from "./settings"
import { atData } from "./start-errors"
import { endUpgrade, exchange, lockUpgrade, previousOf, requireAlone } from "./upgrade-exchange"
import { type CheckedRelease, checkRelease, stageProgram } from "./upgrade-release"

interface UpgradeOptions extends LocalOptions {
  check?: boolean
  /** False for `--no-migrate`. */
  migrate?: boolean
  publicKey?: string
}

/** A server that starts may have the lock for a moment. */
const LOCK_MILLISECONDS = 3000
/** A migration of a large database takes minutes. */
const MIGRATE_MILLISECONDS = 3_600_000

const FIELDS = ["from_version", "to_version", "platform", "key_id", "migrations", "done"]

/**
 * Puts a newer release in the place of this program. Signature and backup come before anything is stopped; whatever
 * fails afterwards brings the old program and its database back.
 */
export const upgrade: Action<UpgradeOptions> = async (context, options, source = "") => {
  if (context.flags.dryRun)
    throw usage("--dry-run is not possible with this command", "use --check")
  context.output.promises([...FIELDS, "downtime_ms"])
  if (!isCompiled()) throw usage("Only the compiled binary can be upgraded.", "update the sources")
  const loaded = ownOrServers(context, options)
  useSettings(loaded)
  const { values } = loaded
  const { data_dir } = values
  await atData(loaded, async () => requireBegun(values)) // an upgrade makes no folder and no database
  requireUser(data_dir)
  const release = await lockUpgrade(data_dir, LOCK_MILLISECONDS)
  if (!release)
    throw new Failure(exits.conflict, "running", `An upgrade of ${data_dir} is running.`)
  try {
    const left = readJournal(data_dir) // of a command that was killed
    if (left) await endUpgrade(values, left)
    await upgradeNow({ context, options, loaded, source })
    return exits.done
  } finally {
    release()
  }
}

/** With the environment of the server that runs: the database may be named there alone. */
function ownOrServers({ flags }: Context, options: UpgradeOptions): Loaded {
  const defaults = { "log.level": "warn" } as const
  const own = localSettings(flags, options, defaults)
  const { data_dir } = own.values
  const server = serverOf(data_dir)
  if (!server) return own
  return localSettings(flags, { ...options, dataDir: data_dir }, defaults, server.environment)
}

/**
 * Throws Failure for another user than that of the server: files of an upgrade that the server may not read
 * would keep every version from starting.
 */
export function requireUser(data_dir: string, user = process.getuid?.()): void {
  const server = serverOf(data_dir)
  const { uid } = statSync(server ? `/proc/${server.pid}` : data_dir)
  if (user === undefined || user === uid) return
  const message = `The data in ${data_dir} belongs to the user ${uid}, but this command runs as the user ${user}.`
  throw usage(message, "run the command as the user of the server")
}

interface UpgradeWork {
  context: Context
  options: UpgradeOptions
  loaded: Loaded
  source: string
}

/** The whole way from the signature to the new version. With --check it ends before anything changes. */
async function upgradeNow(work: UpgradeWork): Promise<void> {
  const { context, options, loaded, source } = work
  const settings = loaded.values
  const { data_dir } = settings
  const { output } = context
  const note = async (text: string) => {
    output.passing("")
    await output.note(`${context.paint.dim("·")} ${text}`)
  }
  const server = serverOf(data_dir)
  const program = server?.program ?? realpathSync(process.execPath)
  if (server && isContainer(server)) {
    const hint = "start a container of the newer image with the same volume"
    throw usage("The server is the first process of a container, so it cannot be exchanged.", hint)
  }
  const [staged, kept] = [`${program}.new`, previousOf(program)]
  try {
    const found = await checkRelease({
      source,
      public_key: options.publicKey,
      onBytes: (bytes) => output.passing(`fetched ${Math.floor(bytes / 1e6)} MB`),
    })
    await note(`the signature of ${found.file} is right (key ${found.key_id})`)
    await requireSpace(settings, program)
    await writeBeside(staged, () => stageProgram(found, staged))
    const run = runner(work, staged, server)
    const { pending } = await run<{ pending: string[] }>("--dry-run")
    const keeps_database = pending.length > 0
    if (keeps_database && options.migrate === false) {
      const message = `The new version needs migrations: ${pending.join(", ")}.`
      const hint = "upgrade without --no-migrate"
      throw new Failure(exits.conflict, "migrations_needed", message, { hint })
    }
    if (keeps_database) await requireAlone(settings, server ? 1 : 0)
    if (options.check) return await report(context, found, pending)
    const onProgress = ({ step, done, total }: BackupProgress) =>
      output.passing(`backup, ${step}: ${Math.min(100, Math.floor((100 * done) / (total || 1)))} %`)
    const { path } = await atData(loaded, () => makeBackup(loaded, onProgress))
    await note(`backup ${path}`)
    await writeBeside(kept, () => {
      copyFileSync(program, kept)
      syncPath(kept)
    })
    const id = newId()
    const downtime_ms = await exchange({
      settings,
      upgrade: {
        ...{ format: 1, id, from_version: version, to_version: found.version },
        ...{ program, staged, kept, keeps_database },
      },
      // It may have ended during the backup, and been started again by another program.
      server: serverOf(data_dir) ?? server,
      migrate: () => run("--upgrade", id),
      onStep: note,
    })
    await report(context, found, pending, { downtime_ms })
  } finally {
    rmSync(staged, { force: true })
  }
}

/** Throws Failure where a disk would be full, or below the floor of the server that goes on. */
async function requireSpace(settings: Settings, program: string): Promise<void> {
  const bytes = await databaseBytes(settings)
  const fault = await spaceFault(
    settings,
    [
      { dir: dirname(program), bytes: 2 * statSync(program).size },
      { dir: backupDir(settings), bytes: 2 * bytes },
      // The database of before is kept aside: on Postgres by its server.
      ...(settings.database_url === null ? [{ dir: dirname(sqlitePath(settings)), bytes }] : []),
    ],
    "the upgrade",
  )
  if (!fault) return
  throw new Failure(exits.storage, "storage", fault, { hint: "free some space, then try again" })
}

/** Writes a file in the folder of the program, whole or not at all. Throws Failure where it cannot be written. */
async function writeBeside(path: string, write: () => unknown): Promise<void> {
  try {
    await write()
  } catch (error) {
    rmSync(path, { force: true })
    if (error instanceof Failure) throw error
    const reason = error instanceof Error ? error.message : String(error)
    const message = `A file in ${dirname(path)}, the folder of the program, cannot be written: ${reason}.`
    const hint = "let the user of the server write to that folder"
    throw new Failure(exits.storage, "storage", message, { hint })
  }
}

/** Runs `migrate` of the new program on the same data, in the environment of the server. Answers what it tells. */
function runner(work: UpgradeWork, program: string, server: ServerProcess | undefined) {
  const { config } = work.context.flags
  const same = [
    ...(config === undefined ? [] : ["--config", config]),
    ...(work.options.set ?? []).flatMap((pair) => ["--set", pair]),
    ...["--data-dir", work.loaded.values.data_dir],
  ]
  return async <Told>(...words: string[]): Promise<Told> => {
    const child = Bun.spawn([program, "migrate", "--json", ...words, ...same], {
      env: server?.environment ?? environment,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: MIGRATE_MILLISECONDS,
    })
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    if (child.exitCode === 0) return JSON.parse(out) as Told
    const lines = err.trim().split("\n")
    const body = lines.findLast((line) => line.startsWith('{"error":'))
    const reason = body ? String(JSON.parse(body).error.message) : lines.at(-1)
    const message = `The new version cannot migrate the data: ${reason || "it ended at once"}`
    const hint = "the earlier version keeps running"
    throw new Failure(exits.failed, "migration_failed", message, { hint })
  }
}

/** What was done, or with --check what would be. */
async function report(
  { output, paint }: Context,
  { version: to_version, platform, key_id }: CheckedRelease,
  migrations: string[],
  result?: { downtime_ms: number | null },
): Promise<void> {
  const downtime_ms = result?.downtime_ms ?? null
  const done = result !== undefined
  const steps = migrations.length === 0 ? "no migration" : `migrations ${migrations.join(", ")}`
  const pause = downtime_ms === null ? "" : `; nothing was accepted for ${downtime_ms} ms`
  const human = done
    ? `${paint.green("✓")} ${version} → ${to_version} (${steps})${pause}`
    : `${paint.green("✓")} ${to_version} can take the place of ${version} (${steps})`
  const facts = { from_version: version, to_version, platform, key_id }
  const record = { ...facts, migrations, done, downtime_ms }
  await output.record(record, () => human, to_version)
  if (done) await output.next("belfry smoke")
}
