import { and, eq, inArray, isNull, or } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { closeChain, removeAddressChain } from "../consents/consents"
import { unsubscribeLinks } from "../consents/tables"
import type { Blobs } from "../core/blobs"
import { invalid } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { now, secondsFromNow } from "../core/time"
import { removeDevicesOf } from "../devices/device-rows"
import type { Caller } from "../identity/caller"
import { projects } from "../identity/tables"
import { inboundFiles } from "../inbound/tables"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { jobs } from "../jobs/tables"
import { isDead } from "../jobs/work-rows"
import { messageFiles } from "../messages/tables"
import { removeEmptyOf } from "../store/counters"
import { rowForUpdate } from "../store/rows"
import type { Store, Tx } from "../store/store"
import { findForUpdate, noSubscriber, type SubscriberRow } from "../subscribers/find-subscriber"
import { counterOf, removeRows } from "../subscribers/subscribers"
import { unsubscribes } from "../subscribers/tables"
import { forgetAddress } from "../suppressions/suppressions"
import { leaveAll } from "../topics/memberships"
import { type RemovedRows, removeNaming } from "./erased-rows"
import { removeUnnamed } from "./purge"
import { nameFinder, within } from "./trace-search"
import {
  deletedPerson,
  lookupDeleted,
  namesIn,
  ofPerson,
  personOf,
  type TracedPerson,
} from "./traced-person"

/** A request searches for so long. What is left is found by the job. */
const SEARCH_SECONDS = 10

/** Until then the requests that ran beside the erasure have written what they write late. */
const AGAIN_SECONDS = 60

/** The person is sealed: the job must not be what still names it. */
interface ErasedPerson {
  sealed: string
}

/** Looks once more for what an erasure could not reach at once. */
export const subscriberErased: JobKind<ErasedPerson> = {
  name: "subscriber.erased",
  schedule: (attempt) => Math.min(30 * 2 ** attempt, 3600),
}

/** What the sealed payload of the job is bound to. */
export const ERASED = "erased subscriber"

export interface ErasureParts {
  store: Store
  secrets: Secrets
}

interface Erasure {
  person: TracedPerson
  account_id: string
}

/**
 * Erases a subscriber: the record and its choices, the messages with contents, files, events and logs,
 * captures, mail that came from its address, and its suppressions. That holds for the subscribers that were
 * merged into it, too. What it shares with another subscriber stays. The answer is a receipt: counts, and
 * what remains for a while. Of a subscriber that was deleted, its id leads to what is left. Throws 422 where
 * `confirm` is not the external id, or the id of a deleted one.
 */
export async function eraseSubscriber(
  { store, secrets }: ErasureParts,
  caller: Caller,
  name: string,
  confirm: string,
) {
  const { account_id, project_id } = caller
  const { person, tags, receipt_id, own } = await store.tx(async (tx) => {
    const { row, person } = await personForUpdate(tx, project_id, name)
    if (confirm !== (row?.external_id ?? person.subscriber_id)) throw notConfirmed()
    const sealed = secrets.seal(JSON.stringify({ person, account_id }), ERASED)
    const run_at = secondsFromNow(AGAIN_SECONDS)
    await enqueue(tx, subscriberErased, { payload: { sealed }, project_id: null, run_at })
    const target = { type: "subscriber", id: person.subscriber_id }
    await audit.record(tx, caller, { account_id, project_id, action: "subscriber.erased", target })
    return { person, tags: row?.tags ?? [], ...(await removeRecord(tx, person, row)) }
  })
  // A tag may be about one person, and the counter of a tag has its name.
  const names = tags.map((tag) => counterOf("tag", tag))
  await store.tx((tx) => removeEmptyOf(tx, project_id, names))
  const erasure = { person, account_id }
  const { in_flight, ...removed } = await removeTraces(store, erasure, within(SEARCH_SECONDS))
  const is_log_empty = await store.emptyLog()
  const remains = [
    ...(in_flight.size > 0 ? [IN_FLIGHT] : []),
    ...(is_log_empty ? [] : [IN_LOG]),
    ...REMAINS,
  ]
  return { erased: true, receipt_id, counts: { ...removed, ...own }, remains }
}

/** The row is undefined where the subscriber was deleted. Throws 404 where nothing of it is left either. */
async function personForUpdate(tx: Tx, project_id: string, name: string) {
  if (await lookupDeleted(tx, project_id, name)) {
    // There is no row to hold, and another request may erase the same.
    await rowForUpdate(tx, projects, project_id)
    const deleted = (await lookupDeleted(tx, project_id, name)) ?? noSubscriber()
    return { row: undefined, person: await deletedPerson(tx, deleted, now()) }
  }
  const row = await findForUpdate(tx, project_id, name)
  return { row, person: await personOf(tx, row, now()) }
}

const notConfirmed = () =>
  invalid(
    "confirm",
    "not_confirmed",
    "The value must be the external id of this subscriber, or the id of a deleted one. Nothing was erased.",
  )

const IN_FLIGHT = {
  what: "messages whose delivery is running",
  until: "A minute after the attempt ends. A job of the server removes them.",
}

const IN_LOG = {
  what: "removed rows in the write-ahead log of the SQLite file (belfry.db-wal)",
  until:
    "Until the next writes, which copy the log into the database. If storage.wal_autocheckpoint is 0, Litestream copies it.",
}

/** What the receipt tells of copies that stay. */
const REMAINS = [
  {
    what: "log lines that were written before, on the console and in the service manager",
    until: "Until these logs rotate. The server writes no address there, but it writes ids.",
  },
  {
    what: "backups, and the archived write-ahead log of Postgres",
    until: "Until they are deleted. After a restore, erase the subscriber again.",
  },
  {
    what: "attachments and large mails in the folder of files",
    until: "About one hour. A job of the server removes those that no other mail names.",
  },
  {
    what: "log entries and answers that other requests were writing at this moment",
    until: "A few minutes. A job of the server looks for them again.",
  },
  {
    what: "unused space of the Postgres database",
    until: "Until VACUUM has run and the space is used again.",
  },
  {
    what: "copies that left this server: delivered mail, webhooks, provider logs",
    until: "As their owners decide.",
  },
]

/** The row itself, and what few rows hold, in the transaction that closes the chain. */
async function removeRecord(tx: Tx, person: TracedPerson, row: SubscriberRow | undefined) {
  const { subscriber_id: id, project_id } = person
  const topics = await leaveAll(tx, [id])
  const { receipt_id, removed: chain } = await closeChain(tx, { id, project_id })
  const remove = async (table: typeof unsubscribes | typeof unsubscribeLinks) => {
    const { id } = table
    return (await tx.delete(table).where(ofPerson(table, person)).returning({ id })).length
  }
  const ended = await remove(unsubscribes)
  if (row) await removeRows(tx, [row])
  const own = {
    ...{ consents: chain, unsubscribes: ended, topics, suppressions: 0 },
    devices: await removeDevicesOf(tx, project_id, namesIn(person, "external_id")),
    unsubscribe_links: await remove(unsubscribeLinks),
  }
  for (const phone of namesIn(person, "phone")) {
    own.suppressions += await forgetAddress(tx, project_id, "sms", phone)
  }
  for (const address of namesIn(person, "address")) {
    own.suppressions += await forgetAddress(tx, project_id, "email", address)
    own.consents += await removeAddressChain(tx, project_id, address)
  }
  return { receipt_id, own }
}

async function removeTraces(
  store: Store,
  { person, account_id }: Erasure,
  goes_on: () => boolean,
): Promise<RemovedRows> {
  const removed = await removeNaming({ store, person, account_id }, goes_on)
  await removeDeadJobs(store, person)
  return removed
}

/** Jobs that were given up are kept for people to look at, with their payload. Those of other projects stay. */
async function removeDeadJobs(store: Store, person: TracedPerson): Promise<void> {
  const { id, payload, last_error } = jobs
  const dead = await store.read
    .select({ id, payload, last_error })
    .from(jobs)
    .where(and(isDead, or(eq(jobs.project_id, person.project_id), isNull(jobs.project_id))))
    .limit(MOST_DEAD)
  const isNamed = nameFinder(person)
  const named = dead.filter((job) => isNamed(JSON.stringify(job)))
  const ids = named.map((job) => job.id)
  if (ids.length > 0) await store.tx((tx) => tx.delete(jobs).where(inArray(id, ids)))
}

const MOST_DEAD = 10_000

/** Removes what the request could not, and looks again where something is still on its way. */
export const eraseRest = ({ store, secrets }: ErasureParts): JobHandler<ErasedPerson> => ({
  async run({ sealed }) {
    const erasure = JSON.parse(secrets.open(sealed, ERASED)) as Erasure
    const { in_flight } = await removeTraces(store, erasure, () => true)
    await store.emptyLog()
    return in_flight.size > 0 ? { retry: `messages being delivered: ${in_flight.size}` } : {}
  },
})

interface FileParts {
  store: Store
  blobs: Blobs
  inbound_blobs: Blobs
}

/** Removes the files of erased rows that no other row names. */
export const removeErasedFiles = ({
  store,
  blobs,
  inbound_blobs,
}: FileParts): JobHandler<{ files: string[]; inbound_files: string[] }> => ({
  async run({ files, inbound_files }) {
    await removeUnnamed(store.read, blobs, files, messageFiles)
    await removeUnnamed(store.read, inbound_blobs, inbound_files, inboundFiles)
    return {}
  },
})
