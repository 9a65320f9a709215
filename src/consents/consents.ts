import { and, desc, eq } from "drizzle-orm"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { comparable } from "../lib/address"
import type { AudienceChannel } from "../lib/preferences"
import { newRowInserter, prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { type ConsentSource, consents } from "./tables"
import type { UnsubscribeScope } from "./unsubscribe-links"

export type ConsentRow = typeof consents.$inferSelect

/** A new record keeps a MAC of the IP address of the person. */
export type ConsentSecrets = Pick<Secrets, "mac">

type ChainOwner = Pick<ConsentRow, "project_id" | "subscriber_id" | "address">

/** The number and hash of the record before. The hash is null where no record stands in the place. */
export type ChainPlace = { number: number; hash: string | null }

const START: ChainPlace = { number: 0, hash: null }

/** The person that a chain is about: a subscriber, or an address of none, in any spelling. */
type ConsentOwner = { subscriber_id: string; address?: never } | { address: string }

/** What a person allowed or forbade, and how. */
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
export async function appendAll(
  tx: Tx,
  place: ChainPlace,
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
  { number, hash }: ChainPlace,
  fields: Omit<ConsentRow, "number" | "prev_hash" | "hash">,
): ConsentRow {
  const unsigned = { ...fields, number: number + 1, prev_hash: hash }
  return { ...unsigned, hash: hashOf(unsigned) }
}

const insertConsents = newRowInserter(consents, "id")

/** The place of the last record of a chain. */
export async function lastOf(
  db: Reader,
  { project_id, subscriber_id, address }: ChainOwner,
): Promise<ChainPlace> {
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
