import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs"
import { resolve } from "node:path"
import { type Settings, useSettings } from "../../src/core/config"
import type { LostRow } from "../../src/store/recover/lost-rows"
import type { RecoveredTable } from "../../src/store/recover/recover"
import type { Action, Context } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { type Columns, fields, table } from "../lib/table"
import { type LocalOptions, localSettings } from "./settings"
import { startFailure } from "./start-errors"

interface RecoverFlags extends LocalOptions {
  into?: string
}

/**
 * Copies the readable rows of a damaged SQLite file into a new file beside it. The damaged file stays as it
 * is. Exit 0 when no row is known to be lost, else 8.
 */
export const recover: Action<RecoverFlags> = async (context, options, given) => {
  if (context.flags.dryRun)
    throw usage("--dry-run is not possible with this command", "see `belfry db check`")
  context.output.promises(["from", "to", "recovered", "lost", "lost_file", "tables", "mended"])
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
  const { lockFolder } = await import("../../src/store/database-file")
  const { recoverFile } = await import("../../src/store/recover/recover")
  const own = sqlitePath(settings)
  const from = given === undefined ? own : resolve(given)
  const to = resolve(asked ?? `${from}.recovered`)
  demandFiles(from, to, settings)
  const release = from === own ? lockFolder(own) : () => {}
  const list = new LostList(`${to}.lost.ndjson`)
  try {
    const onProgress = (text: string) => context.output.passing(`recovering: ${text}`)
    const onLost = (row: LostRow) => list.add(row)
    const tables = recoverFile({ from, to, onProgress, onLost })
    onProgress("counters and open messages")
    const mended = await mend(to, settings)
    context.output.passing("")
    await tell(context, { from, to, lost_file: list.close(), tables, mended })
  } finally {
    list.close()
    release()
  }
  return list.count > 0 ? exits.partly_failed : exits.done
}

function demandFiles(from: string, to: string, { data_dir }: Settings) {
  const hint = "name the damaged file: `belfry db recover FILE`"
  if (!existsSync(from)) {
    const message = `${from} does not exist.`
    throw new Failure(exits.storage, "storage", message, { details: { data_dir }, hint })
  }
  for (const path of [to, `${to}.lost.ndjson`]) {
    if (!existsSync(path)) continue
    throw usage(`${path} exists already`, "move it away, or name another file with --into")
  }
}

async function mend(path: string, settings: Settings) {
  const { openSqlite } = await import("../../src/store/sqlite")
  const { mendRecovered } = await import("../../src/operations/mend-recovered")
  const { "storage.cache_mb": cache_mb, "storage.wal_autocheckpoint": pages } = settings
  const store = openSqlite({ path, cache_mb, wal_autocheckpoint: pages })
  try {
    return await mendRecovered(store)
  } finally {
    await store.close()
    for (const end of ["lock", "pid"]) rmSync(`${path}.${end}`, { force: true })
  }
}

/** One line of JSON a row; only the machine's operator can read it. */
class LostList {
  count = 0
  readonly #path: string
  #file: number | undefined

  constructor(path: string) {
    this.#path = path
  }

  add(row: LostRow) {
    this.#file ??= openSync(this.#path, "wx", 0o600)
    writeSync(this.#file, `${JSON.stringify(row)}\n`)
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

interface Recovery {
  from: string
  to: string
  lost_file: string | null
  tables: RecoveredTable[]
  mended: { counters: number; without_content: number }
}

async function tell({ output, paint, terminal }: Context, recovery: Recovery) {
  const { from, to, lost_file, tables, mended } = recovery
  const sum = (of: (row: RecoveredTable) => number) => tables.reduce((all, row) => all + of(row), 0)
  const [recovered, lost] = [sum((row) => row.recovered), sum((row) => row.lost)]
  const touched = tables.filter((row) => row.recovered + row.lost + row.unreadable_pages > 0)
  const record = { from, to, recovered, lost, lost_file, tables: touched, mended }
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
          ["rows", `${recovered} recovered, ${lost} lost`],
          ["list of lost rows", lost_file],
          ["counters put right", String(mended.counters)],
          ["messages failed", `${mended.without_content} without content`],
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

const columns: Columns<RecoveredTable> = {
  TABLE: "table",
  RECOVERED: ({ recovered }) => String(recovered),
  LOST: ({ lost }) => String(lost),
  "UNREADABLE PAGES": ({ unreadable_pages }) => String(unreadable_pages),
}
