import { access, constants } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, resolve } from "node:path"
import type { Loaded } from "../../src/core/config"
import { millis, sleep } from "../../src/core/time"
import type { Backup } from "../../src/operations/backup/backup-folder"
import type { BackupProgress } from "../../src/operations/backup/create-backup"
import type { BackupManifest } from "../../src/operations/backup/manifest"
import {
  barText,
  type ProgressSample,
  rateOf,
  secondsLeft,
  spanText,
  withSample,
} from "../commands/topics-publish"
import { byteSize } from "../lib/cells"
import type { Action, Context } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { unreadable } from "../lib/input"
import { onInterrupt } from "../lib/interrupt"
import { ago, type Columns, fields, wide } from "../lib/table"
import { askServer, settingsOfServer } from "./admin-socket"
import { dataSettings, type LocalOptions, sameData } from "./settings"
import { atData } from "./start-errors"

const POLL_MS = 250

const FIELDS = ["id", "path", "size", "verified", "missing", "created_at"]

/**
 * The running server makes the backup. Without a server this command makes it, and does not change the
 * database.
 */
export const create: Action<LocalOptions> = async (context, options) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  const { output, paint } = context
  output.promises(FIELDS)
  const loaded = dataSettings(context.flags, options)
  const shown = progressLine(context)
  const made = await atData(loaded, async () => {
    const order = { operation: "create_backup", dir: givenDir(loaded, options) } as const
    const job = await askServer<LongJob>(loaded, order)
    return job ? followed(loaded, job, shown) : makeBackup(loaded, shown)
  }).finally(() => output.passing(""))
  const human = () =>
    [
      `${paint.green("✓")} backup ${made.id}, ${byteSize(made.size)}`,
      ...(made.missing === 0 ? [] : [`${paint.yellow("!")} it ${lacks(made)}, ${WHICH}`]),
      made.path,
    ].join("\n")
  await output.record({ ...made }, human)
  await output.next(`belfry backup verify ${made.id}${sameData(options)}`)
}

/** The folder that these flags name. The server's own counts, so it refuses another one. */
function givenDir({ values }: Loaded, { set = [] }: LocalOptions): string | undefined {
  const dir = values["backup.dir"]
  return dir && set.some((pair) => pair.startsWith("backup.dir=")) ? resolve(dir) : undefined
}

const columns: Columns<Backup> = {
  ID: "id",
  MADE: ago(({ created_at }) => created_at),
  SIZE: ({ size }) => byteSize(size),
  "": {
    cell: (backup) => (backup.verified ? lacks(backup) : "not readable"),
    paint: (text, { verified }, paint) => (verified ? paint.yellow(text) : paint.red(text)),
  },
  PATH: wide(({ path }) => path),
}

/** Empty where it lacks nothing. */
const lacks = ({ missing }: Pick<Backup, "missing">) =>
  missing === 0 ? "" : `lacks ${missing === 1 ? "1 file" : `${missing} files`}`

const WHICH = "missing or damaged when Belfry made it; the log names the first ones"

export const list: Action<LocalOptions> = async (context, options) => {
  const loaded = dataSettings(context.flags, options)
  const rows = await atData(loaded, () => backupsOf(loaded))
  await context.output.list(
    rows.map((row) => ({ ...row })),
    columns,
  )
}

export const verify: Action<LocalOptions> = async (context, options, chosen) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  const { output, paint } = context
  output.promises(["path", "size", "rows", "tables", "secrets_opened", "manifest"])
  const loaded = dataSettings(context.flags, options)
  const shown = progressLine(context)
  const found = await atData(loaded, async () => {
    const path = await pathOf(loaded, chosen)
    const { verifyArchive } = await import("../../src/operations/backup/verify-archive")
    const onProgress = (done: number, total: number) => shown({ done, total })
    const secrets = await secretsOf(await settingsOfServer(loaded, context.flags, options))
    const stop = new AbortController()
    onInterrupt(() => stop.abort(INTERRUPTED))
    const settings = loaded.values
    const { backupDir } = await import("../../src/operations/backup/backup-folder")
    // A copy may lie on a disk that is only read.
    const scratch = [dirname(path), backupDir(settings), settings.data_dir, tmpdir()]
    return verifyArchive(path, { secrets, scratch, settings, onProgress, signal: stop.signal })
  }).finally(() => output.passing(""))
  const { manifest, secrets_opened } = found
  const { blobs, inbound_blobs } = manifest
  const human = () =>
    [
      `${paint.green("✓")} ${found.path} is whole`,
      fields(
        [
          ["made", `${manifest.created_at} by belfry ${manifest.version} (${manifest.engine})`],
          ["size", byteSize(found.size)],
          ["rows", `${found.rows.toLocaleString("en-US")} in ${found.tables} tables`],
          ["files", `${blobs.count + inbound_blobs.count}${missingOf(blobs, inbound_blobs)}`],
          ["master key", `${keysOf(manifest)}${secrets_opened ? ", opens its secrets" : NO_KEY}`],
        ],
        paint,
      ),
    ].join("\n")
  await output.record({ ...found }, human, manifest.id)
}

/** Two from the midst of a rotation: a restore takes either. */
const keysOf = ({ master_key_id, next_master_key_id }: BackupManifest) =>
  next_master_key_id === undefined
    ? master_key_id
    : `${master_key_id} or ${next_master_key_id} (a rotation)`

export const INTERRUPTED = new Failure(
  exits.interrupted,
  "interrupted",
  "The check was interrupted. The backup is as it was.",
)

const NO_KEY =
  "; the command did not try it, because this data folder has no key, or the backup has no secrets"

const missingOf = (...counts: { missing: number }[]): string => {
  const missing = counts.reduce((sum, one) => sum + one.missing, 0)
  return missing === 0 ? "" : `, ${missing} were missing or damaged when Belfry made it`
}

interface LongJob {
  id: string
  status: string
  progress: { done: number; total: number }
  result: unknown
  error: { message: string } | null
}

type Shown = (progress: Pick<BackupProgress, "done" | "total">) => void

/** The backup goes on in the server, also when this command is interrupted. */
async function followed(loaded: Loaded, job: LongJob, shown: Shown): Promise<Backup> {
  let current = job
  while (current.status === "queued" || current.status === "running") {
    await sleep(POLL_MS)
    const order = { operation: "instance_job", id: job.id } as const
    const asked = await askServer<LongJob>(loaded, order).catch(undefinedWhereCutOff)
    if (!asked) throw new Failure(exits.try_later, "stopped", STOPPED)
    current = asked
    shown(current.progress)
  }
  if (current.status !== "completed") {
    const message = current.error?.message ?? "The backup was cancelled."
    throw new Failure(exits.failed, "backup_failed", message)
  }
  const { id } = current.result as { id: string }
  const all = await askServer<Backup[]>(loaded, { operation: "backups" })
  const made = all?.find((backup) => backup.id === id)
  return (
    made ??
    Promise.reject(new Failure(exits.failed, "gone", `The backup ${id} does not exist any more.`))
  )
}

/** A server may die before this command asks it, or in the middle of its answer. */
function undefinedWhereCutOff(error: unknown): undefined {
  if (!(error instanceof Failure) || error.code !== "unreachable") throw error
}

const STOPPED =
  "The server stopped while it made the backup. The server begins it anew at its next start."

/** Makes the backup in this process. After an interrupt the draft stays, and the next backup removes it. */
export async function makeBackup(
  { values: settings }: Loaded,
  onProgress: (progress: BackupProgress) => void,
): Promise<Backup> {
  const { createBackup } = await import("../../src/operations/backup/create-backup")
  const { requireBegun } = await import("../../src/store/open")
  requireBegun(settings)
  const { openSecrets } = await import("../../src/core/secrets")
  const { data_dir, "security.master_key": master_key } = settings
  const secrets = openSecrets({ data_dir, master_key, make: false })
  return createBackup({ settings, secrets }, { onProgress })
}

async function backupsOf(loaded: Loaded): Promise<Backup[]> {
  const asked = await askServer<Backup[]>(loaded, { operation: "backups" })
  if (asked) return asked
  const { listBackups } = await import("../../src/operations/backup/backup-folder")
  return listBackups(loaded.values)
}

/** A path, the id of a backup in the folder, or the newest one. */
async function pathOf(loaded: Loaded, chosen: string | undefined): Promise<string> {
  if (chosen !== undefined && /[/.]/.test(chosen)) return readable(chosen)
  const all = await backupsOf(loaded)
  const found = chosen === undefined ? all[0] : all.find(({ id }) => id === chosen)
  if (found) return found.path
  const message = chosen === undefined ? "There is no backup yet." : `There is no backup ${chosen}.`
  throw new Failure(exits.not_found, "not_found", message, {
    hint: "`belfry backup list` lists them; `belfry backup create` makes one",
  })
}

async function readable(path: string): Promise<string> {
  try {
    await access(path, constants.R_OK)
    return path
  } catch (error) {
    throw unreadable(error, path, "backup")
  }
}

/** Undefined when the folder has no key: a copy of a backup may be verified on another machine. */
async function secretsOf({ values }: Loaded) {
  const { openSecrets } = await import("../../src/core/secrets")
  const { data_dir, "security.master_key": master_key } = values
  try {
    return openSecrets({ data_dir, master_key, make: false })
  } catch (error) {
    if ((error as Error).name === "MasterKeyError") return undefined
    throw error
  }
}

/** One line on a terminal: share, rate and remaining time; progress objects with --ndjson. */
function progressLine({ output }: Context): Shown {
  let samples: readonly ProgressSample[] = []
  return ({ done, total }) => {
    if (output.form === "ndjson") {
      process.stderr.write(`${JSON.stringify({ progress: { done, total } })}\n`)
      return
    }
    samples = withSample(samples, { at: millis(), done })
    const rate = rateOf(samples)
    const seconds = secondsLeft(total - done, rate)
    const words = [barText(done, total), `${byteSize(done)} of ${byteSize(total)}`]
    if (rate !== undefined) words.push(`${byteSize(rate)}/s`)
    if (seconds !== undefined && done < total) words.push(`${spanText(seconds)} left`)
    output.passing(words.join(" "))
  }
}
