import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs"
import { dirname, resolve } from "node:path"
import { type Settings, useSettings } from "../../src/core/config"
import type { MendedDatabase } from "../../src/operations/mend-recovered"
import type {
  LostEntry,
  RecoveredFile,
  RecoveredPages,
  RecoveredTable,
} from "../../src/store/recover/recover"
import type { Action, Context } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { onInterrupt } from "../lib/interrupt"
import { type Columns, fields, table } from "../lib/table"
import { type LocalOptions, localSettings } from "./settings"
import { startFailure } from "./start-errors"

interface RecoverFlags extends LocalOptions {
  into?: string
}

/**
 * Copies the readable rows of a damaged SQLite file into a new file beside it. The damaged file stays as it
 * is. Exit 0 when everything came back, and 8 when a row is lost or may be.
 */
export const recover: Action<RecoverFlags> = async (context, options, given) => {
  if (context.flags.dryRun)
    throw usage("--dry-run is not possible with this command", "see `belfry db check`")
  context.output.promises([
    ...["from", "to", "recovered", "lost", "lost_file", "pages", "not_found", "tables", "mended"],
  ])
  const loaded = localSettings(context.flags, options, { "log.level": "error" })
  const { values } = loaded
  useSettings(loaded) // before any module with tables is loaded
  if (values.database_url && given === undefined) throw onPostgres()
  try {
    return await run(context, values, { given, to: options.into })
  } catch (error) {
    context.output.passing("")
    throw startFailure(error, { listen: "", ...values })
  }
}

const onPostgres = () =>
  usage(
    "this instance is on Postgres, but db recover reads SQLite files",
    "restore a backup, or name an SQLite file",
  )

interface Asked {
  given: string | undefined
  to: string | undefined
}

async function run(context: Context, settings: Settings, { given, to: asked }: Asked) {
  const { sqlitePath } = await import("../../src/store/open")
  const from = given === undefined ? sqlitePath(settings) : resolve(given)
  const to = resolve(asked ?? `${from}.recovered`)
  demandFiles(from, to, settings)
  const releases = [await locked(from, { is_read: true }), await locked(to, { is_read: false })]
  const draft = new Draft(to)
  onInterrupt(() => {
    draft.remove()
    process.exit(exits.interrupted)
  })
  try {
    const recovery = await recoverInto(draft, { context, settings, from })
    await draft.place()
    context.output.passing("")
    await tell(context, { from, to, ...recovery })
    return recovery.lost_file === null ? exits.done : exits.partly_failed
  } finally {
    draft.remove()
    for (const release of releases) release()
  }
}

interface RecoverParts {
  context: Context
  settings: Settings
  from: string
}

async function recoverInto(draft: Draft, { context, settings, from }: RecoverParts) {
  const { recoverFile } = await import("../../src/store/recover/recover")
  const onProgress = (text: string) => context.output.passing(`recovering: ${text}`)
  const { accountStandIn } = await import("../../src/operations/lost-owners")
  let placeholders = 0
  const onLost = (entry: LostEntry) => {
    if (entry.reason === "placeholder") placeholders += 1
    draft.list.add(entry)
  }
  const standIns = { accounts: accountStandIn }
  const file = recoverFile({ from, to: draft.path, onProgress, onLost, standIns })
  onProgress("counters and open messages")
  const mended = await mend(draft.path, settings, onLost)
  return {
    ...file,
    mended: { ...mended, placeholders },
    lost_file: draft.list.count > 0 ? draft.lost_file : null,
  }
}

/**
 * Throws FolderInUse where a server or another recovery has the file. A folder that takes no file of ours,
 * such as one of a copy, has no server: what is only read needs no lock there.
 */
async function locked(path: string, { is_read }: { is_read: boolean }): Promise<() => void> {
  const { lockFolder } = await import("../../src/store/database-file")
  const was_there = existsSync(`${path}.lock`)
  try {
    const release = lockFolder(path)
    return () => {
      release()
      if (was_there) return
      for (const end of ["lock", "pid"]) rmSync(`${path}.${end}`, { force: true })
    }
  } catch (error) {
    const is_held = error instanceof Error && error.name === "FolderInUse"
    if (is_held || !is_read) throw error
    return () => {}
  }
}

/** The new file and its list under other names, until both are whole: a server must not find half of them. */
class Draft {
  readonly path: string
  readonly lost_file: string
  readonly list: LostList
  readonly #to: string

  constructor(to: string) {
    this.#to = to
    this.path = `${to}.unfinished`
    this.lost_file = `${to}.lost.ndjson`
    this.list = new LostList(`${this.path}.lost.ndjson`)
    this.remove() // of a command that was killed
  }

  async place(): Promise<void> {
    const { sizeOf } = await import("../../src/store/database-file")
    const { syncFolder } = await import("../../src/core/blobs")
    if (sizeOf(`${this.path}-wal`) > 0) throw new Error(`${this.path} could not be written whole.`)
    const list = this.list.close()
    if (list !== null) renameSync(list, this.lost_file)
    renameSync(this.path, this.#to)
    await syncFolder(dirname(this.#to))
  }

  remove(): void {
    this.list.close()
    for (const end of ["", "-wal", "-shm", ".lock", ".pid", ".lost.ndjson"])
      rmSync(this.path + end, { force: true })
    for (const end of ["", "-wal", "-shm"]) rmSync(`${this.path}.draft${end}`, { force: true })
  }
}

function demandFiles(from: string, to: string, { data_dir }: Settings) {
  const hint = "name the damaged file: `belfry db recover FILE`"
  if (!existsSync(from)) {
    const message = `${from} does not exist.`
    throw new Failure(exits.storage, "storage", message, { details: { data_dir }, hint })
  }
  if (!statSync(from).isFile()) throw usage(`${from} is not a file`, hint)
  const folder = dirname(to)
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw usage(`${folder} is not a folder`, "make it first, or name another file with --into")
  for (const path of [to, `${to}.lost.ndjson`]) {
    if (!existsSync(path)) continue
    throw usage(`${path} exists already`, "move it away, or name another file with --into")
  }
}

async function mend(path: string, settings: Settings, onLost: (entry: LostEntry) => void) {
  const { openSqlite } = await import("../../src/store/sqlite")
  const { mendRecovered } = await import("../../src/operations/mend-recovered")
  const { "storage.cache_mb": cache_mb } = settings
  // With 0, as a server may have it for Litestream, the log would not be copied at the end.
  const store = openSqlite({ path, cache_mb, wal_autocheckpoint: 1000 })
  try {
    return await mendRecovered(store, ({ table, id, rows }) =>
      onLost({ table, key: { id }, reason: "placeholder", rows }),
    )
  } finally {
    await store.close()
  }
}

/** One line of JSON for each row, kind of pages or table that is lost; only the machine's operator can read it. */
class LostList {
  count = 0
  readonly #path: string
  #file: number | undefined

  constructor(path: string) {
    this.#path = path
  }

  add(entry: LostEntry) {
    this.#file ??= openSync(this.#path, "wx", 0o600)
    writeSync(this.#file, `${JSON.stringify(entry)}\n`)
    this.count += 1
  }

  /** The path of the list; null where nothing is lost. */
  close(): string | null {
    if (this.#file !== undefined) {
      fsyncSync(this.#file)
      closeSync(this.#file)
    }
    this.#file = undefined
    return this.count > 0 ? this.#path : null
  }
}

interface Placeholders {
  /** How many projects and accounts stand in the place of lost ones. */
  placeholders: number
}

interface Recovery extends RecoveredFile {
  from: string
  to: string
  lost_file: string | null
  mended: MendedDatabase & Placeholders
}

async function tell({ output, paint, terminal }: Context, recovery: Recovery) {
  const { from, to, lost_file, pages, not_found, tables, mended } = recovery
  const sum = (of: (row: RecoveredTable) => number) => tables.reduce((all, row) => all + of(row), 0)
  const [recovered, lost] = [sum((row) => row.recovered), sum((row) => row.lost)]
  const touched = tables.filter((row) => row.recovered + row.lost + row.unreadable_pages > 0)
  const record = {
    ...{ from, to, recovered, lost, lost_file, pages, not_found },
    ...{ tables: touched, mended },
  }
  await output.record(record, () =>
    [
      table(
        touched.map((row) => ({ ...row })),
        columns,
        terminal.width,
        paint,
      ),
      fields(
        [
          ["new file", to],
          ["rows", `${recovered} recovered, ${lost} lost${moreText(recovery)}`],
          ["pages", pagesText(pages)],
          ["tables not found", not_found],
          ["list of losses", lost_file],
          ["counters put right", String(mended.counters)],
          ["messages failed", `${mended.without_content} without content`],
          ["placeholders", placeholdersText(mended)],
        ],
        paint,
      ),
    ].join("\n\n"),
  )
  await output.note(
    `Next: stop the server, move ${from} and its -wal and -shm away, and move the new file there. ` +
      "The next start holds what was open.",
  )
}

const placeholdersText = ({ placeholders }: Placeholders) =>
  placeholders > 0
    ? `${placeholders} for lost projects and accounts: give them names and settings`
    : ""

const moreText = ({ pages, not_found }: RecoveredFile) =>
  pages.missing + pages.unreadable + not_found.length > 0 ? ", and more may be lost" : ""

/** Empty where every page could be read. */
function pagesText({ total, missing, unreadable, of_no_known_table }: RecoveredPages): string {
  const cut = missing > 0 ? [`the file is cut off: ${missing} of ${total} pages are missing`] : []
  const bad = unreadable > 0 ? [`${unreadable} of ${total} pages cannot be read`] : []
  const no_table =
    of_no_known_table > 0 ? [`${of_no_known_table} of them are of no known table`] : []
  return [...cut, ...bad, ...no_table].join("; ")
}

const columns: Columns<RecoveredTable> = {
  TABLE: "table",
  RECOVERED: ({ recovered }) => String(recovered),
  LOST: ({ lost }) => String(lost),
  "UNREADABLE PAGES": ({ unreadable_pages }) => String(unreadable_pages),
}
