import { and, eq, getTableName, inArray, isNotNull, like, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { keyIdOf } from "../core/secrets"
import { projects } from "../identity/tables"
import { jobs } from "../jobs/tables"
import { HELD, LEASED, READY } from "../jobs/work-item"
import { mailboxMails } from "../mailbox/tables"
import { AUTH_SOURCE, OWN_SOURCE } from "../messages/status-changes"
import { messageContents, messages } from "../messages/tables"
import type { SealedLife } from "../store/life"
import type { Reader } from "../store/store"
import { ERASED, subscriberErased } from "./erase-subscriber"
import { columnOf, keyOf, tableLives } from "./table-lives"

/** A column with values that the master key seals. */
export interface SealedColumn extends Pick<SealedLife, "what" | "remedy" | "drop"> {
  /** The primary key, by which the rows are walked. */
  key: SQLiteColumn
  column: SQLiteColumn
  /** As it was given when the value was sealed. */
  contextOf: (key: string) => string
  /** The rows that may have one; without it those whose column is not null. */
  where?: ((db: Reader) => SQL | undefined) | undefined
}

type Finding = Partial<Pick<SealedColumn, "contextOf" | "where">>

/** Of some tables only a few rows have sealed values. */
const FEW = new Map<SQLiteColumn, Finding>([
  [messageContents.content, { where: ofUnreadMail }],
  [mailboxMails.raw, { where: (db) => inArray(mailboxMails.project_id, hiddenProjects(db)) }],
  [jobs.payload, { contextOf: () => ERASED, where: () => eq(jobs.name, subscriberErased.name) }],
])

/** Every sealed column there is. */
export const SEALED_COLUMNS: SealedColumn[] = tableLives.flatMap(({ table, sealed = {} }) =>
  Object.entries(sealed).flatMap(([name, its]) => {
    const [[key], column] = [keyOf(table), columnOf(table, name)]
    return key && column && its ? [sealedColumn(key, column, its)] : []
  }),
)

function sealedColumn(key: SQLiteColumn, column: SQLiteColumn, its: SealedLife): SealedColumn {
  const { as = column.name, plain_too, ...rest } = its
  const found: Finding = plain_too
    ? { contextOf: (of) => of, where: () => like(column, "v1.%") }
    : (FEW.get(column) ?? {})
  const contextOf = (of: string) => `${getTableName(column.table)}:${of}:${as}`
  return { ...rest, key, column, contextOf, ...found }
}

function hiddenProjects(db: Reader) {
  return db.select({ id: projects.id }).from(projects).where(eq(projects.hidden, true))
}

function ofUnreadMail(db: Reader) {
  const ours = inArray(messages.project_id, hiddenProjects(db))
  const idsWhere = (which: SQL | undefined) =>
    sql`SELECT ${messages.id} FROM ${messages} WHERE ${which}`
  const own = idsWhere(and(ours, eq(messages.source, OWN_SOURCE)))
  // That of sign-ins is sealed while it waits. A list of states would not use the index that each of them has.
  const waiting = WAITING.map((state) =>
    idsWhere(and(eq(messages.source, AUTH_SOURCE), sql`${messages.state} = ${sql.raw(state)}`)),
  )
  const all = sql.join([own, ...waiting], sql` UNION ALL `)
  return sql`${messageContents.message_id} IN (${all})`
}

const WAITING = [READY, LEASED, HELD].map(String)

/** The condition of the rows that are walked. */
export const mayBeSealed = (db: Reader, { column, where }: SealedColumn): SQL | undefined =>
  and(isNotNull(column), where?.(db) ?? sql`1 = 1`)

/** The sealed text in a value of a column; undefined for a value that is not sealed. */
export function sealedIn(value: unknown): string | undefined {
  const text =
    value instanceof Uint8Array
      ? Buffer.from(value).toString("latin1")
      : typeof value === "object" && value !== null && "sealed" in value
        ? value.sealed
        : value
  return typeof text === "string" && keyIdOf(text) !== undefined ? text : undefined
}

/** The same value with another sealed text in it. */
export function withSealed(value: unknown, sealed: string): unknown {
  if (value instanceof Uint8Array) return Buffer.from(sealed)
  return typeof value === "object" && value !== null ? { ...value, sealed } : sealed
}
