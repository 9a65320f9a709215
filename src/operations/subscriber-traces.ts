import { and, asc, eq, gt, isNull, lt, ne, not, or, type SQL } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import { inboundEmails } from "../inbound/tables"
import { mailboxRecipients } from "../mailbox/tables"
import { messages } from "../messages/tables"
import type { Reader } from "../store/store"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { subscribers } from "../subscribers/tables"

/** A person, by everything that rows elsewhere may name it by. */
export interface TracedPerson {
  project_id: string
  subscriber_id: string
  external_id: string
  /** In comparable form; null where there is none, or where another subscriber has it, too. */
  address: string | null
  phone: string | null
  /** ISO 8601: what was made later is not looked at. */
  until: string
}

/** The person that a subscriber is. What it shares with another subscriber does not name it. */
export async function personOf(
  db: Reader,
  row: Pick<SubscriberRow, "id" | "project_id" | "external_id" | "email_key" | "phone">,
  until: string,
): Promise<TracedPerson> {
  const { id: subscriber_id, project_id, external_id, email_key, phone } = row
  const isShared = async (column: SQLiteColumn, value: string | null) => {
    if (value === null) return false
    const same = and(eq(column, value), ne(subscribers.id, subscriber_id))
    const others = db.select({ id: subscribers.id }).from(subscribers)
    const found = await others.where(and(eq(subscribers.project_id, project_id), same)).limit(1)
    return found.length > 0
  }
  return {
    ...{ project_id, subscriber_id, external_id, until },
    address: (await isShared(subscribers.email_key, email_key)) ? null : email_key,
    phone: (await isShared(subscribers.phone, phone)) ? null : phone,
  }
}

/** Rows of one look. */
const AT_ONCE = 200

type IdColumns = { id: SQLiteColumn; among: SQL | undefined }

/** The ids of rows that an index finds, the oldest first. */
async function* idsWhere(
  db: Reader,
  { id, among }: IdColumns,
  until: string,
): AsyncGenerator<string[], undefined> {
  const end = firstIdAt(millisFrom(until) + 1)
  for (let after = ""; ; ) {
    const rows = await db
      .select({ id })
      .from(id.table)
      .where(and(among, lt(id, end), after === "" ? undefined : gt(id, after)))
      .orderBy(asc(id))
      .limit(AT_ONCE)
    const ids = rows.map((row) => String(row.id))
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
  const { project_id, subscriber_id, address, phone, until } = person
  const { id, recipient } = messages
  const ours = eq(messages.project_id, project_id)
  const named = eq(messages.subscriber_id, subscriber_id)
  yield* idsWhere(db, { id, among: and(ours, named) }, until)
  const unnamed = or(isNull(messages.subscriber_id), not(named))
  for (const one of [address, phone]) {
    if (one === null) continue
    yield* idsWhere(db, { id, among: and(ours, eq(recipient, one), unnamed) }, until)
  }
}

/** Received mails from a person, some at a time. */
export async function* receivedFrom(
  db: Reader,
  { project_id, address, until }: TracedPerson,
): AsyncGenerator<string[], undefined> {
  if (address === null) return
  const ours = eq(inboundEmails.project_id, project_id)
  const among = and(ours, eq(inboundEmails.from_email, address))
  yield* idsWhere(db, { id: inboundEmails.id, among }, until)
}

/** Mails in the embedded mailbox to a person, some at a time. */
export async function* capturesOf(
  db: Reader,
  { project_id, address: wanted, until }: TracedPerson,
): AsyncGenerator<string[], undefined> {
  if (wanted === null) return
  const { mail_id: id, address } = mailboxRecipients
  const ours = eq(mailboxRecipients.project_id, project_id)
  yield* idsWhere(db, { id, among: and(ours, eq(address, wanted)) }, until)
}
