import { and, asc, count, eq } from "drizzle-orm"
import { tooMany } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Reader, Tx } from "../store/store"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { lengthOfChain } from "./consent-chain"
import { after, appendAll, brokenRecord, type ConsentRow, lastOf } from "./consents"
import { consents } from "./tables"

type Owner = Pick<SubscriberRow, "id" | "project_id">

const chainOf = ({ id, project_id }: Owner) =>
  and(eq(consents.project_id, project_id), eq(consents.subscriber_id, id))

/** Records that one merge moves. */
export const MOST_MOVED = 10_000

/** Throws 409 `conflict`, reason `too_many`, for a chain that is too long to be moved at once. */
export async function requireMovable(
  db: Reader,
  owner: Pick<SubscriberRow, "id" | "project_id" | "external_id">,
): Promise<void> {
  if ((await lengthOfChain(db, owner)) <= MOST_MOVED) return
  const text = `${owner.external_id} has more than ${MOST_MOVED} consent records, which one merge cannot move. Merge in the other direction.`
  tooMany(text, MOST_MOVED)
}

/** The whole chain of a subscriber, the first record first. */
const readChain = async (db: Reader, owner: Owner): Promise<ConsentRow[]> =>
  db.select().from(consents).where(chainOf(owner)).orderBy(asc(consents.number))

/**
 * Adds the records of one chain to the end of another, in their order and with their times, and removes
 * the first chain. The proof of each one names the record that it was. Returns how many there were.
 * A place stays empty before the records of a chain that was not whole, so that the merge does not hide it.
 */
export async function moveConsents(tx: Tx, from: Owner, into: Owner): Promise<number> {
  const chain = await readChain(tx, from)
  const last = await lastOf(tx, ofSubscriber(into))
  const is_whole = brokenRecord(chain) === undefined
  await tx.delete(consents).where(chainOf(from))
  const moved = chain.map(({ id, hash, number: _, prev_hash: __, ...said }) => {
    const origin = `moved from record ${id} of subscriber ${from.id}, hash ${hash}`
    const proof = said.proof === null ? origin : `${said.proof} (${origin})`
    return { ...said, id: newId(), subscriber_id: into.id, proof }
  })
  await appendAll(tx, is_whole ? last : { number: last.number + 1, hash: null }, moved)
  return chain.length
}

/** The record that closes the chain of a subscriber that is erased. It holds no personal data. */
export interface ClosedChain {
  receipt_id: string
  /** Records that were removed. */
  removed: number
}

/**
 * Removes the chain of a subscriber and leaves one closing record, whose `prev_hash` is the hash of the
 * last record that stood there.
 */
export async function closeChain(tx: Tx, owner: Owner): Promise<ClosedChain> {
  const last = await lastOf(tx, ofSubscriber(owner))
  const [found] = await tx.select({ all: count() }).from(consents).where(chainOf(owner))
  await tx.delete(consents).where(chainOf(owner))
  const row = after(last, {
    ...{ id: newId(), ...ofSubscriber(owner) },
    ...{ channel: "email" as const, scope_type: null, scope_key: null },
    ...{ action: "erased" as const, source: "api" as const, proof: null, ip_hash: null },
    created_at: now(),
  })
  await tx.insert(consents).values(row)
  return { receipt_id: row.id, removed: found?.all ?? 0 }
}

const ofSubscriber = ({ id: subscriber_id, project_id }: Owner) => ({
  ...{ project_id, subscriber_id, address: null },
})

/** Removes the chain of an address that belongs to no subscriber any more. Returns its length. */
export async function removeAddressChain(
  tx: Tx,
  project_id: string,
  address: string,
): Promise<number> {
  const ours = and(eq(consents.project_id, project_id), eq(consents.address, address))
  const [found] = await tx.select({ all: count() }).from(consents).where(ours)
  await tx.delete(consents).where(ours)
  return found?.all ?? 0
}
