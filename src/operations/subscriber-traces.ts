import { and, asc, eq, gt, isNull, lt, ne, notInArray, or, type SQL } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import { inboundEmails } from "../inbound/tables"
import { mailboxRecipients } from "../mailbox/tables"
import { messages } from "../messages/tables"
import type { Reader } from "../store/store"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { mergedInto } from "../subscribers/merged-subscribers"
import { mergedSubscribers, subscribers } from "../subscribers/tables"

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
  /** The names of subscribers that were merged into this one. */
  former?: PersonNames[]
  /** ISO 8601: what was made later is not looked at. */
  until: string
}

type NamedRow = Pick<SubscriberRow, "id" | "project_id" | "external_id" | "email_key" | "phone">

/**
 * The person that a subscriber is, with the names of those that were merged into it. What it shares with
 * another subscriber does not name it. A name that one subscriber has, and another one only had before a
 * merge, belongs to the first one.
 */
export async function personOf(db: Reader, row: NamedRow, until: string): Promise<TracedPerson> {
  const { id, project_id } = row
  const isHeld = (name: SharedName) => isHeldByOther(db, row, name)
  const isTaken = async (name: SharedName) => (await isHeld(name)) || wasOfOther(db, row, name)
  const former: PersonNames[] = []
  for (const one of await mergedInto(db, id)) former.push(await namesOf(one, isTaken))
  return { project_id, until, ...(await namesOf(row, isHeld)), former }
}

interface SharedName {
  field: "external_id" | "email_key" | "phone"
  value: string
}

type NameCheck = (name: SharedName) => Promise<boolean>

async function namesOf(row: NamedRow, isShared: NameCheck): Promise<PersonNames> {
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

async function isHeldByOther(
  db: Reader,
  { id: owner, project_id }: NamedRow,
  { field, value }: SharedName,
): Promise<boolean> {
  const { id } = subscribers
  const ours = and(eq(subscribers.project_id, project_id), eq(subscribers[field], value))
  const others = db.select({ id }).from(subscribers)
  return (await others.where(and(ours, ne(id, owner))).limit(1)).length > 0
}

/** Whether it was the name of a subscriber that was merged into another one than the owner. */
async function wasOfOther(
  db: Reader,
  { id: owner, project_id }: NamedRow,
  { field, value }: SharedName,
): Promise<boolean> {
  const { id, subscriber_id } = mergedSubscribers
  const ours = eq(mergedSubscribers.project_id, project_id)
  const same = and(ours, eq(mergedSubscribers[field], value), ne(subscriber_id, owner))
  return (await db.select({ id }).from(mergedSubscribers).where(same).limit(1)).length > 0
}

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
): AsyncGenerator<string[], undefined> {
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
    if (ids.length < AT_ONCE) return undefined
    after = ids.at(-1) ?? after
  }
}

/** The messages to a person, some at a time, each once. */
export async function* messagesOf(
  db: Reader,
  person: TracedPerson,
): AsyncGenerator<string[], undefined> {
  const { project_id, until } = person
  const { id, recipient, subscriber_id } = messages
  const ours = eq(messages.project_id, project_id)
  const [last = "", ...former] = namesIn(person, "subscriber_id")
  const owners = [...former, last] // a job may be moving messages to the ones behind
  const ofOwners = owners.map((one) => and(ours, eq(subscriber_id, one)))
  yield* idsWhere(db, { id, among: ofOwners }, until)
  const unnamed = or(isNull(subscriber_id), notInArray(subscriber_id, owners))
  for (const one of [...namesIn(person, "address"), ...namesIn(person, "phone")]) {
    yield* idsWhere(db, { id, among: [and(ours, eq(recipient, one), unnamed)] }, until)
  }
}

/** Received mails from a person, some at a time. */
export async function* receivedFrom(
  db: Reader,
  person: TracedPerson,
): AsyncGenerator<string[], undefined> {
  const { id, project_id, from_email } = inboundEmails
  const ours = eq(project_id, person.project_id)
  for (const one of namesIn(person, "address")) {
    yield* idsWhere(db, { id, among: [and(ours, eq(from_email, one))] }, person.until)
  }
}

/** Mails in the embedded mailbox to a person, some at a time. */
export async function* capturesOf(
  db: Reader,
  person: TracedPerson,
): AsyncGenerator<string[], undefined> {
  const { mail_id: id, project_id, address } = mailboxRecipients
  const ours = eq(project_id, person.project_id)
  for (const one of namesIn(person, "address")) {
    yield* idsWhere(db, { id, among: [and(ours, eq(address, one))] }, person.until)
  }
}
