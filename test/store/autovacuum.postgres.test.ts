import { expect, test } from "bun:test"
import { SQL } from "bun"
import { getTableName } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { CHURNING } from "../../src/store/autovacuum"
import { openStore } from "../../src/store/open"
import { freshDatabase } from "../harness/postgres"
import { quietLog } from "../harness/quiet"
import { schemaTables } from "../harness/table-rows"

quietLog()

const open = (database_url: string) => openStore({ ...settings(), database_url })

/** The options of each table that has some. */
async function optionsOf(sql: SQL): Promise<Map<string, string>> {
  const rows = await sql`
    SELECT relname AS name, array_to_string(reloptions, ',') AS options
    FROM pg_class WHERE relkind = 'r' AND reloptions IS NOT NULL`
  return new Map(rows.map((row: { name: string; options: string }) => [row.name, row.options]))
}

test("tables that churn are freed early, and what an operator set stays", async () => {
  await using database = await freshDatabase()
  const sql = new SQL(database.url, { max: 1 })
  await (await open(database.url)).close()
  const first = await optionsOf(sql)
  expect([...first.keys()].sort()).toEqual([...CHURNING].sort())
  expect(first.get("messages")).toContain("autovacuum_vacuum_scale_factor=0.02")

  await sql`ALTER TABLE messages RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor, autovacuum_vacuum_cost_delay)`
  await sql`ALTER TABLE events SET (autovacuum_vacuum_scale_factor = 0.5)`
  await (await open(database.url)).close()
  const second = await optionsOf(sql)
  expect(second.get("messages")).toBe(first.get("messages"))
  expect(second.get("events")).toContain("autovacuum_vacuum_scale_factor=0.5")
  await sql.close()
})

test("the list names tables of the schema", async () => {
  const names = (await schemaTables()).map(getTableName)
  for (const name of CHURNING) expect(names).toContain(name)
})
