import { expect, test } from "bun:test"
import { SQL } from "bun"
import { loadSettings } from "../../../src/core/config"
import {
  dropKeptSchema,
  hasKeptSchema,
  keepSchema,
  returnSchema,
  servingNodes,
} from "../../../src/operations/upgrade/kept-database"
import { openStore } from "../../../src/store/open"
import { freshDatabase } from "../../harness/postgres"
import { quietLog } from "../../harness/quiet"
import { fixturesOf, statementsOf } from "../../harness/upgrade"

quietLog()

type Rows = Record<string, unknown>[]

/** Everything that a database has: columns, keys, indexes, settings and rows. */
async function everything(sql: SQL) {
  const ask = async (text: string) => [...(await sql.unsafe(text))] as Rows
  const tables = await ask(
    `SELECT relname AS name, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace
     AND relkind = 'r' ORDER BY 1`,
  )
  const rows: Record<string, unknown[]> = {}
  for (const { name } of tables)
    rows[String(name)] = (await ask(`SELECT t::text AS row FROM public."${name}" t`))
      .map(({ row }) => row)
      .sort()
  return {
    tables,
    rows,
    columns: await ask(
      `SELECT table_name, column_name, data_type, is_nullable, column_default, is_identity,
       generation_expression, collation_name FROM information_schema.columns
       WHERE table_schema = 'public' ORDER BY 1, ordinal_position`,
    ),
    constraints: await ask(
      `SELECT conrelid::regclass::text AS of, conname, contype, pg_get_constraintdef(oid) AS made
       FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n' ORDER BY 1, 2`,
    ),
    indexes: await ask(
      "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2",
    ),
  }
}

test("a kept schema comes back with its rows, keys, indexes and settings, whatever became of it", async () => {
  await using database = await freshDatabase()
  const sql = new SQL(database.url, { max: 1 })
  const [fixture] = fixturesOf("postgres").slice(-1)
  for (const statement of await statementsOf(fixture?.path ?? "")) await sql.unsafe(statement)
  const { values } = loadSettings({ environment: {}, flags: { database_url: database.url } })
  await (await openStore(values)).close() // migrated, and with its settings of autovacuum
  const before = await everything(sql)
  expect(Object.values(before.rows).flat().length).toBeGreaterThan(50)

  await keepSchema(database.url)
  await keepSchema(database.url) // after an attempt that a crash cut off
  expect(await everything(sql)).toEqual(before)

  await sql.unsafe("CREATE TABLE next_version (id integer)")
  await sql.unsafe("ALTER TABLE projects ADD COLUMN next integer")
  await sql.unsafe("DROP INDEX messages_ready")
  await sql.unsafe("DELETE FROM message_contents")
  await sql.unsafe("DROP TABLE events CASCADE")
  await returnSchema(database.url)
  expect(await everything(sql)).toEqual(before)
  await returnSchema(database.url) // a second time it changes nothing
  expect(await everything(sql)).toEqual(before)

  await keepSchema(database.url)
  await dropKeptSchema(database.url)
  expect(
    await sql`SELECT 1 FROM pg_namespace WHERE nspname = 'belfry_before_upgrade'`,
  ).toHaveLength(0)
  await sql.close()
})

test("nodes that showed life lately are counted", async () => {
  await using database = await freshDatabase()
  const { values } = loadSettings({ environment: {}, flags: { database_url: database.url } })
  await (await openStore(values)).close()
  const sql = new SQL(database.url, { max: 1 })
  const ms = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
  await sql.unsafe(`INSERT INTO nodes (id, seen_at) VALUES
    ('0199a1c2-0000-7000-8000-000000000001', ${ms}), ('0199a1c2-0000-7000-8000-000000000002', ${ms} - 60000)`)
  expect(await servingNodes(database.url)).toBe(1)
  await sql.close()
})

test("tables in another schema than public are kept and come back, too", async () => {
  await using database = await freshDatabase()
  const first = new SQL(database.url, { max: 1 })
  const [here] = await first`SELECT quote_ident(current_database()) AS name`
  await first.unsafe('CREATE SCHEMA "Our own"')
  await first.unsafe(`ALTER DATABASE ${here?.name} SET search_path TO "Our own"`)
  await first.close() // the next connection has the setting
  const sql = new SQL(database.url, { max: 1 })
  await sql.unsafe("CREATE TABLE accounts (id integer PRIMARY KEY)")
  await sql.unsafe("CREATE TABLE projects (id integer, account integer REFERENCES accounts (id))")
  await sql.unsafe("CREATE INDEX projects_by_account ON projects (account)")
  await sql.unsafe("INSERT INTO accounts VALUES (7)")
  await sql.unsafe("INSERT INTO projects VALUES (1, 7)")
  await keepSchema(database.url)
  await sql.unsafe("DROP TABLE projects")
  await returnSchema(database.url)
  expect([...(await sql`SELECT * FROM projects`)]).toEqual([{ id: 1, account: 7 }])
  const indexes = await sql`SELECT indexname FROM pg_indexes WHERE tablename = 'projects'`
  expect(indexes.map(({ indexname }: { indexname: string }) => indexname)).toEqual([
    "projects_by_account",
  ])
  expect(await sql`INSERT INTO projects VALUES (2, 8)`.catch(() => "refused")).toBe("refused")
  await sql.close()
})

test("tables of another application stay as they are, with what it wrote meanwhile", async () => {
  await using database = await freshDatabase()
  const { values } = loadSettings({ environment: {}, flags: { database_url: database.url } })
  await (await openStore(values)).close()
  const sql = new SQL(database.url, { max: 1 })
  await sql.unsafe("CREATE TABLE shop_orders (id integer PRIMARY KEY)")
  await sql.unsafe("INSERT INTO shop_orders VALUES (1)")
  await keepSchema(database.url)
  const kept = await sql`SELECT relname FROM pg_class WHERE relname = 'shop_orders'`
  expect(kept).toHaveLength(1)
  await sql.unsafe("INSERT INTO shop_orders VALUES (2)")
  await sql.unsafe("CREATE TABLE next_version (id integer)")
  await returnSchema(database.url)
  expect([...(await sql`SELECT id FROM shop_orders ORDER BY id`)]).toEqual([{ id: 1 }, { id: 2 }])
  const [row] =
    await sql`SELECT to_regclass('next_version') AS next, to_regclass('messages') AS ours`
  expect([row?.next, row?.ours]).toEqual([null, "messages"])
  await sql.close()
})

test("every table of the database is known as ours, so that none is left out", async () => {
  await using database = await freshDatabase()
  const { values } = loadSettings({ environment: {}, flags: { database_url: database.url } })
  await (await openStore(values)).close()
  const sql = new SQL(database.url, { max: 1 })
  await keepSchema(database.url)
  expect([...(await sql`SELECT name FROM belfry_before_upgrade.belfry_other_tables`)]).toEqual([])
  await sql.close()
})

test("what a killed upgrade was about to keep goes, also where the server commits it later", async () => {
  await using database = await freshDatabase()
  const { values } = loadSettings({ environment: {}, flags: { database_url: database.url } })
  await (await openStore(values)).close()
  const sql = new SQL(database.url, { max: 2 })
  const keeper = await sql.reserve()
  await keeper`BEGIN`
  await keeper`LOCK TABLE webhooks IN ACCESS EXCLUSIVE MODE`
  const keeping = keepSchema(database.url) // it waits for that table
  const waits = () =>
    sql`SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'webhooks'::regclass`
  while ((await waits()).length === 0) await Bun.sleep(10)
  const dropped = dropKeptSchema(database.url)
  await Promise.race([dropped, Bun.sleep(300)])
  await keeper`COMMIT`
  await Promise.all([keeping, dropped])
  expect(await hasKeptSchema(database.url)).toBe(false)
  keeper.release()
  await sql.close()
})
