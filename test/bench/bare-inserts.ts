/**
 * The limit of a batch: the rows of one message, taken from a database that the service wrote, as
 * often as asked, 1,000 messages a transaction, with nothing but bun:sqlite. A process of its own:
 * `bare-inserts.ts TEMPLATE FOLDER MESSAGES` prints messages a second.
 */
import { Database } from "bun:sqlite"
import { join } from "node:path"

const A_TRANSACTION = 1000

/** What an accepted message writes, parents first, and the columns that name the message. */
const TABLES: Record<string, string[]> = {
  messages: ["id"],
  message_contents: ["message_id"],
  events: ["subject_id"],
}

type Value = string | number | Uint8Array | null

const [template = "", folder = "", messages = "0"] = process.argv.slice(2)
const source = new Database(template, { readonly: true })
const database = open(join(folder, "bare.db"))
const writers = Object.keys(TABLES).map(writerOf)
const begin = database.prepare("BEGIN IMMEDIATE")
const commit = database.prepare("COMMIT")
const count = Number(messages)

const begun = performance.now()
for (let done = 0; done < count; ) {
  begin.run()
  for (let n = 0; n < A_TRANSACTION && done < count; n++, done++) {
    const id = Bun.randomUUIDv7("buffer")
    for (const write of writers) write(id)
  }
  commit.run()
}
const seconds = (performance.now() - begun) / 1000

const stored = database.query("SELECT count(*) AS rows FROM messages").get() as { rows: number }
console.log(JSON.stringify({ per_second: count / seconds, stored: stored.rows }))

/** Tables, indexes and pragmas of the service itself. */
function open(path: string): Database {
  const fresh = new Database(path, { create: true, strict: true })
  fresh.run("PRAGMA auto_vacuum = INCREMENTAL")
  fresh.run("PRAGMA journal_mode = WAL")
  fresh.run("PRAGMA synchronous = FULL")
  fresh.run("PRAGMA cache_size = -65536")
  fresh.run("PRAGMA temp_store = MEMORY")
  fresh.run("PRAGMA foreign_keys = ON")
  const parts = source.query("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").all()
  for (const { sql } of parts as { sql: string }[]) {
    if (!/sqlite_/.test(sql)) fresh.run(sql)
  }
  return fresh
}

function writerOf(table: string): (id: Uint8Array) => void {
  const row = source.query(`SELECT * FROM ${table} LIMIT 1`).get() as Record<string, Value>
  const columns = Object.keys(row)
  const values = Object.values(row)
  const own = columns.flatMap((column, at) => (TABLES[table]?.includes(column) ? [at] : []))
  const event = table === "events" ? columns.indexOf("id") : -1
  const names = columns.map((column) => `"${column}"`).join(", ")
  const holes = columns.map(() => "?").join(", ")
  const statement = database.prepare(`INSERT INTO ${table} (${names}) VALUES (${holes})`)
  return (id) => {
    for (const at of own) values[at] = id
    if (event >= 0) values[event] = Bun.randomUUIDv7("buffer")
    statement.run(...values)
  }
}
