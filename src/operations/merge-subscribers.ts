import { and, eq, inArray, not, type SQL } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { demandMovable, moveConsents } from "../consents/moved-consents"
import { addUnsubscribes, demandFewUnsubscribes } from "../consents/subscriber-choices"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { isOfOpenFanOut, isYetToCome } from "../fan-out/open-publishes"
import type { Caller } from "../identity/caller"
import { messages } from "../messages/tables"
import { held } from "../store/dialect"
import type { Reader, Store, Tx } from "../store/store"
import { find, hold, type SubscriberRow } from "../subscribers/find-subscriber"
import { demandMergeable, keepNames } from "../subscribers/merged-subscribers"
import { stricterPreferences, stricterStatus } from "../subscribers/stricter"
import { change, removeRows } from "../subscribers/subscribers"
import { unsubscribes } from "../subscribers/tables"
import { moveAll } from "../topics/memberships"

/** Messages of one transaction: others work in between. */
const AT_ONCE = 500

const MOST_TAGS = 50
const MOST_KEYS = 50
const MOST_BYTES = 16_384

/**
 * Makes one subscriber of two: `from` is removed, and what belonged to it belongs to `into`: memberships,
 * consents, unsubscribes and messages. `into` keeps its own fields, and takes those that it lacks. Of
 * two preferences the stricter one stays. What else `from` was called is kept for export and erasure.
 * Throws 409 for a subscriber and itself, and at the limits of what one may have.
 */
export async function mergeSubscribers(
  { store, secrets }: { store: Store; secrets: Secrets },
  caller: Caller,
  into_name: string,
  from_name: string,
): Promise<SubscriberRow> {
  const { project_id } = caller
  const into = await find(store.read, project_id, into_name)
  const from = await find(store.read, project_id, from_name)
  if (into.id === from.id) return refuseItself(into)
  await demandRoom(store.read, into, from)
  const pair = { project_id, into: into.id, from: from.id }
  while ((await store.tx((tx) => moveMessages(tx, pair, ofNoOpenPublish(tx, pair)))) === AT_ONCE);
  return store.tx(async (tx) => {
    // In one order everywhere, so that two merges of the same pair do not wait for each other.
    const rows = new Map<string, SubscriberRow>()
    for (const id of [into.id, from.id].sort()) rows.set(id, await hold(tx, project_id, id))
    const [kept, gone] = [rows.get(into.id) ?? into, rows.get(from.id) ?? from]
    await demandRoom(tx, kept, gone)
    while ((await moveMessages(tx, pair)) === AT_ONCE);
    await moveAll(tx, gone.id, kept.id, (other, own) => isYetToCome(tx, project_id, other, own))
    await moveConsents(tx, secrets, gone, kept)
    await moveUnsubscribes(tx, gone, kept)
    await keepNames(tx, kept, gone)
    await removeRows(tx, project_id, [gone])
    const { account_id } = caller
    const target = { type: "subscriber", id: kept.id }
    const what = { project_id, action: "subscriber.merged", target, after: { from_id: gone.id } }
    await audit.record(tx, caller, { account_id, ...what })
    return change(tx, kept, merged(kept, gone))
  })
}

/** Asked before anything moves, and again where both are held. */
async function demandRoom(db: Reader, into: SubscriberRow, from: SubscriberRow): Promise<void> {
  await demandMergeable(db, into, from)
  await demandFewUnsubscribes(db, [into, from])
  await demandMovable(db, from)
}

const refuseItself = ({ id, external_id }: SubscriberRow): never =>
  fail("conflict", `${external_id} cannot be merged with itself. Give another from_id.`, {
    reason: "same_subscriber",
    id,
  })

interface MergedPair {
  project_id: string
  into: string
  from: string
}

/**
 * Not those of a publish that is not over: it passes by a subscriber that has a message of it, and the merge
 * may not come to be. At most some thousand are left, because few publishes are open at a time.
 */
const ofNoOpenPublish = (tx: Tx, { project_id }: MergedPair): SQL =>
  not(isOfOpenFanOut(tx, project_id, messages.fan_out_id))

/** Returns how many it moved; fewer than 500: all are moved. */
async function moveMessages(
  tx: Tx,
  { project_id, into, from }: MergedPair,
  which?: SQL,
): Promise<number> {
  const { id, subscriber_id } = messages
  const theirs = and(eq(messages.project_id, project_id), eq(subscriber_id, from), which)
  const rows = await held(tx.select({ id }).from(messages).where(theirs).orderBy(id).limit(AT_ONCE))
  const ids = rows.map((row) => row.id)
  if (ids.length === 0) return 0
  await tx.update(messages).set({ subscriber_id: into }).where(inArray(id, ids))
  return ids.length
}

async function moveUnsubscribes(tx: Tx, from: SubscriberRow, into: SubscriberRow): Promise<void> {
  const theirs = eq(unsubscribes.subscriber_id, from.id)
  const rows = await tx.select().from(unsubscribes).where(theirs)
  await tx.delete(unsubscribes).where(theirs)
  await addUnsubscribes(tx, into, rows)
}

/** What does not fit into the limits of one subscriber is left out of what `from` adds. */
function merged(into: SubscriberRow, from: SubscriberRow): Partial<SubscriberRow> {
  const metadata = { ...from.metadata, ...into.metadata }
  const fits =
    Object.keys(metadata).length <= MOST_KEYS &&
    Buffer.byteLength(JSON.stringify(metadata)) <= MOST_BYTES
  return {
    email: into.email ?? from.email,
    phone: into.phone ?? from.phone,
    name: into.name ?? from.name,
    avatar_url: into.avatar_url ?? from.avatar_url,
    locale: into.locale ?? from.locale,
    timezone: into.timezone ?? from.timezone,
    metadata: fits ? metadata : into.metadata,
    tags: [...new Set([...into.tags, ...from.tags])].slice(0, MOST_TAGS),
    status: stricterStatus(into.status, from.status),
    preferences: stricterPreferences(into.preferences, from.preferences),
    auth_user_id: into.auth_user_id ?? from.auth_user_id,
    last_seen_at: latest(into.last_seen_at, from.last_seen_at),
  }
}

/** Times of ISO 8601 in UTC sort as texts. */
const latest = (one: string | null, other: string | null): string | null =>
  one === null || (other !== null && other > one) ? other : one
