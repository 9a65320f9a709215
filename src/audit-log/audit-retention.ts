import { asc, inArray, lt } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import { bumpEach } from "../store/counters"
import type { Store } from "../store/store"
import { COUNTER } from "./audit-log"
import { auditLog } from "./tables"

/** Rows of one transaction, so that other transactions run between two of them. */
const BATCH = 200

/** Removes up to 200 entries that are older than this moment (ISO 8601). Returns how many. */
export async function purgeAuditLog(store: Store, before: string): Promise<number> {
  const { id, account_id } = auditLog
  const old = lt(id, firstIdAt(millisFrom(before)))
  const some = store.read.select({ id }).from(auditLog).where(old).orderBy(asc(id))
  const ids = (await some.limit(BATCH)).map((row) => row.id)
  if (ids.length === 0) return 0
  await store.tx(async (tx) => {
    const gone = await tx.delete(auditLog).where(inArray(id, ids)).returning({ account_id })
    const accounts = Map.groupBy(gone, (row) => row.account_id)
    await bumpEach(
      tx,
      new Map([...accounts].map(([one, { length }]) => [one, new Map([[COUNTER, -length]])])),
    )
  })
  return ids.length
}
