import { eq, getTableColumns, gte, lt, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { firstIdAt } from "../core/ids"
import { millis } from "../core/time"
import { fanOuts } from "../fan-out/tables"
import { inboundContents, inboundEmails, inboundRaws } from "../inbound/tables"
import { mailboxMails } from "../mailbox/tables"
import { messageContents, messageRaws, messages } from "../messages/tables"
import type { Reader } from "../store/store"

const DAY_MS = 86_400_000

/** Growth is the mean of so many days. */
const RECENT_DAYS = 7

/** In how many days something goes. */
export const HORIZONS = [1, 7, 30] as const

/** Rows of one project in one table. A weight is a number of bytes, or of rows where all are alike. */
export interface ProjectWeight {
  /** Null for what belongs to no project. */
  project_id: string | null
  rows: number
  weight: number
  /** Of what was made in the last seven days, a day. */
  recent: number
  /** Of what ends within each of the horizons. */
  due: [number, number, number]
}

/** What says how large a row is, where rows differ by more than a few times. */
const LARGE = new Map<SQLiteTable, SQLiteColumn>([
  [messageContents, messageContents.content],
  [messageRaws, messageRaws.raw],
  [mailboxMails, mailboxMails.raw],
  [inboundContents, inboundContents.content],
  [inboundRaws, inboundRaws.raw],
])

/** By which column a row names what it belongs to, and that table. An id also says how old it is. */
const PARENTS: [name: string, parent: SQLiteTable][] = [
  ["message_id", messages],
  ["inbound_id", inboundEmails],
  ["mail_id", mailboxMails],
  ["fan_out_id", fanOuts],
]

const columnOf = (table: SQLiteTable, name: string) =>
  getTableColumns(table)[name] as SQLiteColumn | undefined

/** The id that was made with the row. */
function ageColumn(table: SQLiteTable): SQLiteColumn | undefined {
  const parent = PARENTS.map(([name]) => columnOf(table, name)).find(Boolean)
  const own = columnOf(table, "id")
  return parent && !own ? parent : own?.columnType === "SQLiteCustomColumn" ? own : parent
}

/**
 * The weights of a table by project. `kept_ms` is how long its rows are kept; without it none of them
 * ends by itself.
 */
export async function weightsOf(
  db: Reader,
  table: SQLiteTable,
  kept_ms: number | undefined,
): Promise<ProjectWeight[]> {
  const age = ageColumn(table)
  const weight = weightOf(db, table)
  const sumOf = (which: SQL | undefined) =>
    which ? sql<number>`sum(CASE WHEN ${which} THEN ${weight} ELSE 0 END)` : sql<number>`0`
  const isBefore = (at_ms: number) => age && lt(age, idAt(age, at_ms))
  const dueIn = (days: number) =>
    kept_ms === undefined ? undefined : isBefore(millis() + days * DAY_MS - kept_ms)
  const [day, week, month] = HORIZONS
  const own = columnOf(table, "project_id")
  const [name, parent] = PARENTS.find(([column]) => columnOf(table, column)) ?? []
  const theirs = own ?? (parent && columnOf(parent, "project_id"))
  const since = millis() - RECENT_DAYS * DAY_MS
  const query = db
    .select({
      project_id: theirs ? sql<string | null>`${theirs}`.mapWith(theirs) : sql<null>`NULL`,
      rows: sql<number>`count(*)`,
      weight: sql<number>`sum(${weight})`,
      recent: sumOf(age && gte(age, idAt(age, since))),
      day: sumOf(dueIn(day)),
      week: sumOf(dueIn(week)),
      month: sumOf(dueIn(month)),
    })
    .from(table)
  const link = name && columnOf(table, name)
  const id = parent && columnOf(parent, "id")
  const joined = !own && parent && link && id ? query.leftJoin(parent, eq(link, id)) : query
  const rows = await (theirs ? joined.groupBy(theirs) : joined)
  return rows.map((row) => ({
    project_id: row.project_id as string | null,
    rows: Number(row.rows),
    weight: Number(row.weight ?? 0),
    recent: Number(row.recent ?? 0) / RECENT_DAYS,
    due: [Number(row.day ?? 0), Number(row.week ?? 0), Number(row.month ?? 0)],
  }))
}

/** The length of a large value, which neither engine has to read for it. */
function weightOf(db: Reader, table: SQLiteTable): SQL {
  const column = LARGE.get(table)
  if (!column) return sql`1`
  return db.isAlone ? sql`octet_length(${column})` : sql`pg_column_size(${column})`
}

/** Events have their prefix in code only. */
const idAt = (column: SQLiteColumn, at_ms: number): string =>
  column.table && isEvent(column) ? `evt_${firstIdAt(at_ms)}` : firstIdAt(at_ms)

function isEvent(column: SQLiteColumn): boolean {
  try {
    column.mapToDriverValue(firstIdAt(0))
    return false
  } catch {
    return true
  }
}
