import { and, desc, eq } from "drizzle-orm"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { comparable } from "../lib/address"
import { newRowInserter, prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { type ConsentSource, consents } from "./tables"
import type { UnsubscribeScope } from "./unsubscribe-links"

export type ConsentRow = typeof consents.$inferSelect

/** What the owner of an address allowed or forbade, and how. */
export interface NewConsent {
  project_id: string
  /** In any spelling. */
  address: string
  scope: UnsubscribeScope
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
 * Adds to the chain of the address, in the transaction that makes it so. A record is never changed or
 * removed, but with its project.
 */
export async function recordConsent(
  tx: Tx,
  secrets: Pick<Secrets, "mac">,
  given: NewConsent,
): Promise<void> {
  const { project_id, scope, action, source, proof, ip } = given
  const address = comparable(given.address)
  const fields = {
    ...{ id: newId(), project_id, subscriber_id: null, address, channel: "email" as const },
    ...{ scope_type: scope.type, scope_key: scope.key, action, source, proof },
    ip_hash: ip === null ? null : secrets.mac("consent ip", ip).toString("hex"),
    created_at: now(),
  }
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const [last] = await findLast(tx, { project_id, address })
    const place = { number: (last?.number ?? 0) + 1, prev_hash: last?.hash ?? null }
    const unsigned = { ...fields, ...place }
    const fresh = await insertConsents(tx, [{ ...unsigned, hash: hashOf(unsigned) }])
    if (fresh.has(fields.id)) return
  }
  throw new Error("others wrote to the same chain of consents all the time")
}

const insertConsents = newRowInserter(consents, "id")

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
export function hashOf(row: Omit<ConsentRow, "hash">): string {
  const { prev_hash, number, id, project_id, subscriber_id, address, channel } = row
  const { scope_type, scope_key, action, source, proof, ip_hash, created_at } = row
  const said = [
    ...[prev_hash, number, id, project_id, subscriber_id, address, channel],
    ...[scope_type, scope_key, action, source, proof, ip_hash, created_at],
  ]
  return Bun.SHA256.hash(JSON.stringify(said), "hex")
}
