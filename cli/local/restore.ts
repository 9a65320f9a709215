import { closeSync, constants, openSync, readSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { Loaded, Settings } from "../../src/core/config"
import type { Secrets } from "../../src/core/secrets"
import type { BackupArchive } from "../../src/operations/backup/archive-reader"
import type { ChangedCopy } from "../../src/operations/restore/copy-changes"
import type { RestoreProgress } from "../../src/operations/restore/restore"
import type {
  AccessKind,
  RestoredAccess,
  RestoredRefusals,
  UnknownSince,
} from "../../src/operations/restore/unknown-since"
import type { Action, Context } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { unreadable } from "../lib/input"
import { onInterrupt } from "../lib/interrupt"
import { ago, type Columns, fields, table, wide } from "../lib/table"
import { INTERRUPTED } from "./backup"
import { dataSettings, type LocalOptions, sameData } from "./settings"
import { atData } from "./start-errors"

interface RestoreCommandOptions extends LocalOptions {
  masterKey?: string
  revokeKeys?: boolean
}

const FIELDS = ["id", "created_at", "engine", "data_dir", "rows", "blobs", "held", "ended"] as const
const KEY_FIELDS = [
  ...(["revoked_keys", "active_keys", "keys", "unknown_since"] as const),
  "settings_file",
] as const

/**
 * Restores a backup into an empty folder or database. Its open work waits until an operator resumes or
 * drops it.
 */
export const restore: Action<RestoreCommandOptions> = async (context, options, file = "") => {
  const { dryRun = false } = context.flags
  context.output.promises(dryRun ? FIELDS.slice(0, 6) : [...FIELDS, ...KEY_FIELDS])
  const loaded = dataSettings(context.flags, options)
  const { values } = loaded
  return atData(loaded, async () => {
    const { openArchive } = await import("../../src/operations/backup/archive-reader")
    const archive = await openArchive(file).catch((error) => {
      throw isMissing(error) ? unreadable(error, file, "FILE") : error
    })
    const key = masterKey(options, loaded)
    const { openSecrets } = await import("../../src/core/secrets")
    const secrets = openSecrets({ data_dir: values.data_dir, master_key: key, make: false })
    const whole = { archive, settings: values, secrets, key }
    requireKey(whole, options)
    if (dryRun) return await rehearse(context, whole)
    return await carryOut(context, { ...whole, options })
  })
}

/** Throws exit 5 where the backup belongs to another master key. A backup from a rotation has two. */
function requireKey({ archive, settings, secrets }: Whole, { masterKey: file }: KeyOption): void {
  const { master_key_id, next_master_key_id } = archive.manifest
  const ids = [master_key_id, next_master_key_id].filter((id) => id !== undefined)
  const { key_id } = secrets
  if (ids.includes(key_id)) return
  const where =
    file ?? (settings["security.master_key"] ? "security.master_key" : "the data folder")
  const message = `This backup needs the master key ${ids.join(" or ")}, but ${where} has ${key_id}. Nothing was written.`
  const hint = "give the file of the right key with --master-key"
  throw new Failure(exits.conflict, "wrong_master_key", message, { hint })
}

type KeyOption = Pick<RestoreCommandOptions, "masterKey">

const isMissing = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  /^E(NOENT|NOTDIR|ISDIR|ACCES|PERM)$/.test(String(error.code))

interface Whole {
  archive: BackupArchive
  settings: Settings
  secrets: Secrets
  key: string
}

/**
 * Reads and compares every byte of the backup, and checks its database, which is unpacked for this time beside the
 * backup or among the temporary files. Writes nothing where it would be restored.
 */
async function rehearse(
  context: Context,
  { archive, settings, secrets }: Whole,
): Promise<undefined> {
  const { requireRestorable } = await import("../../src/operations/restore/restore")
  const { verifyArchive } = await import("../../src/operations/backup/verify-archive")
  await requireRestorable(archive, { settings, secrets })
  const report = progressOf(context)
  const scratch = [dirname(archive.path), tmpdir()]
  const onProgress = (done: number, total: number) => report({ step: "extracting", done, total })
  const stop = new AbortController()
  onInterrupt(() => stop.abort(INTERRUPTED))
  await verifyArchive(archive.path, { secrets, scratch, settings, onProgress, signal: stop.signal })
  context.output.passing("")
  const record = recordOf({ archive, settings })
  await context.output.record(record, () =>
    [
      `${context.paint.green("✓")} this backup can be restored there`,
      shownRecord(record, context),
    ].join("\n"),
  )
}

async function carryOut(
  context: Context,
  { archive, settings, secrets, key, options }: Whole & { options: RestoreCommandOptions },
): Promise<undefined> {
  const operations = await import("../../src/operations/restore/restore")
  const { ALLOWED_WHILE_HELD } = await import("../../src/work")
  const stop = new AbortController()
  const interrupted = new Failure(
    exits.interrupted,
    "interrupted",
    "The restore was interrupted. No data of it stays: run it again.",
  )
  onInterrupt(() => stop.abort(interrupted))
  const { revokeKeys: revoke_keys = false } = options
  const parts = { settings, secrets, master_key: key, runs_on: ALLOWED_WHILE_HELD, revoke_keys }
  const told = { onProgress: progressOf(context), signal: stop.signal }
  const changed = await operations.restore(archive, parts, told)
  context.output.passing("")
  const { unknown, ...rest } = changed
  const unknown_since = unknownRecord(unknown, archive.manifest.created_at)
  const settings_file = join(settings.data_dir, operations.KEPT["config.json"])
  const record = { ...recordOf({ archive, settings }), ...rest, unknown_since, settings_file }
  const { output, paint } = context
  await output.record(record, () =>
    [
      `${paint.green("✓")} restored, as it was at ${archive.manifest.created_at}`,
      shownRecord(record, context),
      ...shownChanges(changed, context),
      ...shownUnknown(unknown_since, context),
      ...shownRotation(archive.manifest, secrets, context),
      `${paint.yellow("!")} Settings are not restored. Set those again that ${settings_file} lists.`,
    ].join("\n"),
  )
  await output.next(`belfry serve${sameData(options)}`)
}

/**
 * The master key (32 bytes in base64): from the option, else from the settings, else from the data folder.
 */
function masterKey({ masterKey: file }: RestoreCommandOptions, { values }: Loaded): string {
  const kept = values["security.master_key"] ?? readKey(join(values.data_dir, "master.key"), true)
  const given = file === undefined ? undefined : readKey(file, false)
  if (given !== undefined && kept !== undefined && given !== kept) {
    throw usage(
      `--master-key: ${file} has another key than ${values["security.master_key"] ? "security.master_key" : "the data folder"}`,
      "a server has one master key; remove the other one, or name another folder with --data-dir",
    )
  }
  const key = given ?? kept
  if (key !== undefined) return key
  throw usage(
    "the master key of the backup is needed",
    "give the file with --master-key, or set security.master_key",
  )
}

function readKey(path: string, is_optional: boolean): string | undefined {
  let text: string
  try {
    text = beginningOf(path, is_optional).trim()
  } catch (error) {
    if (is_optional && isMissing(error)) return undefined
    throw unreadable(error, path, "--master-key")
  }
  if (MASTER_KEY.test(text)) return text
  throw usage(`${path} holds no master key`, "a master key is 32 bytes in base64, in one line")
}

const MOST_KEY_BYTES = 1024

/** More than a key has. A path that the person names may be one of a device without an end, or of a pipe. */
function beginningOf(path: string, never_waits: boolean): string {
  const bytes = Buffer.alloc(MOST_KEY_BYTES)
  const file = openSync(path, never_waits ? constants.O_RDONLY | constants.O_NONBLOCK : "r")
  try {
    let read = 0
    for (let more = 1; more > 0 && read < bytes.length; read += more) {
      more = readSync(file, bytes, read, bytes.length - read, null)
    }
    return bytes.toString("utf8", 0, read)
  } finally {
    closeSync(file)
  }
}

const MASTER_KEY = /^[A-Za-z0-9+/]{43}=$/

const STEPS = { extracting: "reading", holding: "held", copying: "rows copied" } as const
const TELL_MILLISECONDS = 200

/** Shows the progress: to people as a passing line, with --ndjson as an object. */
function progressOf(context: Context) {
  let told_at = 0
  return ({ step, done, total }: RestoreProgress) => {
    const at = performance.now()
    if (at - told_at < TELL_MILLISECONDS) return
    told_at = at
    if (context.output.form === "ndjson") {
      process.stderr.write(`${JSON.stringify({ step, done, total })}\n`)
      return
    }
    const share = total === null ? String(done) : `${Math.floor((100 * done) / total)} %`
    context.output.passing(`${STEPS[step]} ${share}`)
  }
}

function recordOf({ archive: { manifest }, settings }: Pick<Whole, "archive" | "settings">) {
  return {
    id: manifest.id,
    created_at: manifest.created_at,
    engine: settings.database_url ? "postgres" : "sqlite",
    data_dir: settings.data_dir,
    rows: Object.values(manifest.rows).reduce((sum, rows) => sum + rows, 0),
    blobs: manifest.blobs.count + manifest.inbound_blobs.count,
  }
}

const shownRecord = (record: ReturnType<typeof recordOf>, { paint }: Context): string =>
  fields(
    [
      ["backup", `${record.id} of ${record.created_at}`],
      ["into", `${record.engine}, ${record.data_dir}`],
      ["rows", String(record.rows)],
      ["files", String(record.blobs)],
    ],
    paint,
  )

/** With the next key a restore has ended the rotation; with the one before it could not. */
function shownRotation(
  { next_master_key_id: next }: BackupArchive["manifest"],
  { key_id }: Secrets,
  { paint }: Context,
): string[] {
  if (next === undefined || next === key_id) return []
  return [
    `${paint.yellow("!")} The backup is from the midst of a rotation to the master key ${next}. Copy the file of that key to`,
    "  master.key.next in the data folder, start the server, and run `belfry admin rotate-master-key`.",
    "  If that key is lost, `belfry admin lost-key` lists the secrets that nobody can read any more.",
  ]
}

type Key = ChangedCopy["keys"][number] & { [field: string]: unknown }

const keyColumns: Columns<Key> = {
  ID: "id",
  NAME: wide(({ name }) => name),
  KEY: ({ last4 }) => `…${last4}`,
  "LAST USED": ago(({ last_used_at }) => last_used_at),
}

function shownChanges(
  { held, ended, keys, active_keys, revoked_keys }: ChangedCopy,
  { paint, terminal }: Context,
): string[] {
  const waits = Object.entries(held).map(
    ([name, count]) => `${count} ${name.replace("webhook_", "")}`,
  )
  const lines = [
    `${paint.yellow("!")} held until you resume or drop it (held_after_restore): ${waits.join(", ")}`,
    `ended: ${ended.sessions} sessions, ${ended.codes} codes, ${ended.links} links`,
  ]
  if (revoked_keys > 0) lines.push(`revoked: ${revoked_keys} API keys`)
  if (keys.length > 0) {
    lines.push(
      active_keys === 1 ? "1 API key is active:" : `${active_keys} API keys are active:`,
      table(keys as Key[], keyColumns, terminal.width, paint),
    )
  }
  return lines
}

/** The command that shows each kind, with what can end it. */
const COMMANDS: Record<AccessKind, string> = {
  api_keys: "belfry keys list",
  people: "belfry admin users",
  webhooks: "belfry webhooks list",
  providers: "belfry providers list",
}

/** What the backup cannot know, as the command answers it. */
const unknownRecord = ({ access, ...rest }: UnknownSince, since: string) => ({
  since,
  access: access.map((line) => ({ ...line, command: COMMANDS[line.kind] })),
  ...rest,
})

type UnknownRecord = ReturnType<typeof unknownRecord>
type Access = UnknownRecord["access"][number] & { [field: string]: unknown }
type Refusals = RestoredRefusals & { [field: string]: unknown }

const accessColumns: Columns<Access> = {
  "WORKS AGAIN": ({ kind }) => kind.replace("api_keys", "API keys"),
  COUNT: ({ count }) => String(count),
  NEWEST: ago(({ newest_at }) => newest_at),
  NAMES: wide(namesOf, "first"),
  "LOOK WITH": "command",
}

function namesOf({ names, count }: RestoredAccess): string {
  const more = count - names.length
  return more > 0 ? `${names.join(", ")} and ${more} more` : names.join(", ")
}

const refusalColumns: Columns<Refusals> = {
  PROJECT: wide(({ project }) => project, "first"),
  SUPPRESSED: ({ suppressions }) => String(suppressions),
  LAST: ago(({ newest_suppression_at }) => newest_suppression_at, "never"),
  UNSUBSCRIBED: ({ unsubscribes }) => String(unsubscribes),
  "LAST ONE": ago(({ newest_unsubscribe_at }) => newest_unsubscribe_at, "never"),
  SUBSCRIBERS: ({ subscribers }) => String(subscribers),
}

const MOST_LINES = 20

/** The same for people: what may have been revoked, suppressed or erased since the backup was made. */
function shownUnknown(
  { since, access, refusals, projects }: UnknownRecord,
  { paint, terminal }: Context,
): string[] {
  const there = access.filter(({ count }) => count > 0)
  const shown = refusals.slice(0, MOST_LINES)
  const more = projects - shown.length
  const lines = [
    `${paint.yellow("!")} What happened after ${since} is not in the backup. Before you resume:`,
  ]
  if (there.length > 0) {
    lines.push(
      "  Revoke again what was revoked since, and give again each secret that was changed since:",
      table(there as Access[], accessColumns, terminal.width, paint),
    )
  }
  if (shown.length > 0) {
    lines.push(
      "  Repeat the suppressions, unsubscriptions and erasures since these times:",
      table(shown as Refusals[], refusalColumns, terminal.width, paint),
      ...(more > 0 ? [`  and ${more} more projects: see --json`] : []),
      "  `belfry suppressions list` and `belfry subscribers list` show what the backup has of them.",
    )
  }
  return lines
}
