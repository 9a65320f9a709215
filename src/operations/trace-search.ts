import { and, asc, eq, gt, gte, lt, lte, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { auditLog } from "../audit-log/tables"
import { firstIdAt } from "../core/ids"
import { isoFrom, millisFrom, monotonic, nextTurn } from "../core/time"
import { behind, type FeedPosition } from "../events/feed"
import { events } from "../events/tables"
import { idempotency } from "../http/tables"
import { inboundEmails } from "../inbound/tables"
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

/** Ids of rows that name the person, some at a time. `goes_on` is asked between two looks. */
type Search = AsyncGenerator<string[], undefined>

export interface SearchedPerson {
  db: Reader
  account_id: string
  person: TracedPerson
  /** False: the search ends where it is. */
  goes_on: () => boolean
}

/** A row's key, and the texts in which the person may be named. */
interface SearchedRow {
  key: string
  text: string
}

/**
 * Whether a text names a person: the id anywhere, the address, number and external id as whole values of
 * JSON. External ids that differ in upper and lower case are different people.
 */
export function nameFinder(person: TracedPerson): (text: string) => boolean {
  const externals = namesIn(person, "external_id").map(
    (one) => `"external_id":${JSON.stringify(one)}`,
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

interface SearchPlan {
  isNamed: (row: SearchedRow) => boolean
  read: (after: string) => Promise<SearchedRow[]>
  /** ISO 8601: what was made later is left alone. Null where the key is no id. */
  until: string | null
}

async function* search({ goes_on }: SearchedPerson, { isNamed, read, until }: SearchPlan): Search {
  const end = until === null ? null : firstIdAt(millisFrom(until) + 1)
  for (let after = ""; goes_on(); ) {
    const rows = await read(after)
    const old = end === null ? rows : rows.filter(({ key }) => key.slice(-end.length) < end)
    const found = old.filter(isNamed).map(({ key }) => key)
    if (found.length > 0) yield found
    after = rows.at(-1)?.key ?? after
    if (old.length < AT_ONCE) return undefined
    await nextTurn()
  }
  return undefined
}

/** Requests that ran beside the erasure may write their log entries and events so much later. */
const LATE_MS = 30_000

const lateFor = ({ until }: TracedPerson): string => isoFrom(millisFrom(until) + LATE_MS)

function namedIn(person: TracedPerson): (row: SearchedRow) => boolean {
  const isNamed = nameFinder(person)
  return ({ text }) => isNamed(text)
}

/** The texts of a table that may name anybody (`store/life.ts`), as they are stored, JSON unread. */
const textOf = (table: SQLiteTable): SQL<string> =>
  sql.join(
    (lifeOf(table).personal?.searched ?? []).map(
      (name) => sql`coalesce(${columnOf(table, name)}, '')`,
    ),
    sql` || ' ' || `,
  ) as SQL<string>

interface WalkedRows extends Partial<SearchPlan> {
  id: SQLiteColumn
  among: SQL | undefined
}

/** In the order of the ids. */
async function* searchById(
  asked: SearchedPerson,
  { id, among, isNamed = namedIn(asked.person), until = asked.person.until }: WalkedRows,
): Search {
  const text = textOf(id.table as SQLiteTable)
  const read = async (after: string) => {
    const next = and(among, after === "" ? undefined : gt(id, after))
    const rows = asked.db.select({ key: id, text }).from(id.table).where(next)
    return (await rows.orderBy(asc(id)).limit(AT_ONCE)) as SearchedRow[]
  }
  yield* search(asked, { isNamed, read, until })
}

/** Messages with a copy to the person, or that name it in what lists show. */
export async function* searchMessages(asked: SearchedPerson): Search {
  const { id, project_id, channel } = messages
  for (const one of AUDIENCE_CHANNELS) {
    const among = and(eq(project_id, asked.person.project_id), eq(channel, one))
    yield* searchById(asked, { id, among })
  }
  return undefined
}

/** Received mails that name the person: reports of its mail, copies and answers of others. */
export function searchReceived(asked: SearchedPerson): Search {
  const { id, project_id } = inboundEmails
  return searchById(asked, { id, among: eq(project_id, asked.person.project_id) })
}

/** Entries of the audit log about the project. Those of the account and of other projects stay. */
export function searchAudit(asked: SearchedPerson): Search {
  const { id, account_id, project_id } = auditLog
  const { person } = asked
  const among = and(eq(account_id, asked.account_id), eq(project_id, person.project_id))
  return searchById(asked, { id, among, until: lateFor(person) })
}

/** Entries of the request log whose path names the person. */
export function searchRequests(asked: SearchedPerson): Search {
  const { id, project_id } = requestLog
  const { person } = asked
  const isNamed = ({ text }: SearchedRow) => pathNames(text, person)
  const among = eq(project_id, person.project_id)
  return searchById(asked, { id, among, isNamed, until: lateFor(person) })
}

/** Events about other things that name the person, such as those of old suppressions. */
export function searchEvents(asked: SearchedPerson): Search {
  const { db, person } = asked
  let place: FeedPosition | undefined
  const read = async () => {
    const { id, position, project_id } = events
    const rows = await db
      .select({ id, position, text: textOf(events) })
      .from(events)
      .where(and(eq(project_id, person.project_id), place && behind(place)))
      .orderBy(asc(position), asc(id))
      .limit(AT_ONCE)
    place = rows.at(-1)
    return rows.map((row) => ({ key: row.id, text: row.text }))
  }
  return search(asked, { isNamed: namedIn(person), read, until: lateFor(person) })
}

/** Answers that are kept for repeated requests. Their keys begin with the project. */
export function searchAnswers(asked: SearchedPerson): Search {
  const { request, answer, created_at } = idempotency
  const { person } = asked
  const old = lte(created_at, lateFor(person))
  const [first, last] = [`${person.project_id} `, `${person.project_id}!`]
  const read = async (after: string) => {
    const key = after === "" ? gte(request, first) : gt(request, after)
    const rows = asked.db.select({ key: request, text: answer }).from(idempotency)
    return await rows
      .where(and(key, lt(request, last), old))
      .orderBy(asc(request))
      .limit(AT_ONCE)
  }
  const inAnswer = namedIn(person)
  const isNamed = (row: SearchedRow) =>
    inAnswer(row) || pathNames(row.key.split(" ")[2] ?? "", person)
  return search(asked, { isNamed, read, until: null })
}

/** Whether a segment of a path is an id or external id of the person. The log keeps the beginning of a path. */
export function pathNames(path: string, person: TracedPerson): boolean {
  if (!path.includes("subscribers")) return false
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
