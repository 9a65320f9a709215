import { type Column, eq, inArray, sql } from "drizzle-orm"
import { HELD } from "../jobs/work-item"
import { STORED } from "../plans/stored-bytes"
import { bumpAll } from "../store/counters"
import { adder } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { deliveries as rows, webhooks, webhookTotals } from "./tables"

export const SHARDS = 8

type Totals = Pick<typeof webhookTotals.$inferSelect, "deliveries" | "open" | "held">

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
export const count = (tx: Tx, rows: OfEndpoint[], each: Partial<Totals>): Promise<void> =>
  countAll(
    tx,
    rows.map((row) => ({ ...row, ...each })),
  )

/** As `count` for changes of several kinds. */
export const countAll = (tx: Tx, changes: (OfEndpoint & Partial<Totals>)[]): Promise<void> =>
  addTo(
    tx,
    changes.map(({ project_id, webhook_id, deliveries = 0, open = 0, held = 0 }) => {
      return { project_id, webhook_id, deliveries, open, held }
    }),
  )

const addTo = adder(webhookTotals, ["webhook_id"], ["deliveries", "open", "held"], SHARDS)

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

/**
 * What each delivery counts beside a body of its own: its row with the headers and the answer of the last attempt,
 * which are cut, and its places in the indexes. The migration `stored_deliveries` has the same number.
 */
export const ROW_BYTES = 1024

export const storedBytes = sql<number>`${sql.raw(String(ROW_BYTES))} + coalesce(octet_length(${rows.body}), 0)`

/** What the body that a transform made of an event adds. */
export const bodyBytes = (body: string | null | undefined): number => Buffer.byteLength(body ?? "")

/** Adds to what projects store, in the transaction that writes or removes the deliveries. */
export const addStored = (tx: Tx, rows: { project_id: string; bytes: number }[]) =>
  bumpAll(
    tx,
    rows.map(({ project_id: owner, bytes: by }) => ({ owner, name: STORED.deliveries, by })),
  )
