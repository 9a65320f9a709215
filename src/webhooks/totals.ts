import { type Column, eq, inArray, sql } from "drizzle-orm"
import { HELD } from "../jobs/work-item"
import { adder } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { webhooks, webhookTotals } from "./tables"

/** On Postgres, where several nodes write at once. */
const SHARDS = 8

/** The shard that this transaction writes. */
export const shardOf = (tx: Tx): number => (tx.isAlone ? 0 : Math.floor(Math.random() * SHARDS))

export interface Totals {
  /** All that are kept. */
  deliveries: number
  /** Those that have not ended: pending, failed and held. */
  open: number
  /** Those that wait for the endpoint to be active again. */
  held: number
}

interface OfEndpoint {
  project_id: string
  webhook_id: string
}

/** Held until its endpoint is active, and not by a name such as `held_after_restore`. */
export const waitsForEndpoint = ({ state, owner }: { state: number; owner: string | null }) =>
  state === HELD && owner === null

/**
 * Adds to the totals of endpoints, in the transaction that makes, ends, holds or removes their deliveries:
 * `each` for every one of these rows.
 */
export async function count(tx: Tx, rows: OfEndpoint[], each: Partial<Totals>): Promise<void> {
  const { deliveries = 0, open = 0, held = 0 } = each
  await countAll(
    tx,
    rows.map(({ project_id, webhook_id }) => ({ project_id, webhook_id, deliveries, open, held })),
  )
}

/** As `count` for changes of several kinds, which are one write for each endpoint. */
export async function countAll(tx: Tx, changes: (OfEndpoint & Totals)[]): Promise<void> {
  if (changes.length === 0) return
  const shard = shardOf(tx)
  const sums = new Map<string, OfEndpoint & Totals & { shard: number }>()
  for (const { project_id, webhook_id, deliveries, open, held } of changes) {
    const sum = sums.get(webhook_id)
    if (!sum) sums.set(webhook_id, { project_id, webhook_id, shard, deliveries, open, held })
    else {
      sum.deliveries += deliveries
      sum.open += open
      sum.held += held
    }
  }
  // Always in the same order, so that no two writers wait for each other.
  const ids = [...sums.keys()].sort()
  await addTo(
    tx,
    ids.flatMap((id) => sums.get(id) ?? []),
  )
}

const addTo = adder(webhookTotals, ["webhook_id", "shard"], ["deliveries", "open", "held"])

const { webhook_id, deliveries, open, held } = webhookTotals

/** Of these endpoints of one project. One that never had a delivery is not in the map. */
export async function totalsOf(db: Reader, ids: string[]): Promise<Map<string, Totals>> {
  if (ids.length === 0) return new Map()
  const summed = (column: Column) => sql<number>`sum(${column})`.mapWith(Number)
  const rows = await db
    .select({ webhook_id, deliveries: summed(deliveries), open: summed(open), held: summed(held) })
    .from(webhookTotals)
    .where(inArray(webhook_id, ids))
    .groupBy(webhook_id)
  return new Map(rows.map(({ webhook_id, ...totals }) => [webhook_id, totals]))
}

const NONE: Totals = { deliveries: 0, open: 0, held: 0 }

/** Of one endpoint. */
export const totalsOfOne = async (db: Reader, id: string): Promise<Totals> =>
  (await totalsOf(db, [id])).get(id) ?? NONE

/** A named hold took everything that was open: nothing waits for its endpoint alone any more. */
export const noneHeld = (tx: Tx) => tx.update(webhookTotals).set({ held: 0 })

/** Removes the totals of a deleted endpoint once it has no deliveries any more. */
export async function forgetDeleted(tx: Tx, id: string): Promise<void> {
  const [endpoint] = await tx.select({ id: webhooks.id }).from(webhooks).where(eq(webhooks.id, id))
  if (endpoint || (await totalsOfOne(tx, id)).deliveries > 0) return
  await tx.delete(webhookTotals).where(eq(webhook_id, id))
}
