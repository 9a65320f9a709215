import { now } from "../core/time"
import type { Store } from "../store/store"
import { instanceValues } from "./tables"

const PROBE = "last_probe_at"

/** A write that means nothing, to learn whether the database takes writes again. */
export async function probe(store: Store): Promise<void> {
  const row = { name: PROBE, value: now() }
  const again = { target: instanceValues.name, set: { value: row.value } }
  await store.tx((tx) => tx.insert(instanceValues).values(row).onConflictDoUpdate(again))
}
