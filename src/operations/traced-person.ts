import {
  and,
  asc,
  eq,
  gt,
  inArray,
  isNull,
  like,
  lt,
  ne,
  notInArray,
  or,
  type SQL,
  sql,
} from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { users } from "../auth/tables"
import { consents } from "../consents/tables"
import { firstIdAt, isUuid } from "../core/ids"
import { millisFrom } from "../core/time"
import { events } from "../events/tables"
import { havingMessages } from "../messages/message-list"
import { messages } from "../messages/tables"
import { lifeOf, type PersonalName } from "../store/life"
import { rowById } from "../store/rows"
import type { Reader } from "../store/store"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { mergedIds, mergedInto } from "../subscribers/merged-subscribers"
import { mergedSubscribers, subscribers } from "../subscribers/tables"
import { unmovedTo } from "./merged-messages"
import { columnOf } from "./table-lives"

/** The names of one subscriber. */
interface PersonNames {
  subscriber_id: string
  /** Null where another subscriber has it now. */
  external_id: string | null
  /** In comparable form; null where there is none, or where another subscriber has it, too. */
  address: string | null
  phone: string | null
}

/** A person, by everything that rows elsewhere may name it by. */
export interface TracedPerson extends PersonNames {
  project_id: string
  /** The names of subscribers that were merged into this one, and of the end users that the person is. */
  former?: PersonNames[]
  /** ISO 8601: what was made later is not looked at. */
  until: string
}

type NamedRow = Pick<SubscriberRow, "id" | "project_id" | "external_id" | "email_key" | "phone">

/**
 * The person that a subscriber is, with the names of those that were merged into it, and of the end users that are
 * linked to it, or have its address or number. What it shares with
 * another subscriber does not name it. A name that one subscriber has, and another one only had before a
 * merge, belongs to the first one.
 */
export async function personOf(db: Reader, row: NamedRow, until: string): Promise<TracedPerson> {
  const { id, project_id } = row
  const isHeld = ({ field, value }: SharedName) => {
    const ours = and(eq(subscribers.project_id, project_id), eq(subscribers[field], value))
    return isThere(db, subscribers.id, and(ours, ne(subscribers.id, id)))
  }
  /** Also where it was the name of a subscriber that was merged into another one. */
  const isTaken = async (name: SharedName) => {
    const { [name.field]: column, project_id: owner, subscriber_id } = mergedSubscribers
    const ours = and(eq(owner, project_id), eq(column, name.value), ne(subscriber_id, id))
    return (await isHeld(name)) || isThere(db, mergedSubscribers.id, ours)
  }
  const former: PersonNames[] = []
  for (const one of await mergedInto(db, id)) former.push(await namesOf(one, isTaken))
  const person = { project_id, until, ...(await namesOf(row, isHeld)), former }
  const theirs = await db.select().from(users).where(ofPerson(users, person))
  for (const user of theirs) {
    const { email_key, phone_number: phone } = user
    former.push(await namesOf({ id: user.id, external_id: user.id, email_key, phone }, isTaken))
  }
  return person
}

interface SharedName {
  field: "external_id" | "email_key" | "phone"
  value: string
}

type NameCheck = (name: SharedName) => Promise<boolean>

async function namesOf(
  row: Omit<NamedRow, "project_id">,
  isShared: NameCheck,
): Promise<PersonNames> {
  const own = async (field: SharedName["field"]) => {
    const value = row[field]
    return value === null || (await isShared({ field, value })) ? null : value
  }
  return {
    subscriber_id: row.id,
    external_id: await own("external_id"),
    address: await own("email_key"),
    phone: await own("phone"),
  }
}

/** Whether any row fulfils the condition. */
const isThere = async (db: Reader, id: SQLiteColumn, where: SQL | undefined): Promise<boolean> =>
  (await db.select({ id }).from(id.table).where(where).limit(1)).length > 0

/** Every value of one kind that names the person, each once. */
export const namesIn = (person: TracedPerson, field: keyof PersonNames): string[] => [
  ...new Set([person, ...(person.former ?? [])].flatMap((one) => one[field] ?? [])),
]

/** Rows of one look. */
const AT_ONCE = 200

type IdColumns = { id: SQLiteColumn; among: (SQL | undefined)[] }

/**
 * The ids of rows that an index finds by any of the conditions, the oldest first, each once. A row may pass
 * from one condition to a later one meanwhile.
 */
async function* idsWhere(
  db: Reader,
  { id, among }: IdColumns,
  until: string,
): AsyncGenerator<string[]> {
  const end = firstIdAt(millisFrom(until) + 1)
  for (let after = ""; ; ) {
    const found = new Set<string>()
    for (const one of among) {
      const rows = await db
        .select({ id })
        .from(id.table)
        .where(and(one, lt(id, end), after === "" ? undefined : gt(id, after)))
        .orderBy(asc(id))
        .limit(AT_ONCE)
      for (const row of rows) found.add(String(row.id))
    }
    const ids = [...found].sort().slice(0, AT_ONCE)
    if (ids.length > 0) yield ids
    if (ids.length < AT_ONCE) return
    after = ids.at(-1) ?? after
  }
}

/** The messages to a person, some at a time, each once. */
export async function* messagesOf(db: Reader, person: TracedPerson): AsyncGenerator<string[]> {
  const { project_id, until } = person
  const { id, address, subscriber_id, user_id } = messages
  const ours = eq(messages.project_id, project_id)
  const [last = "", ...former] = namesIn(person, "subscriber_id")
  const owners = [...former, last] // a job may be moving messages to the ones behind
  const ofOwners = owners.map((one) => and(ours, eq(subscriber_id, one)))
  yield* idsWhere(db, { id, among: ofOwners }, until)
  const unnamed = or(isNull(subscriber_id), notInArray(subscriber_id, owners))
  for (const one of [...namesIn(person, "address"), ...namesIn(person, "phone")]) {
    yield* idsWhere(db, { id, among: [and(ours, eq(address, one), unnamed)] }, until)
  }
  // To a device of theirs, of before they were a subscriber.
  for (const one of namesIn(person, "external_id"))
    yield* idsWhere(db, { id, among: [and(ours, eq(user_id, one), unnamed)] }, until)
}

/** Rows of one table that name the person in a column that says so (`store/life.ts`), the oldest first. */
export async function* foundIn(
  db: Reader,
  id: SQLiteColumn,
  person: TracedPerson,
): AsyncGenerator<string[]> {
  for (const one of conditionsOf(id.table as SQLiteTable, person)) {
    yield* idsWhere(db, { id, among: [one] }, person.until)
  }
}

/** One condition for each name. */
const conditionsOf = (table: SQLiteTable, person: TracedPerson) =>
  namedColumns(table).flatMap(({ column, field }) =>
    namesIn(person, field).map((name) => and(inProject(table, person), eq(column, name))),
  )

/** Selects the rows of a table that name the person. `by` limits the kinds of names; without it every kind counts. */
export function ofPerson(table: SQLiteTable, person: TracedPerson, ...by: PersonalName[]) {
  const named = namedColumns(table).filter(({ field }) => by.length === 0 || by.includes(field))
  const any = named.map(({ column, field }) => inArray(column, namesIn(person, field)))
  return and(inProject(table, person), or(...any) ?? sql`1 = 0`)
}

const inProject = (table: SQLiteTable, { project_id }: TracedPerson) =>
  eq(columnOf(table, "project_id") as SQLiteColumn, project_id)

const namedColumns = (table: SQLiteTable) =>
  Object.entries(lifeOf(table).personal?.found_by ?? {}).flatMap(([field, name]) => {
    const column = name && columnOf(table, name)
    return column ? [{ column, field: field as PersonalName }] : []
  })

/** A subscriber that was removed, and not erased. */
export interface DeletedSubscriber {
  id: string
  project_id: string
}

/**
 * The deleted subscriber that had this id, where the project still holds consents, messages or events of it.
 * Undefined where there is nothing, where it was erased or merged, or where it is still there.
 */
export async function lookupDeleted(
  db: Reader,
  project_id: string,
  id: string,
): Promise<DeletedSubscriber | undefined> {
  if (!isUuid(id)) return undefined
  if (await rowById(db, subscribers, id)) return undefined
  if ((await mergedIds(db, { project_id, ids: [id] })).length > 0) return undefined
  return (await holdsAnything(db, { id, project_id })) ? { id, project_id } : undefined
}

async function holdsAnything(db: Reader, { id, project_id }: DeletedSubscriber): Promise<boolean> {
  const chain = and(eq(consents.project_id, project_id), eq(consents.subscriber_id, id))
  if (await isThere(db, consents.id, and(chain, eq(consents.action, "erased")))) return false
  if (await isThere(db, consents.id, chain)) return true
  if ((await havingMessages(db, project_id, [id])).length > 0) return true
  // Other things have events, too, and ids of the same form.
  const ofPeople = like(events.type, "subscriber.%")
  const about = and(eq(events.subject_id, id), eq(events.project_id, project_id), ofPeople)
  return isThere(db, events.id, about)
}

/** Of a deleted subscriber only the id is known, and those of subscribers whose messages are on their way to it. */
export async function deletedPerson(
  db: Reader,
  { id, project_id }: DeletedSubscriber,
  until: string,
): Promise<TracedPerson> {
  const former = await unmovedTo(db, project_id, id)
  return { project_id, until, ...nameless(id), former: former.map(nameless) }
}

const nameless = (subscriber_id: string) => ({
  ...{ subscriber_id, external_id: null, address: null, phone: null },
})
