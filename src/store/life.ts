import { getTableName, type SQL } from "drizzle-orm"
import type { SQLiteTable } from "drizzle-orm/sqlite-core"

/** The owner of rows: they go with it at the latest. */
type RowOwner = "project" | "account" | "user" | "instance"

/**
 * How the rows of a table end. Rows of open work stay, however old they are.
 * - `never`: when a person removes them, at the latest with their owner.
 * - `with row`: with the row that they name (`names`).
 * - `messages_days` and the like: by themselves, after this part of a project's setting `retention`.
 * - `retention.request_log` and the like: by themselves, after this setting of the configuration.
 * - `after …`: by themselves, this long after they were made, or were over.
 */
export type RowEnd = "never" | "with row" | RetentionDays | RetentionSetting | `after ${string}`

/** The parts of a project's setting `retention`. */
export type RetentionDays =
  | "messages_days"
  /** Contents, sent bytes and attachments; the message itself stays. */
  | "bodies_days"
  /** Received mail, with its contents. */
  | "inbound_days"
  | "webhook_deliveries_days"
  /** Where there are endpoints, at least as long as their deliveries, which show them. */
  | "events_days"

export type RetentionSetting = "retention.request_log" | "retention.audit_log"

type ColumnName<Table extends SQLiteTable> = keyof Table["$inferSelect"] & string

/** What holds for the rows of a table, beside its declaration. What others do with rows follows from it. */
interface Life<Table extends SQLiteTable = SQLiteTable> {
  /** Rows with a column `project_id` or `account_id` are found by it, the others by the row that they name. */
  owner: RowOwner
  ends: RowEnd
  /** The tables whose rows a column names by their id, and with which its rows go. The first one decides. */
  names?: { [Name in ColumnName<Table>]?: string | string[] }
  /** The columns with values that the master key seals. Each file that seals has its column here, or in none. */
  sealed?: { [Name in ColumnName<Table>]?: SealedLife }
  /** The totals that are kept of the rows, under the id of their owner (`store/counters.ts`). */
  counts?: CountLife<ColumnName<Table>>
  /** Where the rows tell of a person. An export, an erasure and a search read it. */
  personal?: PersonalLife<ColumnName<Table>>
  /** A row may be written when its owner is gone already, so one without an owner is no damage. */
  late?: true
}

interface CountLife<Name extends string> {
  /** The counter of the rows. */
  name: string
  /** Further counters, one for each value of a column, or of two: `<name>.<column>.<value>`, and `+` between two. */
  by?: (Name | `${Name}+${Name}`)[]
  /** The rows that count; without it all. */
  where?: SQL
  /** The counter of what the rows store, and the bytes of a row. */
  bytes?: { name: string; of: SQL }
  /** The counter of the rows is that of another table: only those by value are of this one. */
  of_another?: true
}

/** By what a row may name a person. */
export type PersonalName = "subscriber_id" | "external_id" | "address" | "phone"

interface PersonalLife<Name extends string> {
  /** The column that has such a name. An index of the project finds its rows. */
  found_by?: { [Field in PersonalName]?: Name }
  /** Columns with texts that may name anybody: only a search finds these rows. */
  searched?: Name[]
}

/** What is sealed, and what becomes of it where the key is lost. */
export interface SealedLife {
  /** For people: what it is, and what helps where the key is lost. */
  what: string
  remedy: string
  /** What goes on without the old values: they are dropped with their rows, or become null. */
  drop?: "row" | "value"
  /** A seal is bound to `<table>:<key>:<column>`. This is another word in place of the column's name. */
  as?: string
  /** Some values are plain, and the seal is bound to the key of the row alone. */
  plain_too?: true
}

const lives = new Map<string, { table: SQLiteTable } & Life>()

/** Declares the life of a table. It stands behind the table in its `tables.ts`. */
export function life<Table extends SQLiteTable>(table: Table, its: Life<Table>): void {
  lives.set(getTableName(table), { table, ...(its as Life) })
}

/** Every declared life, in the order of the tables' names. `operations/table-lives.ts` loads them all. */
export const declaredLives = () =>
  [...lives].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, its]) => its)

/** Throws where the table has no life. */
export function lifeOf(table: SQLiteTable | string): { table: SQLiteTable } & Life {
  const name = typeof table === "string" ? table : getTableName(table)
  const found = lives.get(name)
  if (!found) throw new Error(`the table ${name} has no life (store/life.ts)`)
  return found
}
