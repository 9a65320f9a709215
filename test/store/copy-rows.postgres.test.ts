import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { join } from "node:path"
import { SQL } from "bun"
import { applySqlite } from "../../src/store/apply-migrations"
import { copyFromPostgres, copyToPostgres } from "../../src/store/copy-rows"
import { sharedTables, tablesIn } from "../../src/store/shared-tables"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { fixturesOf, statementsOf } from "../harness/upgrade"

quietLog()

const WITH_POSITION = `SELECT m.name FROM sqlite_schema m, pragma_table_info(m.name) c
  WHERE m.type = 'table' AND c.name = 'position'`

/** A database of a server that was used, with the schema of today. */
async function used(path: string): Promise<Database> {
  const database = new Database(path, { create: true, strict: true })
  const last = fixturesOf("sqlite").at(-1)
  for (const statement of await statementsOf(last?.path ?? "")) database.run(statement)
  applySqlite(database)
  // No database gives another one its positions. A fixture has samples of them.
  for (const table of namesIn(database, WITH_POSITION))
    database.run(`UPDATE "${table}" SET position = 0`)
  return database
}

const TEXTS = ['{"name":"\\u0000 Jörg 🦉"}', "", "{}"]
const LONG = "x".repeat(5_000_000)

const namesIn = (database: Database, sql: string) =>
  database
    .query<{ name: string }, []>(sql)
    .all()
    .map(({ name }) => name)

const indexedIn = (database: Database, table: string) =>
  namesIn(database, `PRAGMA index_list("${table}")`).flatMap((index) =>
    namesIn(database, `PRAGMA index_info("${index}")`),
  )

/** Rows for the tables that have none, at the edges of what their columns take. */
function fillEmpty(database: Database, tables: Awaited<ReturnType<typeof sharedTables>>) {
  const edges: Record<string, (number: number) => string | number | Uint8Array | null> = {
    uuid: (number) =>
      number === 0 ? new Uint8Array(16) : crypto.getRandomValues(Buffer.alloc(16)),
    bigint: (number) => (number === 0 ? Number.MAX_SAFE_INTEGER : -number),
    boolean: (number) => number % 2,
    bytea: (number) => Buffer.alloc(number * 300, "\x00\xff"),
    text: (number) => TEXTS[number] ?? "",
  }
  for (const { name, columns, key } of tables) {
    const refers = database.query(`PRAGMA foreign_key_list("${name}")`).all().length > 0
    const [count] = database.query(`SELECT count(*) FROM "${name}"`).values()[0] ?? []
    if (refers || Number(count) > 0) continue
    const indexed = [...key, ...indexedIn(database, name)]
    for (let number = 0; number < 3; number++) {
      const values = columns.map(({ type, is_position, name }) => {
        if (is_position) return 0
        const value = edges[type]?.(number) ?? null
        if (value === "{}" && !indexed.includes(name)) return LONG
        return key.includes(name) && typeof value === "string" ? `${number}` : value
      })
      const holes = values.map(() => "?").join()
      const names = columns.map((column) => `"${column.name}"`).join()
      database.run(`INSERT INTO "${name}" (${names}) VALUES (${holes})`, values as never[])
    }
  }
}

const rowsOf = (database: Database, table: string) => {
  const order = database
    .query<{ name: string; pk: number }, []>(`PRAGMA table_info("${table}")`)
    .all()
    .filter(({ pk }) => pk > 0)
    .map(({ name }) => `"${name}"`)
  return database.query(`SELECT * FROM "${table}" ORDER BY ${order.join()}`).all()
}

test("rows of every table go from SQLite to Postgres and back, and are equal", async () => {
  await using there = await testStore("postgres")
  const pool = new SQL(there.database_url ?? "", { max: 2 })
  using source = await used(join(there.folder, "source.db"))
  fillEmpty(source, await sharedTables(source, pool))
  let sent = 0
  const onRows = (rows: number) => {
    sent += rows
  }
  await pool.begin((tx) => copyToPostgres(source, tx, onRows))

  using back = new Database(join(there.folder, "back.db"), { create: true, strict: true })
  applySqlite(back)
  await pool.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", (tx) => copyFromPostgres(tx, back))
  let all = 0
  const filled: string[] = []
  for (const table of tablesIn(source)) {
    if (table === "belfry_migrations") continue
    const rows = rowsOf(source, table)
    expect([table, rowsOf(back, table)]).toEqual([table, rows])
    all += rows.length
    if (rows.length > 0) filled.push(table)
  }
  expect(sent).toBe(all)
  expect(filled.length).toBeGreaterThan(60)
  await pool.close()
})

test("what is written meanwhile is in none of the tables, or in all", async () => {
  await using there = await testStore("postgres")
  const pool = new SQL(there.database_url ?? "", { max: 2 })
  using target = new Database(":memory:", { strict: true })
  applySqlite(target)
  const write = (name: string) =>
    pool`INSERT INTO instance_values (name, value) VALUES (${name}, 'x')`
  await write("before")
  await pool.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", async (tx) => {
    await tx.unsafe("SELECT 1 FROM instance_values")
    await write("meanwhile")
    await copyFromPostgres(tx, target)
  })
  expect(target.query("SELECT name FROM instance_values").values()).toEqual([["before"]])
  await pool.close()
})

test("databases with different tables are told apart before anything is copied", async () => {
  await using there = await testStore("postgres")
  const pool = new SQL(there.database_url ?? "", { max: 2 })
  using source = await used(join(there.folder, "source.db"))
  source.run("ALTER TABLE instance_values ADD COLUMN later TEXT")
  expect(pool.begin((tx) => copyToPostgres(source, tx, () => {}))).rejects.toThrow(
    "instance_values",
  )
  await pool.close()
})
