import { join } from "node:path"
import { Glob } from "bun"
import { type Column, getTableColumns, is } from "drizzle-orm"
import { PgTable } from "drizzle-orm/pg-core"
import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { isPlain, postgresType } from "../../src/store/columns"
import type { Store } from "../../src/store/store"
import { root } from "./migrations"

/** Every table of the schema: a new one is found here by itself. */
export async function schemaTables(): Promise<SQLiteTable[]> {
  const found: SQLiteTable[] = []
  for (const path of [...new Glob("src/**/tables.ts").scanSync(root)].sort()) {
    for (const one of Object.values(await import(join(root, path)))) {
      if (is(one, SQLiteTable) || is(one, PgTable)) found.push(one as SQLiteTable)
    }
  }
  return found
}

/** A row with a value in each column that needs one. `given` has what the row means, by column name. */
export function sampleRow(
  table: SQLiteTable,
  given: Record<string, unknown> = {},
): Record<string, unknown> {
  const columns = Object.entries(getTableColumns(table))
  return Object.fromEntries(
    columns.map(([name, column]) => [name, name in given ? given[name] : sample(column)]),
  )
}

/** Puts one row into a table that has none; what it refers to is a row that is there. */
export async function fillTable(store: Store, table: SQLiteTable): Promise<void> {
  if ((await store.read.select().from(table).limit(1)).length > 0) return
  const row = sampleRow(table)
  for (const { reference } of getTableConfig(table).foreignKeys) {
    const { columns, foreignTable } = reference()
    await fillTable(store, foreignTable)
    const [parent] = await store.read.select().from(foreignTable).limit(1)
    for (const { name } of columns) row[name] = parent?.id
  }
  await store.tx((tx) => tx.insert(table).values(row as never))
}

function sample(column: Column): unknown {
  if (!column.notNull) return null
  if (column.name.endsWith("_at")) return now()
  const type = postgresType(column)
  if (type === "uuid") return newId()
  if (type === "bigint") return 1
  if (type === "boolean") return true
  if (type === "bytea") return Buffer.from("bytes")
  return isPlain(column).encoded ? column.name : {}
}
