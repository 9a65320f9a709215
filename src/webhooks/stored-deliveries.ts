import { sql } from "drizzle-orm"
import { STORED } from "../plans/stored-bytes"
import { bumpEach, type Changes } from "../store/counters"
import type { Tx } from "../store/store"
import { deliveries } from "./tables"

/**
 * What each delivery counts beside a body of its own: its row with the headers and the answer of the last attempt,
 * which are cut, and its places in the indexes. The migration `stored_deliveries` has the same number.
 */
export const ROW_BYTES = 1024

/** The same of rows of the table. */
export const storedBytes = sql<number>`${sql.raw(String(ROW_BYTES))} + coalesce(octet_length(${deliveries.body}), 0)`

/** What the body that a transform made of an event adds. */
export const bodyBytes = (body: string | null | undefined): number => Buffer.byteLength(body ?? "")

/** Adds to what projects store, in the transaction that writes or removes the deliveries. */
export async function addStored(tx: Tx, rows: { project_id: string; bytes: number }[]) {
  const changes = new Map<string, Changes>()
  for (const { project_id, bytes } of rows) {
    const before = changes.get(project_id)?.get(STORED.deliveries) ?? 0
    changes.set(project_id, new Map([[STORED.deliveries, before + bytes]]))
  }
  await bumpEach(tx, changes)
}
