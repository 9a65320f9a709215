import { and, asc, count, eq } from "drizzle-orm"
import { tooMany } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Reader, Tx } from "../store/store"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { endOf, type HeadSecrets, readHead, removeHead, sealHead } from "./chain-heads"
import { lengthOfChain } from "./consent-chain"
import { appendAll, brokenRecord, type ConsentRow, endsAs, hashOf, lastOf } from "./consents"
import { consents } from "./tables"

type Owner = Pick<SubscriberRow, "id" | "project_id">

const chainOf = ({ id, project_id }: Owner) =>
  and(eq(consents.project_id, project_id), eq(consents.subscriber_id, id))

/** Records that one merge moves. */
export const MOST_MOVED = 10_000

/** Throws 409 `conflict`, reason `too_many`, for a chain that is too long to be moved at once. */
export async function demandMovable(
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
 * A chain that was not whole leaves an empty place behind its records, so that the merge does not hide it.
 */
export async function moveConsents(
  tx: Tx,
  secrets: HeadSecrets,
  from: Owner,
  into: Owner,
): Promise<number> {
  const chain = await readChain(tx, from)
  const head = await readHead(tx, secrets, ofSubscriber(from), chain.length > 0)
  const is_whole = brokenRecord(chain) === undefined && endsAs(chain, head)
  await tx.delete(consents).where(chainOf(from))
  await removeHead(tx, ofSubscriber(from))
  const moved = chain.map(({ id, hash, number: _, prev_hash: __, ...said }) => {
    const origin = `moved from record ${id} of subscriber ${from.id}, hash ${hash}`
    const proof = said.proof === null ? origin : `${said.proof} (${origin})`
    return { ...said, id: newId(), subscriber_id: into.id, proof }
  })
  await appendAll(tx, secrets, moved)
  if (!is_whole) await leaveEmptyPlace(tx, secrets, into)
  return chain.length
}

async function leaveEmptyPlace(tx: Tx, secrets: HeadSecrets, owner: Owner): Promise<void> {
  const chain = ofSubscriber(owner)
  const [last] = await lastOf(tx, chain)
  const { number } = await endOf(tx, secrets, chain, last)
  await sealHead(tx, secrets, chain, { number: number + 1, hash: null })
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
export async function closeChain(tx: Tx, secrets: HeadSecrets, owner: Owner): Promise<ClosedChain> {
  const [last] = await lastOf(tx, ofSubscriber(owner))
  const end = await endOf(tx, secrets, ofSubscriber(owner), last)
  const [found] = await tx.select({ all: count() }).from(consents).where(chainOf(owner))
  await tx.delete(consents).where(chainOf(owner))
  const closing = {
    ...{ id: newId(), ...ofSubscriber(owner) },
    ...{ channel: "email" as const, scope_type: null, scope_key: null },
    ...{ action: "erased" as const, source: "api" as const, proof: null, ip_hash: null },
    ...{ created_at: now(), number: end.number + 1, prev_hash: end.hash },
  }
  const row = { ...closing, hash: hashOf(closing) }
  await tx.insert(consents).values(row)
  await sealHead(tx, secrets, row, row)
  return { receipt_id: closing.id, removed: found?.all ?? 0 }
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
  await removeHead(tx, { project_id, subscriber_id: null, address })
  return found?.all ?? 0
}
