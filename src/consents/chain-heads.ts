import { eq, sql } from "drizzle-orm"
import { SecretError, type Secrets } from "../core/secrets"
import { uuidOfBytes } from "../store/id-bytes"
import * as instanceValues from "../store/instance-values"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { consentHeads, type consents } from "./tables"

/** What seals the head of a chain. */
export type HeadSecrets = Pick<Secrets, "seal" | "open">

export type ChainOwner = Pick<
  typeof consents.$inferSelect,
  "project_id" | "subscriber_id" | "address"
>

/** The number and hash of a record. The hash is null where no record stands in the place. */
export interface ChainPlace {
  number: number
  hash: string | null
}

/** What is known of the end of a chain. */
export type ChainHead =
  | ({ state: "sealed" } & ChainPlace)
  | { state: (typeof UNKNOWN_HEADS)[number]; number: null; hash: null }

/**
 * `unsealed`: an older version wrote the chain, and the background will seal it. `changed`: somebody
 * changed the head without the master key. `none`: there is no head, which is right for a chain without records.
 */
const UNKNOWN_HEADS = ["unsealed", "changed", "none"] as const

export const HEAD_STATES = ["sealed", ...UNKNOWN_HEADS] as const

const unknown = (state: (typeof UNKNOWN_HEADS)[number]): ChainHead => ({
  ...{ state, number: null, hash: null },
})

/** What the head of a chain says. `has_records` is read before it, because a head comes with its record. */
export async function readHead(
  db: Reader,
  secrets: HeadSecrets,
  owner: ChainOwner,
  has_records: boolean,
): Promise<ChainHead> {
  const id = headId(owner)
  const [kept] = await findHead(db, { id })
  if (kept) return opened(secrets, id, kept.sealed)
  if (!has_records) return unknown("none")
  if ((await sealedUpTo(db, secrets)) !== COMPLETE) return unknown("unsealed")
  // The background may have come to this chain since.
  const [late] = await findHead(db, { id })
  return late ? opened(secrets, id, late.sealed) : unknown("none")
}

const findHead = prepared({ id: consentHeads.id }, (db: Reader, slot) =>
  db.select({ sealed: consentHeads.sealed }).from(consentHeads).where(eq(consentHeads.id, slot.id)),
)

/** The id of a head tells whose chain it is: that of the subscriber, or one made of the address. */
export function headId({ project_id, subscriber_id, address }: ChainOwner): string {
  if (subscriber_id !== null) return subscriber_id
  return uuidOfBytes(
    new Bun.CryptoHasher("sha256").update(JSON.stringify([project_id, address])).digest(),
  )
}

/** The seal is bound to the chain, so that the head of another chain does not open here. */
export const headContext = (id: string) => `consent_heads:${id}:sealed`

function opened(secrets: HeadSecrets, id: string, sealed: string): ChainHead {
  try {
    const [number = 0, hash = null] = JSON.parse(secrets.open(sealed, headContext(id)))
    return { state: "sealed", number, hash }
  } catch (error) {
    if (error instanceof SecretError) return unknown("changed")
    throw error
  }
}

/**
 * The place after which the next record of a chain stands. `last` is the last record that is there, read before. Where
 * that is not the one that was written last, a place stays empty: so the next record does not hide it.
 */
export async function endOf(
  tx: Tx,
  secrets: HeadSecrets,
  owner: ChainOwner,
  last: ChainPlace = { number: 0, hash: null },
): Promise<ChainPlace> {
  const head = await readHead(tx, secrets, owner, last.number > 0)
  if (head.state === "sealed") return { ...head, number: Math.max(last.number, head.number) }
  if (head.state === "unsealed") return last
  if (head.state === "none" && last.number === 0) return last
  return { number: last.number + 1, hash: null }
}

/** Keeps which record is the last one of a chain, in the transaction that adds it. */
export const sealHead = (tx: Tx, secrets: HeadSecrets, owner: ChainOwner, last: ChainPlace) =>
  writeHead(tx, headRow(secrets, owner, last))

const writeHead = prepared(
  { id: consentHeads.id, project_id: consentHeads.project_id, sealed: consentHeads.sealed },
  (tx: Tx, row) =>
    tx
      .insert(consentHeads)
      .values(row)
      .onConflictDoUpdate({ target: consentHeads.id, set: { sealed: sql`excluded.sealed` } }),
)

/** The row of a head, as it is written. */
export function headRow(
  secrets: HeadSecrets,
  owner: ChainOwner,
  { number, hash }: ChainPlace,
): typeof consentHeads.$inferInsert {
  const id = headId(owner)
  const sealed = secrets.seal(JSON.stringify([number, hash]), headContext(id))
  return { id, project_id: owner.project_id, sealed }
}

export const removeHead = (tx: Tx, owner: ChainOwner) =>
  tx.delete(consentHeads).where(eq(consentHeads.id, headId(owner)))

/** How far the background has given heads to chains of older versions. It is sealed, like the heads. */
const SEALED = "consent_heads"

/** Each chain with records has a head. */
export const COMPLETE = "complete"

/** The last record whose chain has a head, or `COMPLETE`; undefined before the first. */
export async function sealedUpTo(db: Reader, secrets: HeadSecrets): Promise<string | undefined> {
  const kept = await instanceValues.find(db, SEALED)
  try {
    return kept && secrets.open(kept, SEALED)
  } catch (error) {
    if (error instanceof SecretError) return undefined
    throw error
  }
}

/** Other nodes wait until the transaction ends. */
export const noteSealed = (tx: Tx, secrets: HeadSecrets, upTo: string): Promise<void> =>
  instanceValues.set(tx, SEALED, secrets.seal(upTo, SEALED))
