import { eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { moveUsers } from "../auth/linked-subscriber"
import { moveConsents, requireMovable } from "../consents/consents"
import { addUnsubscribes, requireFewUnsubscribes } from "../consents/subscriber-choices"
import { fail } from "../core/errors"
import { giveDevices } from "../devices/device-rows"
import { isYetToCome } from "../fan-out/publishing"
import type { Caller } from "../identity/caller"
import type { Reader, Store, Tx } from "../store/store"
import { find, findForUpdate, type SubscriberRow } from "../subscribers/find-subscriber"
import { keepNames, mergedInto, requireMergeable } from "../subscribers/merged-subscribers"
import { stricterPreferences, stricterStatus } from "../subscribers/stricter"
import { change, removeRows } from "../subscribers/subscribers"
import { unsubscribes } from "../subscribers/tables"
import { moveAll } from "../topics/memberships"
import { moveFirstMessages } from "./merged-messages"

const MOST_TAGS = 50
const MOST_KEYS = 50
const MOST_BYTES = 16_384

/**
 * Makes one subscriber of two: `from` is removed, and what belonged to it belongs to `into`: memberships,
 * consents, unsubscribes, devices and messages. `into` keeps its own fields, and takes those that it lacks. Of
 * two preferences the stricter one stays. What else `from` was called is kept for export and erasure.
 * One transaction does it. Where `from` has many messages, a job moves the older ones afterwards.
 * Throws 409 for a subscriber and itself, and at the limits of what one may have.
 */
export async function mergeSubscribers(
  store: Store,
  caller: Caller,
  into_name: string,
  from_name: string,
): Promise<SubscriberRow> {
  const { project_id } = caller
  const into = await find(store.read, project_id, into_name)
  const from = await find(store.read, project_id, from_name)
  if (into.id === from.id) return refuseItself(into)
  return store.tx(async (tx) => {
    // In one order everywhere, so that two merges of the same pair do not wait for each other.
    const rows = new Map<string, SubscriberRow>()
    for (const id of [into.id, from.id].sort())
      rows.set(id, await findForUpdate(tx, project_id, id))
    const [kept, gone] = [rows.get(into.id) ?? into, rows.get(from.id) ?? from]
    await requireRoom(tx, kept, gone)
    const former = (await mergedInto(tx, gone.id)).map(({ id }) => id)
    await moveFirstMessages(tx, { project_id, into: kept.id, from: [...former, gone.id] })
    await moveAll(tx, gone.id, kept.id, (other, own) => isYetToCome(tx, project_id, other, own))
    await moveConsents(tx, gone, kept)
    await moveUnsubscribes(tx, gone, kept)
    await giveDevices(tx, project_id, gone.external_id, kept.external_id)
    await keepNames(tx, kept, gone)
    await moveUsers(tx, gone, kept)
    await removeRows(tx, [gone])
    const { account_id } = caller
    const target = { type: "subscriber", id: kept.id }
    const what = { project_id, action: "subscriber.merged", target, after: { from_id: gone.id } }
    await audit.record(tx, caller, { account_id, ...what })
    return change(tx, kept, merged(kept, gone))
  })
}

async function requireRoom(db: Reader, into: SubscriberRow, from: SubscriberRow): Promise<void> {
  await requireMergeable(db, into, from)
  await requireFewUnsubscribes(db, [into, from])
  await requireMovable(db, from)
}

const refuseItself = ({ id, external_id }: SubscriberRow): never =>
  fail("conflict", `${external_id} cannot be merged with itself. Give another from_id.`, {
    reason: "same_subscriber",
    id,
  })

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
