import { and, asc, eq, gt, gte, lt, lte, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { auditLog } from "../audit-log/tables"
import { firstIdAt } from "../core/ids"
import { isoFrom, millisFrom, monotonic, nextTurn } from "../core/time"
import { devices } from "../devices/tables"
import { behind } from "../events/feed"
import { events } from "../events/tables"
import { idempotency } from "../http/tables"
import { inboundEmails } from "../inbound/tables"
import { inboxContents } from "../inbox/tables"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { messages } from "../messages/tables"
import { requestLog } from "../request-log/tables"
import { lifeOf } from "../store/life"
import type { Reader } from "../store/store"
import { columnOf } from "./table-lives"
import { namesIn, type TracedPerson } from "./traced-person"

// Rows that no index finds by a person: they are read in their order, and their texts are looked at.

/** Rows of one look, which holds the thread for a few milliseconds. */
const AT_ONCE = 500

interface SearchedPerson {
  db: Reader
  account_id: string
  person: TracedPerson
  /** Asked between two looks. False: the search ends where it is. */
  goes_on: () => boolean
}

interface SearchedRow {
  key: string
  /** In which the person may be named. */
  text: string
  /** The first column of the walk. */
  at: unknown
}

interface SearchedRows {
  key: SQLiteColumn
  among: SQL | undefined
  /** Without it they are in the order of the key. */
  order?: SQLiteColumn[]
  behind?: (last: SearchedRow) => SQL | undefined
  isNamed?: (row: SearchedRow) => boolean
  /** What was made later is left alone. Null where the key is no id. Default: when the person was looked up. */
  until?: string | null
}

/** Requests that ran beside the erasure may write their log entries and events so much later. */
const LATE_MS = 30_000

/** By the name of what a row is. */
export function searchedRows({ account_id, person }: SearchedPerson) {
  const { project_id } = person
  const late = isoFrom(millisFrom(person.until) + LATE_MS)
  const of = (column: SQLiteColumn) => eq(column, project_id)
  const isNamed = nameFinder(person)
  const inPath = (path: string) => pathNames(path, person)
  return {
    /** With a copy to the person, or that name it in what lists show. */
    messages: AUDIENCE_CHANNELS.map((channel): SearchedRows => {
      const among = and(of(messages.project_id), eq(messages.channel, channel))
      return { key: messages.id, among }
    }),
    /** Of others, or of nobody any more: their apps may have written the name of a person into them. */
    devices: { key: devices.id, among: of(devices.project_id) },
    /** What messages to others say in their inboxes. */
    inbox: { key: inboxContents.id, among: of(inboxContents.project_id) },
    /** Reports of its mail, copies and answers of others. */
    received: { key: inboundEmails.id, among: of(inboundEmails.project_id) },
    /** About other things, such as those of old suppressions. */
    events: {
      ...{ key: events.id, among: of(events.project_id), until: late },
      order: [events.position, events.id],
      behind: ({ key: id, at }) => behind({ id, position: at as number }),
    },
    /** Answers that are kept for repeated requests. Their keys begin with the project. */
    answers: {
      key: idempotency.request,
      among: and(
        gte(idempotency.request, `${project_id} `),
        lt(idempotency.request, `${project_id}!`),
        lte(idempotency.created_at, late),
      ),
      isNamed: ({ key, text }) => isNamed(text) || inPath(key.split(" ")[2] ?? ""),
      until: null,
    },
    requests: {
      ...{ key: requestLog.id, among: of(requestLog.project_id), until: late },
      isNamed: ({ text }) => inPath(text),
    },
    /** About the project. Entries of the account and of other projects stay. */
    audit: {
      ...{ key: auditLog.id, until: late },
      among: and(eq(auditLog.account_id, account_id), of(auditLog.project_id)),
    },
  } satisfies Record<string, SearchedRows | SearchedRows[]>
}

/** The keys of the rows that name the person, some at a time. */
export async function* search(
  { db, person, goes_on }: SearchedPerson,
  { key, among, order = [key], until = person.until, ...plan }: SearchedRows,
): AsyncGenerator<string[]> {
  const finds = nameFinder(person)
  const {
    behind: isBehind = (last: SearchedRow) => gt(key, last.key),
    isNamed = ({ text }: SearchedRow) => finds(text),
  } = plan
  const end = until === null ? null : firstIdAt(millisFrom(until) + 1)
  const columns = { key, at: order[0] ?? key, text: textOf(key.table as SQLiteTable) }
  for (let last: SearchedRow | undefined; goes_on(); ) {
    const next = and(among, last && isBehind(last))
    const read = db.select(columns).from(key.table).where(next)
    const rows = (await read.orderBy(...order.map(asc)).limit(AT_ONCE)) as SearchedRow[]
    const old = end === null ? rows : rows.filter((row) => row.key.slice(-end.length) < end)
    const found = old.filter(isNamed).map((row) => row.key)
    if (found.length > 0) yield found
    last = rows.at(-1)
    if (old.length < AT_ONCE) return
    await nextTurn()
  }
}

/** The texts of a table that may name anybody (`store/life.ts`), as they are stored, JSON unread. */
const textOf = (table: SQLiteTable): SQL<string> =>
  sql.join(
    (lifeOf(table).personal?.searched ?? []).map(
      (name) => sql`coalesce(${columnOf(table, name)}, '')`,
    ),
    sql` || ' ' || `,
  ) as SQL<string>

/**
 * Whether a text names a person: the id anywhere, the address, number and external id as whole values of
 * JSON. External ids that differ in upper and lower case are different people.
 */
export function nameFinder(person: TracedPerson): (text: string) => boolean {
  const externals = namesIn(person, "external_id").flatMap((one) =>
    ["external_id", "user_id"].map((field) => `"${field}":${JSON.stringify(one)}`),
  )
  const values = [...namesIn(person, "address"), ...namesIn(person, "phone")]
  const ids = namesIn(person, "subscriber_id")
  const names = [...ids, ...values.map((one) => JSON.stringify(one).toLowerCase())]
  return (text) => {
    if (externals.some((one) => text.includes(one))) return true
    const lower = text.toLowerCase()
    return names.some((name) => lower.includes(name))
  }
}

/** Whether a segment of a path is an id or external id of the person. The log keeps the beginning of a path. */
function pathNames(path: string, person: TracedPerson): boolean {
  if (!/subscribers|devices|auth\/users/.test(path)) return false
  const externals = namesIn(person, "external_id")
  const names = new Set([...namesIn(person, "subscriber_id"), ...externals])
  const segments = path.split("/").slice(3)
  return segments.some((segment, at) => {
    const name = decoded(segment)
    if (names.has(name)) return true
    const is_cut = at === segments.length - 1 && path.length >= LOGGED_CHARACTERS
    return is_cut && name !== "" && externals.some((one) => one.startsWith(name))
  })
}

/** Of a path, in the request log. */
const LOGGED_CHARACTERS = 200

/** What was cut inside of an escape ends before it. */
function decoded(segment: string): string {
  for (let length = segment.length; length > 0; length--) {
    try {
      return decodeURIComponent(segment.slice(0, length))
    } catch {
      // One character less.
    }
  }
  return ""
}

/** A search that ends after so many seconds; what is left is for the job that comes later. */
export function within(seconds: number): () => boolean {
  const end = monotonic() + seconds * 1000
  return () => monotonic() < end
}
