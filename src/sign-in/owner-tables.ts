import type { BuildColumns } from "drizzle-orm"
import type {
  SQLiteColumn,
  SQLiteColumnBuilderBase,
  SQLiteTable,
  SQLiteTableWithColumns,
} from "drizzle-orm/sqlite-core"

type ColumnSet = Record<string, SQLiteColumnBuilderBase>

/** A table of some owner: it has a set of columns of the kit, and perhaps others. */
export type OwnerTable<Columns> = SQLiteTable & Record<keyof Columns, SQLiteColumn>

/** What the owner adds to a new row, beside what the kit writes. */
export type OwnColumns<Table extends SQLiteTable, Written extends string> = Omit<
  Table["$inferInsert"],
  Written
>

type KitTable<Columns extends ColumnSet> = SQLiteTableWithColumns<{
  name: string
  schema: undefined
  columns: BuildColumns<string, Columns, "sqlite">
  dialect: "sqlite"
}>

/** The table of an owner as the kit sees it. What else its rows have, only the owner knows. */
export const kitTable = <Columns extends ColumnSet>(
  table: OwnerTable<Columns>,
): KitTable<Columns> => table as unknown as KitTable<Columns>
