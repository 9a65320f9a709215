/**
 * The limit of storing: the rows of one message, or of one received mail, taken from a database that
 * the service wrote, as often as asked, with nothing but bun:sqlite. A process of its own:
 * `bare-inserts.ts TEMPLATE FOLDER COUNT A_TRANSACTION messages|published|inbound_emails` prints how many a second.
 */
import { Database } from "bun:sqlite"
import { join } from "node:path"

/** What is written, parents first, and the columns that name the message or the mail. */
const KINDS: Record<string, Record<string, string[]>> = {
  messages: { messages: ["id"], message_contents: ["message_id"], events: ["subject_id"] },
  published: {
    messages: ["id"],
    message_contents: ["message_id"],
    events: ["subject_id"],
    unsubscribe_links: ["id"],
  },
  inbound_emails: {
    inbound_emails: ["id"],
    inbound_raws: ["inbound_id"],
    inbound_contents: ["inbound_id"],
    events: ["subject_id"],
    webhook_deliveries: ["id"],
  },
}

type Value = string | number | Uint8Array | null

const [template = "", folder = "", wanted = "0", group = "1", kind = ""] = process.argv.slice(2)
const TABLES = KINDS[kind] ?? {}
const source = new Database(template, { readonly: true })
const database = open(join(folder, "bare.db"))
const writers = Object.keys(TABLES).map(writerOf)
const begin = database.prepare("BEGIN IMMEDIATE")
const commit = database.prepare("COMMIT")
const count = Number(wanted)

const begun = performance.now()
for (let done = 0; done < count; ) {
  begin.run()
  for (let n = 0; n < Number(group) && done < count; n++, done++) {
    const id = Bun.randomUUIDv7("buffer")
    for (const write of writers) write(id)
  }
  commit.run()
}
const seconds = (performance.now() - begun) / 1000

const [first] = Object.keys(TABLES)
const stored = database.query(`SELECT count(*) AS rows FROM ${first}`).get() as { rows: number }
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
    // The id of a link is a MAC.
    const named = table === "unsubscribe_links" ? crypto.getRandomValues(new Uint8Array(16)) : id
    for (const at of own) values[at] = named
    if (event >= 0) values[event] = Bun.randomUUIDv7("buffer")
    statement.run(...values)
  }
}
