import { and, asc, count, desc, eq, type SQL } from "drizzle-orm"
import { fail, tooMany } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { comparable } from "../lib/address"
import type { AudienceChannel } from "../lib/preferences"
import { type RowList, rowList } from "../store/rows"
import { newRowInserter, prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { requireCategory } from "../subscribers/categories"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { type ConsentSource, consents } from "./tables"
import type { UnsubscribeScope } from "./unsubscribe-links"

export type ConsentRow = typeof consents.$inferSelect

/** A new record keeps a MAC of the IP address of the person. */
export type ConsentSecrets = Pick<Secrets, "mac">

type ChainOwner = Pick<ConsentRow, "project_id" | "subscriber_id" | "address">

/** The number and hash of the record before. The hash is null where no record stands in the place. */
type ChainPosition = { number: number; hash: string | null }

const START: ChainPosition = { number: 0, hash: null }

/** The person that a chain is about: a subscriber, or an address of none, in any spelling. */
type ConsentOwner = { subscriber_id: string; address?: never } | { address: string }

export type NewConsent = ConsentOwner & {
  project_id: string
  /** Default: `email`. */
  channel?: AudienceChannel
  /** Null: the whole channel. */
  scope: UnsubscribeScope | null
  action: "granted" | "withdrawn"
  source: ConsentSource
  /** What shows that it was so. */
  proof: string | null
  /** Of the person; it is kept as a keyed hash only. */
  ip: string | null
}

/** So often another transaction may have been faster with the next place of a chain. */
const MOST_TRIES = 20

/**
 * Adds to the chain of the subscriber or the address, in the transaction that makes it so. A record is
 * never changed. It goes with its project, and when its subscriber is erased. Returns the record.
 */
export function recordConsent(
  tx: Tx,
  secrets: ConsentSecrets,
  given: NewConsent,
): Promise<ConsentRow> {
  const { project_id, channel = "email", scope, action, source, proof, ip } = given
  const owner =
    "subscriber_id" in given
      ? { subscriber_id: given.subscriber_id, address: null }
      : { subscriber_id: null, address: comparable(given.address) }
  return append(tx, {
    ...{ id: newId(), project_id, ...owner, channel },
    ...{ scope_type: scope?.type ?? null, scope_key: scope?.key ?? null, action, source, proof },
    ip_hash: ip === null ? null : secrets.mac("consent ip", ip).toString("hex"),
    created_at: now(),
  })
}

/** Takes the next place of the chain of its subscriber or address. Returns the record. */
async function append(
  tx: Tx,
  fields: Omit<ConsentRow, "number" | "prev_hash" | "hash">,
): Promise<ConsentRow> {
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const row = after(await lastOf(tx, fields), fields)
    const fresh = await insertConsents(tx, [row])
    if (fresh.has(fields.id)) return row
  }
  throw new Error("others wrote to the same chain of consents all the time")
}

/** As `append`, for records of one subscriber behind a place of its chain. The transaction holds the subscriber. */
async function appendAll(
  tx: Tx,
  place: ChainPosition,
  list: Omit<ConsentRow, "number" | "prev_hash" | "hash">[],
): Promise<void> {
  let last = place
  const rows = list.map((fields) => {
    const row = after(last, fields)
    last = row
    return row
  })
  const fresh = await insertConsents(tx, rows)
  if (fresh.size < rows.length) throw new Error("a chain of consents was written without its lock")
}

/** The record that stands behind a place. */
export function after(
  { number, hash }: ChainPosition,
  fields: Omit<ConsentRow, "number" | "prev_hash" | "hash">,
): ConsentRow {
  const unsigned = { ...fields, number: number + 1, prev_hash: hash }
  return { ...unsigned, hash: hashOf(unsigned) }
}

const insertConsents = newRowInserter(consents, "id")

/** The place of the last record of a chain. */
async function lastOf(
  db: Reader,
  { project_id, subscriber_id, address }: ChainOwner,
): Promise<ChainPosition> {
  const [last = START] = await (subscriber_id === null
    ? findLast(db, { project_id, address: address ?? "" })
    : findLastOfSubscriber(db, { project_id, subscriber_id }))
  return last
}

const findLastOfSubscriber = prepared(
  { project_id: consents.project_id, subscriber_id: consents.subscriber_id },
  (db: Reader, slot) =>
    db
      .select({ number: consents.number, hash: consents.hash })
      .from(consents)
      .where(
        and(
          eq(consents.project_id, slot.project_id),
          eq(consents.subscriber_id, slot.subscriber_id),
        ),
      )
      .orderBy(desc(consents.number))
      .limit(1),
)

const findLast = prepared(
  { project_id: consents.project_id, address: consents.address },
  (db: Reader, slot) =>
    db
      .select({ number: consents.number, hash: consents.hash })
      .from(consents)
      .where(and(eq(consents.project_id, slot.project_id), eq(consents.address, slot.address)))
      .orderBy(desc(consents.number))
      .limit(1),
)

/** SHA-256 over everything that the record says and over the hash before it, in hex. */
function hashOf(row: Omit<ConsentRow, "hash">): string {
  const { prev_hash, number, id, project_id, subscriber_id, address, channel } = row
  const { scope_type, scope_key, action, source, proof, ip_hash, created_at } = row
  const said = [
    ...[prev_hash, number, id, project_id, subscriber_id, address, channel],
    ...[scope_type, scope_key, action, source, proof, ip_hash, created_at],
  ]
  return Bun.SHA256.hash(JSON.stringify(said), "hex")
}

/**
 * The id of the first record that is not what was written, or that does not follow the one before, in a
 * chain in the order of its numbers. Undefined where there is none.
 */
export const brokenRecord = (chain: ConsentRow[]): string | undefined =>
  chain.find(({ hash, ...row }, at) => {
    const prev_hash = chain[at - 1]?.hash ?? null
    return row.number !== at + 1 || row.prev_hash !== prev_hash || hash !== hashOf(row)
  })?.id

type Owner = Pick<SubscriberRow, "id" | "project_id">

const chainOf = ({ id, project_id }: Owner) =>
  and(eq(consents.project_id, project_id), eq(consents.subscriber_id, id))

export const MOST_MOVED = 10_000

/** Throws 409 `conflict`, reason `too_many`, for a chain that is too long to be moved at once. */
export async function requireMovable(
  db: Reader,
  owner: Pick<SubscriberRow, "id" | "project_id" | "external_id">,
): Promise<void> {
  if ((await lastOf(db, ofSubscriber(owner))).number <= MOST_MOVED) return
  const text = `${owner.external_id} has more than ${MOST_MOVED} consent records, which one merge cannot move. Merge in the other direction.`
  tooMany(text, MOST_MOVED)
}

/**
 * Adds the records of one chain to the end of another, in their order and with their times, and removes
 * the first chain. The proof of each one names the record that it was. Returns how many there were.
 * A place stays empty before the records of a chain that was not whole, so that the merge does not hide it.
 */
export async function moveConsents(tx: Tx, from: Owner, into: Owner): Promise<number> {
  const theirs = tx.select().from(consents).where(chainOf(from))
  const chain: ConsentRow[] = await theirs.orderBy(asc(consents.number))
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

/**
 * Removes the chain of a subscriber that is erased, and leaves one closing record without personal data. Its `prev_hash`
 * is the hash of the last record that stood there. Returns its id, and how many records went.
 */
export async function closeChain(tx: Tx, owner: Owner) {
  const last = await lastOf(tx, ofSubscriber(owner))
  const removed = await removeRecords(tx, chainOf(owner))
  const row = after(last, {
    ...{ id: newId(), ...ofSubscriber(owner) },
    ...{ channel: "email" as const, scope_type: null, scope_key: null },
    ...{ action: "erased" as const, source: "api" as const, proof: null, ip_hash: null },
    created_at: now(),
  })
  await tx.insert(consents).values(row)
  return { receipt_id: row.id, removed }
}

async function removeRecords(tx: Tx, where: SQL | undefined): Promise<number> {
  const [found] = await tx.select({ all: count() }).from(consents).where(where)
  await tx.delete(consents).where(where)
  return found?.all ?? 0
}

const ofSubscriber = ({ id: subscriber_id, project_id }: Owner) => ({
  ...{ project_id, subscriber_id, address: null },
})

/** Removes the chain of an address that belongs to no subscriber any more. Returns its length. */
export const removeAddressChain = (tx: Tx, project_id: string, address: string): Promise<number> =>
  removeRecords(tx, and(eq(consents.project_id, project_id), eq(consents.address, address)))

/** Null: the whole channel. */
export const scopeOfChoice = ({
  category,
}: {
  category?: string | null | undefined
}): UnsubscribeScope | null => (category == null ? null : { type: "category", key: category })

/** The consent records of a subscriber, newest first. */
export const listConsents = (db: Reader, subscriber: Owner): RowList<ConsentRow> => ({
  ...rowList(db, consents, { of: chainOf(subscriber), missing }),
  total: async () => (await lastOf(db, ofSubscriber(subscriber))).number, // they count up
})

const missing = () => fail("not_found", "There is no such consent record.")

interface ConsentInput {
  channel: AudienceChannel
  category?: string | null | undefined
  action: "granted" | "withdrawn"
  source: ConsentSource
  proof?: string | null | undefined
}

/**
 * Records what a subscriber allowed or forbade elsewhere. It changes nothing of what is sent. Throws 422
 * for a category that the project does not have.
 */
export async function addConsent(
  tx: Tx,
  secrets: ConsentSecrets,
  { id: subscriber_id, project_id }: Owner,
  given: ConsentInput,
): Promise<ConsentRow> {
  const { channel, category, action, source, proof = null } = given
  await requireCategory(tx, project_id, category)
  const said = { channel, scope: scopeOfChoice(given), action, source, proof, ip: null }
  return recordConsent(tx, secrets, { project_id, subscriber_id, ...said })
}

/** The Consent record of the contract (43, section 1). */
export function shownConsent(row: ConsentRow) {
  const { project_id: _, address: __, scope_type, scope_key, ...rest } = row
  const { id, subscriber_id, channel, action, ...more } = rest
  const scope = scope_type === null ? null : { type: scope_type, key: scope_key }
  const category = scope_type === "category" ? scope_key : null
  return {
    ...{ id, subscriber_id: subscriber_id ?? "", channel, category, scope },
    ...{ action: action === "granted" ? ("granted" as const) : ("withdrawn" as const), ...more },
  }
}
