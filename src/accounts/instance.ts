import { eq } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import type { Store } from "../store/store"
import { instanceValues } from "./tables"

const PROBE = "last_probe_at"
const MASTER_KEY = "master_key_id"

/** The database was sealed with another master key: starting would only break things later. */
export class WrongMasterKey extends Error {
  constructor(expected: string, found: string) {
    super(
      `The secrets in this database are sealed with the master key ${expected}, but the key of this ` +
        `start is ${found}. Set security.master_key, or put back the file master.key that belongs here.`,
    )
    this.name = "WrongMasterKey"
  }
}

/** The first start decides which master key belongs to the database; every node needs that one. */
export async function demandMasterKey(store: Store, { key_id }: Secrets): Promise<void> {
  const expected = await store.tx(async (tx) => {
    const row = { name: MASTER_KEY, value: key_id }
    await tx.insert(instanceValues).values(row).onConflictDoNothing()
    const [kept] = await tx.select().from(instanceValues).where(eq(instanceValues.name, MASTER_KEY))
    return kept?.value ?? key_id
  })
  if (expected !== key_id) throw new WrongMasterKey(expected, key_id)
}

/** A write that means nothing, to learn whether the database takes writes again. */
export async function probe(store: Store): Promise<void> {
  const row = { name: PROBE, value: now() }
  const again = { target: instanceValues.name, set: { value: row.value } }
  await store.tx((tx) => tx.insert(instanceValues).values(row).onConflictDoUpdate(again))
}
