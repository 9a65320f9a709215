import { getTableColumns } from "drizzle-orm"
import { getTableConfig, type SQLiteColumn, type SQLiteTable } from "drizzle-orm/sqlite-core"
import type { Settings } from "../core/config"
import type { Retention } from "../identity/tables"
import { messages } from "../messages/tables"
import { declaredLives, lifeOf, type RetentionSetting, type RowEnd } from "../store/life"
import { firstTables } from "./table-files"

for (const table of firstTables) lifeOf(table) // throws where a file of tables is not read yet

/** Every table with its life. `table-files.ts` names a table of each file. */
export const tableLives = declaredLives()

/** The end that decides, for a table whose rows go with those of another. */
export function endOf(table: SQLiteTable): Exclude<RowEnd, "with row"> {
  const { ends } = lifeOf(table)
  return ends === "with row" ? endOf(leading(table)) : ends
}

/** The table whose rows decide about those of this one; itself where they end by themselves. */
export function leading(table: SQLiteTable): SQLiteTable {
  const { ends } = lifeOf(table)
  const [parent] = parentsOf(table)
  return ends === "with row" && parent ? leading(parent.table) : table
}

/** The columns of a table that name a row of another one, and that one. */
export const parentsOf = (table: SQLiteTable): { column: SQLiteColumn; table: SQLiteTable }[] =>
  Object.entries(lifeOf(table).names ?? {}).flatMap(([name, parents]) =>
    [parents ?? []].flat().map((parent) => ({
      column: columnOf(table, name) as SQLiteColumn,
      table: lifeOf(parent).table,
    })),
  )

export const columnOf = (table: SQLiteTable, name: string): SQLiteColumn | undefined =>
  getTableColumns(table)[name] as SQLiteColumn | undefined

/** The columns of other tables that name a row of this one by its id, where an index finds them by it. */
export const namedBy = (table: SQLiteTable): SQLiteColumn[] =>
  tableLives
    .flatMap((its) => parentsOf(its.table).filter((parent) => parent.table === table))
    .flatMap(({ column }) => (indexFrom(column) ? [column] : []))

/** What is deleted with a message. */
export const namedByMessages = namedBy(messages)

/** The columns of an index, or of the primary key, that begins with this column and has every row. */
export function indexFrom(column: SQLiteColumn): SQLiteColumn[] | undefined {
  const { indexes } = getTableConfig(column.table as SQLiteTable)
  const whole = indexes.filter(({ config }) => !config.where)
  const all = [keyOf(column.table as SQLiteTable), ...whole.map(({ config }) => config.columns)]
  return (all as SQLiteColumn[][]).find(([first]) => first?.name === column.name)
}

/** The columns of the primary key. */
export function keyOf(table: SQLiteTable): SQLiteColumn[] {
  const { primaryKeys, columns } = getTableConfig(table)
  return primaryKeys[0]?.columns ?? columns.filter(({ primary }) => primary)
}

/** The settings of the configuration that end rows. */
export type EndSettings = Pick<Settings, RetentionSetting>

/** For how long rows are kept, in the words of a person. `usual` has the days of a project without a setting. */
export function endText(table: SQLiteTable, usual: Retention, settings: EndSettings): string {
  const end = endOf(table)
  if (end === "never")
    return lifeOf(table).owner === "instance" ? "for ever" : "until somebody removes them"
  if (isSetting(end)) return settingText(end, settings[end])
  if (isDays(end)) return `${usual[end]} days (${end})`
  return end.slice("after ".length)
}

/** Whether a setting of the configuration says it. */
export const isSetting = (end: RowEnd): end is RetentionSetting => end.startsWith("retention.")

/** Whether a part of a project's setting `retention` says it. */
export const isDays = (end: RowEnd): end is keyof Retention => end.endsWith("_days")

const DAY_MS = 86_400_000

const settingText = (key: RetentionSetting, kept_ms: number | null) =>
  kept_ms === null ? `for ever (${key} is not set)` : `${kept_ms / DAY_MS} days (${key})`
