import { and, asc, count, eq } from "drizzle-orm"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Reader, Tx } from "../store/store"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { append, type ConsentRow, hashOf } from "./consents"
import { consents } from "./tables"

type Owner = Pick<SubscriberRow, "id" | "project_id">

const chainOf = ({ id, project_id }: Owner) =>
  and(eq(consents.project_id, project_id), eq(consents.subscriber_id, id))

/** The whole chain of a subscriber, the first record first. */
export const readChain = async (db: Reader, owner: Owner): Promise<ConsentRow[]> =>
  db.select().from(consents).where(chainOf(owner)).orderBy(asc(consents.number))

/**
 * Adds the records of one chain to the end of another, in their order and with their times, and removes
 * the first chain. The proof of each one names the record that it was. Returns how many there were.
 */
export async function moveConsents(tx: Tx, from: Owner, into: Owner): Promise<number> {
  const chain = await readChain(tx, from)
  await tx.delete(consents).where(chainOf(from))
  for (const { id, hash, number: _, prev_hash: __, ...said } of chain) {
    const origin = `moved from record ${id} of subscriber ${from.id}, hash ${hash}`
    const proof = said.proof === null ? origin : `${said.proof} (${origin})`
    await append(tx, { ...said, id: newId(), subscriber_id: into.id, proof })
  }
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
  const chain = await readChain(tx, owner)
  await tx.delete(consents).where(chainOf(owner))
  const closing = {
    ...{ id: newId(), project_id: owner.project_id, subscriber_id: owner.id, address: null },
    ...{ channel: "email" as const, scope_type: null, scope_key: null },
    ...{ action: "erased" as const, source: "api" as const, proof: null, ip_hash: null },
    ...{ created_at: now(), number: (chain.at(-1)?.number ?? 0) + 1 },
    prev_hash: chain.at(-1)?.hash ?? null,
  }
  await tx.insert(consents).values({ ...closing, hash: hashOf(closing) })
  return { receipt_id: closing.id, removed: chain.length }
}

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
