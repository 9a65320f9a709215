/**
 * The tables as drizzle-kit reads them for Postgres: each of `src/` again, with the types that its
 * columns have there. The server itself needs no second declaration.
 */
import { join } from "node:path"
import { type Column, getTableColumns, getTableName, is, sql } from "drizzle-orm"
import * as pg from "drizzle-orm/pg-core"
import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core"
import { postgresType } from "../../src/store/columns"

const root = join(import.meta.dir, "../..")

const declared = [...new Bun.Glob("src/**/tables.ts").scanSync(root)]
  .sort()
  .flatMap((path) => Object.entries(require(join(root, path)) as Record<string, unknown>))
  .filter((entry): entry is [string, SQLiteTable] => is(entry[1], SQLiteTable))

const made = new Map<SQLiteTable, pg.PgTable>()

/** Tables refer to each other, and a column finds the other table only when it is asked. */
function make(table: SQLiteTable) {
  const columns = Object.entries(getTableColumns(table)).map(([name, column]) => [
    name,
    builderOf(column),
  ])
  made.set(
    table,
    pg.pgTable(getTableName(table), Object.fromEntries(columns), extrasOf(table)) as never,
  )
}

/** Keys sort by byte, whatever the locale of the database is. */
function builderOf(column: Column) {
  const type = postgresType(column)
  const dataType = () => (type === "text" && column.primary ? 'text COLLATE "C"' : type)
  const builder = pg.customType({ dataType })(column.name)
  if (column.primary) builder.primaryKey()
  if (column.notNull) builder.notNull()
  if (column.hasDefault) builder.default(defaultOf(column))
  return builder
}

/** That of `position` is the number of the transaction. */
function defaultOf({ name, default: value }: Column) {
  if (name === "position") return sql`(pg_current_xact_id()::text)::bigint`
  if (typeof value === "boolean") return sql.raw(`${value}`)
  return sql.raw(`'${typeof value === "string" ? value : JSON.stringify(value)}'`)
}

const extrasOf = (table: SQLiteTable) => (own: Record<string, pg.PgColumn>) => {
  const { indexes, primaryKeys, foreignKeys } = getTableConfig(table)
  const same = (columns: { name: string }[]) =>
    columns.map(({ name }) => own[name]) as [pg.PgColumn]
  return [
    ...indexes.map(({ config: { name, unique, columns, where } }) => {
      const index = (unique ? pg.uniqueIndex : pg.index)(name).on(...same(columns as never))
      return where ? index.where(where) : index
    }),
    ...primaryKeys.map(({ columns }) => pg.primaryKey({ columns: same(columns) })),
    ...foreignKeys.map((key) => {
      const { columns, foreignTable, foreignColumns } = key.reference()
      const theirs = getTableColumns(made.get(foreignTable) as never) as Record<string, pg.PgColumn>
      const foreign = foreignColumns.map(({ name }) => theirs[name]) as [pg.PgColumn]
      const built = pg.foreignKey({ columns: same(columns), foreignColumns: foreign })
      return key.onDelete ? built.onDelete(key.onDelete) : built
    }),
  ]
}

for (const [, table] of declared) make(table)

/** By the names under which `src/` exports them. */
export const postgresTables = Object.fromEntries(
  declared.map(([name, table]) => [name, made.get(table)]),
)
