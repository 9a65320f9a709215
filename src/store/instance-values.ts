import { eq } from "drizzle-orm"
import { forUpdate } from "./columns"
import type { Reader, Store, Tx } from "./store"
import { instanceValues } from "./tables"

/** What the instance keeps under a name, if anything. */
export async function find(db: Pick<Reader, "select">, name: string): Promise<string | undefined> {
  const [kept] = await db.select().from(instanceValues).where(eq(instanceValues.name, name))
  return kept?.value
}

/** As `find`, and no other transaction changes the value before this one ends. */
export async function findForUpdate(tx: Tx, name: string): Promise<string | undefined> {
  const own = eq(instanceValues.name, name)
  const [kept] = await forUpdate(tx.select().from(instanceValues).where(own))
  return kept?.value
}

/** The value that stands: the given one where there was none. Of two nodes at once the first wins. */
export async function initialize(tx: Tx, name: string, value: string): Promise<string> {
  await tx.insert(instanceValues).values({ name, value }).onConflictDoNothing()
  return (await find(tx, name)) ?? value
}

/** As `initialize`, without a transaction where a value stands already. */
export async function findOrInitialize(store: Store, name: string, value: string) {
  return (await find(store.read, name)) ?? store.tx((tx) => initialize(tx, name, value))
}

/** Keeps the value under the name, in place of the one before, and locks the row. */
export async function set(tx: Tx, name: string, value: string): Promise<void> {
  const again = { target: instanceValues.name, set: { value } }
  await tx.insert(instanceValues).values({ name, value }).onConflictDoUpdate(again)
}

export const remove = (tx: Tx, name: string) =>
  tx.delete(instanceValues).where(eq(instanceValues.name, name))
