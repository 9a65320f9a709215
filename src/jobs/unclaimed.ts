import { inFlightOf } from "../store/in-flight"
import type { Store, Tx } from "../store/store"
import type { WorkRow } from "./work-item"
import type { WorkRows } from "./work-rows"

/**
 * Changes rows that wait: of `ids`, `change` gets those that nobody has claimed, and nobody claims
 * them before it is on disk. What is claimed is left to its attempt.
 */
export async function changeUnclaimed<Row extends WorkRow, Result>(
  store: Store,
  rows: WorkRows<Row>,
  ids: string[],
  change: (tx: Tx, unclaimed: string[]) => Promise<Result>,
): Promise<Result> {
  const reserved = inFlightOf(store.read, rows.name)?.reserve(ids)
  try {
    return await store.tx(async (tx) => change(tx, await rows.unclaimed(tx, reserved?.free ?? ids)))
  } finally {
    reserved?.end()
  }
}
