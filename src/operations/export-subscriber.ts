import { and, asc, eq, gt, inArray, type SQL } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { toServerResponse } from "../auth/end-users"
import { toInvitation } from "../auth/organizations/organization-invitations"
import { toMembership } from "../auth/organizations/organization-members"
import { memberships, organizationInvitations } from "../auth/organizations/tables"
import { userSessions, users } from "../auth/tables"
import { toListed } from "../auth/user-sessions"
import { type ConsentRow, shownConsent } from "../consents/consents"
import { shownUnsubscribe } from "../consents/subscriber-choices"
import { consents, unsubscribeLinks } from "../consents/tables"
import type { Blobs } from "../core/blobs"
import { ApiError } from "../core/errors"
import { now } from "../core/time"
import { type DeviceRow, devices } from "../devices/tables"
import * as emails from "../emails/emails"
import { about, envelopeOf } from "../events/feed"
import { events } from "../events/tables"
import { streamedFile } from "../http/download"
import * as inbound from "../inbound/inbound-emails"
import { inboundEmails } from "../inbound/tables"
import { find as findInboxMessage } from "../inbox/inbox"
import { wholeMessages } from "../inbox/records"
import { attemptsOf } from "../messages/message-list"
import { messages } from "../messages/tables"
import * as push from "../push/push"
import * as sms from "../sms/sms"
import { inPages } from "../store/in-steps"
import type { PersonalName } from "../store/life"
import { rowById } from "../store/rows"
import type { Reader } from "../store/store"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { shownMerged } from "../subscribers/merged-subscribers"
import { mergedSubscribers, unsubscribes } from "../subscribers/tables"
import { toResponse as shownSuppression } from "../suppressions/suppressions"
import { suppressions } from "../suppressions/tables"
import { topicMembers, topics } from "../topics/tables"
import { shownSubscriber } from "./shown-subscribers"
import {
  type DeletedSubscriber,
  deletedPerson,
  foundIn,
  messagesOf,
  namesIn,
  ofPerson,
  personOf,
} from "./traced-person"

/** Rows in memory at a time. */
const ROWS_AT_ONCE = 200

export interface ExportParts extends emails.EmailReading {
  inbound_blobs: Blobs
}

interface ExportCall {
  request: Request
  request_id: string
}

/** A deleted one has no record any more, and only what stands under its id. */
type ExportedSubscriber = SubscriberRow | DeletedSubscriber

/**
 * One JSON document of everything that is held about a subscriber, and about those that were merged into
 * it: the record, choices, consents, topics, suppressions, messages with contents and files, received mail
 * and events. It is made while the caller takes it.
 */
export function exportSubscriber(parts: ExportParts, owner: ExportedSubscriber, call: ExportCall) {
  const headers = {
    "content-type": "application/json",
    "content-disposition": 'attachment; filename="subscriber.json"',
    "x-request-id": call.request_id,
  }
  return streamedFile(documentOf(parts, owner, call), call.request.signal, headers)
}

async function* documentOf(
  parts: ExportParts,
  owner: ExportedSubscriber,
  { request_id }: ExportCall,
): AsyncGenerator<string> {
  const db = parts.store.read
  const row = "external_id" in owner ? owner : null
  const person = await (row ? personOf(db, row, now()) : deletedPerson(db, owner, now()))
  yield `{"data":{"exported_at":${JSON.stringify(person.until)}`
  yield `,"subscriber":${JSON.stringify(row && (await shownSubscriber(db, row)))}`
  yield `,"preferences":${JSON.stringify(row?.preferences ?? null)}`
  const by = (table: SQLiteTable, ...names: PersonalName[]) => ofPerson(table, person, ...names)
  yield* list(
    "merged_subscribers",
    rowsOf(db, mergedSubscribers, by(mergedSubscribers)),
    shownMerged,
  )
  yield* list("unsubscribes", rowsOf(db, unsubscribes, by(unsubscribes)), shownUnsubscribe)
  yield* list("consents", rowsOf(db, consents, by(consents, "subscriber_id")), shownConsent)
  yield* list("address_consents", rowsOf(db, consents, by(consents, "address")), shownOfAddress)
  yield* list("topics", membershipsOf(db, owner), ({ id: _, ...one }) => one)
  const channels = inArray(suppressions.channel, ["email", "sms"])
  const theirs = and(by(suppressions), channels)
  yield* list("suppressions", rowsOf(db, suppressions, theirs), shownSuppression)
  const links = rowsOf(db, unsubscribeLinks, by(unsubscribeLinks))
  yield* list("unsubscribe_links", links, ({ project_id: _, ...one }) => one)
  const shownDevice = ({ project_id: _, token_hash: __, ...one }: DeviceRow) => one
  yield* list("devices", rowsOf(db, devices, by(devices)), shownDevice)
  yield* list("users", rowsOf(db, users, by(users)), toServerResponse)
  const ofUsers = ({ project_id, user_id }: typeof userSessions | typeof memberships) =>
    and(eq(project_id, person.project_id), inArray(user_id, namesIn(person, "subscriber_id")))
  const sessions = rowsOf(db, userSessions, ofUsers(userSessions))
  yield* list("user_sessions", sessions, (row) => toListed(row, null))
  yield* list("memberships", rowsOf(db, memberships, ofUsers(memberships)), toMembership)
  const invitations = rowsOf(db, organizationInvitations, by(organizationInvitations))
  yield* list("organization_invitations", invitations, toInvitation)
  const whole = each(messagesOf(db, person), (id) => wholeMessage(parts, person.project_id, id))
  yield* list("messages", whole, (one) => one)
  const received = each(foundIn(db, inboundEmails.id, person), (id) =>
    inbound.get(db, parts.inbound_blobs, person.project_id, id),
  )
  yield* list("inbound_emails", received, (one) => one)
  yield* list("events", rowsOf(db, events, by(events)), envelopeOf)
  yield `},"meta":${JSON.stringify({ request_id })}}`
}

/** A consent that an address gave while no subscriber had it. */
function shownOfAddress({ address, ...row }: ConsentRow) {
  const { subscriber_id: _, ...shown } = shownConsent({ ...row, address })
  return { address, ...shown }
}

/** A field with a list, some of its rows in a piece. */
async function* list<Row>(
  name: string,
  rows: AsyncGenerator<Row>,
  shown: (row: Row) => unknown,
): AsyncGenerator<string> {
  yield `,${JSON.stringify(name)}:[`
  let before = ""
  for await (const row of rows) {
    yield `${before}${JSON.stringify(shown(row))}`
    before = ","
  }
  yield "]"
}

type TableWithId = SQLiteTable & { id: SQLiteColumn }

const rowsOf = <Table extends TableWithId>(db: Reader, table: Table, among: SQL | undefined) =>
  inPieces(async (after) => {
    const next = and(among, gt(table.id, after))
    const found = db
      .select()
      .from(table as SQLiteTable)
      .where(next)
    return (await found.orderBy(asc(table.id)).limit(ROWS_AT_ONCE)) as (Table["$inferSelect"] & {
      id: string
    })[]
  })

const membershipsOf = (db: Reader, { id }: DeletedSubscriber) =>
  inPieces((after) => {
    const { topic_id, subscriber_id, created_at } = topicMembers
    return db
      .select({ id: topic_id, key: topics.key, name: topics.name, subscribed_at: created_at })
      .from(topicMembers)
      .innerJoin(topics, eq(topics.id, topic_id))
      .where(and(eq(subscriber_id, id), gt(topic_id, after)))
      .orderBy(asc(topic_id))
      .limit(ROWS_AT_ONCE)
  })

/** All rows, in the order of their ids. `read` answers with the next ones behind an id. */
async function* inPieces<Row extends { id: string }>(
  read: (after: string) => Promise<Row[]>,
): AsyncGenerator<Row> {
  for await (const rows of inPages(ROWS_AT_ONCE, read)) yield* rows
}

/** Each message with its content and events, its attempts, and its files in base64. */
async function wholeMessage(parts: ExportParts, project_id: string, id: string) {
  const db = parts.store.read
  const window = { limit: MOST_ATTEMPTS, offset: 0, after: undefined, before: undefined }
  const { rows: attempts } = await attemptsOf(db, id, window)
  const row = await rowById(db, messages, id, eq(messages.project_id, project_id))
  if (row?.channel === "in_app") return wholeNote(db, project_id, id)
  if (row?.channel === "push")
    return { ...(await push.get(db, project_id, id)), channel: row.channel, attempts }
  if (row?.channel !== "sms") return { ...(await wholeEmail(parts, project_id, id)), attempts }
  const { timeline: events, ...text } = await sms.get(db, project_id, id)
  return { ...text, channel: row.channel, events, attempts }
}

async function wholeNote(db: Reader, project_id: string, id: string) {
  const [message] = await wholeMessages(db, [await findInboxMessage(db, { project_id }, id)])
  const told = (await about(db, project_id, id)).map(envelopeOf)
  return { ...message, channel: "in_app" as const, events: told, attempts: [] }
}

async function wholeEmail(parts: ExportParts, project_id: string, id: string) {
  const db = parts.store.read
  const { timeline: _, ...message } = await emails.get(parts, project_id, id)
  const { events: told } = await emails.events(db, project_id, id)
  const files: unknown[] = []
  for (const { id: attachment_id } of message.attachments) {
    const ids = { email_id: id, attachment_id }
    for await (const file of ifThere(() => emails.attachment(parts, project_id, ids))) {
      const { bytes, ...named } = file
      files.push({ ...named, content: Buffer.from(bytes).toString("base64") })
    }
  }
  return { ...message, channel: "email" as const, attachments: files, events: told }
}

const MOST_ATTEMPTS = 1000

async function* ifThere<Found>(read: () => Promise<Found>): AsyncGenerator<Found> {
  try {
    yield await read()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
  }
}

/** What each id leads to. What was removed meanwhile is left out. */
async function* each<Found>(
  pieces: AsyncGenerator<string[]>,
  read: (id: string) => Promise<Found>,
): AsyncGenerator<Found> {
  for await (const ids of pieces) for (const id of ids) yield* ifThere(() => read(id))
}
