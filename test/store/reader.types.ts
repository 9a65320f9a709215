import { eq } from "drizzle-orm"
import { jobs } from "../../src/jobs/tables"
import type { Reader, Store, Tx } from "../../src/store/store"

/** Nothing here runs. `tsc` fails if one of the expected errors goes missing. */
export async function aReaderCannotWrite(read: Reader, store: Store) {
  await read.select().from(jobs)

  // @ts-expect-error
  read.insert(jobs)
  // @ts-expect-error
  store.read.update(jobs)
  // @ts-expect-error
  store.read.delete(jobs)
  // @ts-expect-error -- the only way to a transaction is `store.tx`
  read.transaction(async () => {})

  // @ts-expect-error
  const smuggled: Tx = read
  return smuggled
}

export async function aTxCanAlsoRead(tx: Tx) {
  const reader: Reader = tx
  await reader.select().from(jobs).where(eq(jobs.id, "1"))

  // @ts-expect-error -- a transaction inside a transaction would wait for itself
  tx.transaction(async () => {})
  // @ts-expect-error -- it exists on one engine only
  tx.run("DELETE FROM jobs")
}
