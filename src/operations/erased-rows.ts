import { and, eq, inArray } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { auditLog } from "../audit-log/tables"
import { removeInvitations } from "../auth/organizations/removed-organizations"
import { organizationInvitations } from "../auth/organizations/tables"
import { removeUsers } from "../auth/removed-users"
import { users } from "../auth/tables"
import { secondsFromNow } from "../core/time"
import { devices } from "../devices/tables"
import { events } from "../events/tables"
import { remove as removeReceived } from "../inbound/inbound-retention"
import { inboundEmails, inboundFiles } from "../inbound/tables"
import { messagesWith } from "../inbox/kept-contents"
import { dropInbox } from "../inbox/removed-inbox"
import { inboxContents } from "../inbox/tables"
import { changeUnclaimed } from "../jobs/claims"
import { enqueue, type JobKind } from "../jobs/jobs"
import { removeByIds as removeCaptures } from "../mailbox/mailbox"
import { mailboxRecipients } from "../mailbox/tables"
import { countByDay } from "../messages/day-counts"
import { removeByIds as removeMessages } from "../messages/message-retention"
import { messageRows } from "../messages/pipeline"
import { countsByDay } from "../messages/status-changes"
import { messageFiles, messages, messageTags } from "../messages/tables"
import { reputationHours } from "../reputation/tables"
import { forUpdate } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { removeOfEvents } from "../webhooks/retention"
import { namedByMessages } from "./table-lives"
import { search, searchedRows } from "./trace-search"
import { foundIn, messagesOf, namesIn, ofPerson, type TracedPerson } from "./traced-person"

/** Rows of one transaction: others work in between. */
const AT_ONCE = 50

/** Files of erased rows. They go when no request can be about to name them again. */
interface ErasedFiles {
  files: string[]
  inbound_files: string[]
}

export const erasedFiles: JobKind<ErasedFiles> = {
  name: "subscriber.erased_files",
  schedule: () => FILES_SECONDS,
}

/** A file that is younger than an hour stays (`core/blobs.ts`). */
const FILES_SECONDS = 3_660

export interface RemovedRows {
  messages: number
  captures: number
  inbound_emails: number
  events: number
  log_entries: number
  /** End users, with their sessions. */
  users: number
  /** The ids of messages whose attempt runs: they go when it has ended. */
  in_flight: Set<string>
}

interface Removal {
  store: Store
  person: TracedPerson
  account_id: string
  removed: RemovedRows
}

/** Removes all rows that name the person. Those that only a search finds, for as long as `goes_on` says yes. */
export async function removeNaming(
  named: Omit<Removal, "removed">,
  goes_on: () => boolean,
): Promise<RemovedRows> {
  const counts = {
    messages: 0,
    captures: 0,
    inbound_emails: 0,
    events: 0,
    log_entries: 0,
    users: 0,
  }
  const removal: Removal = { ...named, removed: { ...counts, in_flight: new Set() } }
  const { store, person, account_id, removed } = removal
  const db = store.read
  const subjects = namesIn(person, "subscriber_id")
  await each(foundIn(db, users.id, person), async (ids) => {
    removed.users += await removeUsers(store, ids)
  })
  await removeInvitations(store, ofPerson(organizationInvitations, person))
  await each(messagesOf(db, person), (ids) => removeMessagesOf(removal, ids))
  for (const id of subjects) await dropInbox(store, id)
  const captures = foundIn(db, mailboxRecipients.mail_id, person)
  await each(captures, (ids) => removeCapturesOf(removal, ids))
  await each(foundIn(db, inboundEmails.id, person), (ids) => removeReceivedOf(removal, ids))
  removed.events += await store.tx((tx) => dropEventsAbout(tx, subjects))

  const asked = { db, account_id, person, goes_on }
  const rows = searchedRows(asked)
  for (const one of rows.messages)
    await each(search(asked, one), (ids) => removeMessagesOf(removal, ids))
  await each(search(asked, rows.devices), (ids) => emptyDevices(store, ids))
  await each(search(asked, rows.inbox), (ids) => removeContentsOf(removal, ids))
  await each(search(asked, rows.received), (ids) => removeReceivedOf(removal, ids))
  await each(search(asked, rows.events), async (ids) => {
    removed.events += await store.tx((tx) => dropEvents(tx, ids))
  })
  for (const one of [rows.answers, rows.requests])
    await each(search(asked, one), (keys) => removeEntries(removal, one.key, keys))
  await each(search(asked, rows.audit), (ids) => emptyAudit(removal, ids))
  return removed
}

async function each(
  pieces: AsyncGenerator<string[]>,
  remove: (ids: string[]) => Promise<void>,
): Promise<void> {
  for await (const ids of pieces) {
    for (let at = 0; at < ids.length; at += AT_ONCE) await remove(ids.slice(at, at + AT_ONCE))
  }
}

/** A message whose attempt runs is left to a later look, since its outcome would be written again. */
async function removeMessagesOf(removal: Removal, ids: string[]): Promise<void> {
  const { store, removed } = removal
  const done = await changeUnclaimed(store, messageRows, ids, async (tx, unclaimed) => {
    if (unclaimed.length === 0) return { events: 0, unclaimed }
    await planFilesOf(tx, messageFiles.message_id, unclaimed)
    const told = await dropEventsAbout(tx, unclaimed)
    const { tags } = messages
    const tagged = await tx.select({ tags }).from(messages).where(inArray(messages.id, unclaimed))
    const erased = await removeMessages(tx, unclaimed, namedByMessages)
    const by_day = erased.filter(({ channel }) => countsByDay(channel))
    await countByDay(
      tx,
      by_day.map((message) => ({ message, by: -1 })),
    )
    await forgetTags(tx, removal, [...new Set(tagged.flatMap((row) => row.tags))])
    return { events: told, unclaimed }
  })
  removed.messages += done.unclaimed.length
  removed.events += done.events
  const gone = new Set(done.unclaimed)
  for (const id of ids) if (!gone.has(id)) removed.in_flight.add(id)
}

/** With the messages that show them, of which there may be very many. */
async function removeContentsOf(removal: Removal, ids: string[]): Promise<void> {
  const { store } = removal
  for (let some = await messagesWith(store.read, ids, AT_ONCE); some.length > 0; ) {
    await removeMessagesOf(removal, some)
    some = await messagesWith(store.read, ids, AT_ONCE)
  }
  await store.tx((tx) => tx.delete(inboxContents).where(inArray(inboxContents.id, ids)))
}

/** A tag that no message has any more may have been about one person: its statistics go, too. */
async function forgetTags(tx: Tx, { account_id, person }: Removal, tags: string[]): Promise<void> {
  const { project_id } = person
  if (tags.length === 0) return
  const ours = and(eq(messageTags.project_id, project_id), inArray(messageTags.tag, tags))
  const rows = await tx.selectDistinct({ tag: messageTags.tag }).from(messageTags).where(ours)
  const used = new Set(rows.map(({ tag }) => tag))
  const unused = tags.filter((tag) => !used.has(tag))
  if (unused.length === 0) return
  const hours = reputationHours
  const theirs = and(eq(hours.account_id, account_id), eq(hours.project_id, project_id))
  const of_tags = and(eq(hours.dimension, "tag"), inArray(hours.name, unused))
  await tx.delete(reputationHours).where(and(theirs, of_tags))
}

/** The files that rows name by this column, as ids of messages, of caught or of received mails. */
async function planFilesOf(tx: Tx, owner: SQLiteColumn, ids: string[]): Promise<void> {
  const is_inbound = owner === inboundFiles.inbound_id
  const { sha256 } = is_inbound ? inboundFiles : messageFiles
  const named = await tx.selectDistinct({ sha256 }).from(sha256.table).where(inArray(owner, ids))
  if (named.length === 0) return
  const hashes = named.map((file) => file.sha256)
  const payload = { files: is_inbound ? [] : hashes, inbound_files: is_inbound ? hashes : [] }
  const run_at = secondsFromNow(FILES_SECONDS)
  await enqueue(tx, erasedFiles, { payload, project_id: null, run_at })
}

async function removeCapturesOf({ store, person, removed }: Removal, ids: string[]) {
  removed.captures += await store.tx(async (tx) => {
    await planFilesOf(tx, messageFiles.message_id, ids)
    return removeCaptures(tx, person.project_id, ids)
  })
}

async function removeReceivedOf({ store, removed }: Removal, ids: string[]) {
  const done = await store.tx(async (tx) => {
    const { id } = inboundEmails
    const rows = await forUpdate(
      tx.select({ id }).from(inboundEmails).where(inArray(id, ids)).orderBy(id),
    )
    const there = rows.map((row) => row.id)
    if (there.length === 0) return { mails: 0, events: 0 }
    await planFilesOf(tx, inboundFiles.inbound_id, there)
    const told = await dropEventsAbout(tx, there)
    await removeReceived(tx, there)
    return { mails: there.length, events: told }
  })
  removed.inbound_emails += done.mails
  removed.events += done.events
}

async function dropEventsAbout(tx: Tx, subjects: string[]): Promise<number> {
  const about = inArray(events.subject_id, subjects)
  const rows = await tx.select({ id: events.id }).from(events).where(about)
  const ids = rows.map(({ id }) => id)
  let dropped = 0
  for (let at = 0; at < ids.length; at += EVENTS_AT_ONCE)
    dropped += await dropEvents(tx, ids.slice(at, at + EVENTS_AT_ONCE))
  return dropped
}

const EVENTS_AT_ONCE = 500

/** With their deliveries: a delivery shows what its event said, and what the receiver answered. */
async function dropEvents(tx: Tx, ids: string[]): Promise<number> {
  await removeOfEvents(tx, ids)
  const gone = await tx.delete(events).where(inArray(events.id, ids)).returning({ id: events.id })
  return gone.length
}

async function removeEntries({ store, removed }: Removal, key: SQLiteColumn, keys: string[]) {
  const table = key.table as SQLiteTable
  const gone = store.tx((tx) => tx.delete(table).where(inArray(key, keys)).returning({ key }))
  removed.log_entries += (await gone).length
}

/** A device of somebody else stays, without what its app wrote of people. */
const emptyDevices = (store: Store, ids: string[]) =>
  store.tx(async (tx) => {
    const empty = { device_name: null, metadata: {} }
    await tx.update(devices).set(empty).where(inArray(devices.id, ids))
  })

/** What was changed is forgotten. The actor, the action and the time stay. */
async function emptyAudit({ store, removed, account_id }: Removal, ids: string[]) {
  const { id } = auditLog
  const ours = and(eq(auditLog.account_id, account_id), inArray(id, ids))
  const empty = { before: null, after: null }
  const emptied = await store.tx((tx) =>
    tx.update(auditLog).set(empty).where(ours).returning({ id }),
  )
  removed.log_entries += emptied.length
}
