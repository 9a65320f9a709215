import { getTableName, inArray } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import * as instanceValues from "../store/instance-values"
import type { Store } from "../store/store"
import { MASTER_KEY, NEXT_MASTER_KEY, PREVIOUS_KEY } from "./instance"
import { openedIn, sealedRows } from "./rotate-master-key"
import { SEALED_COLUMNS, type SealedColumn } from "./sealed-columns"

/** Rows of one transaction. */
const AT_ONCE = 100

/** Values of one column that no key at hand opens. */
interface LostSecrets {
  column: string
  what: string
  count: number
  remedy: string
}

/** What cannot be opened any more, by column. */
export async function lostSecrets(store: Store, secrets: Secrets): Promise<LostSecrets[]> {
  const all: LostSecrets[] = []
  for (const sealed of SEALED_COLUMNS) {
    const count = (await lostKeys(store, secrets, sealed)).length
    const { column, what, remedy } = sealed
    const name = `${tableOf(sealed)}.${column.name}`
    if (count > 0) all.push({ column: name, what, count, remedy })
  }
  return all
}

const tableOf = ({ column }: SealedColumn) => getTableName(column.table)

/**
 * Goes on with the key at hand: what has no other remedy is dropped, so that it is made anew, and the
 * database belongs to this key from now on. Returns what was lost.
 */
export async function acceptLostKey(store: Store, secrets: Secrets): Promise<LostSecrets[]> {
  const lost = await lostSecrets(store, secrets)
  for (const sealed of SEALED_COLUMNS) {
    const { key, column, drop } = sealed
    if (!drop) continue
    const lost = await lostKeys(store, secrets, sealed)
    for (let at = 0; at < lost.length; at += AT_ONCE) {
      const some = inArray(key, lost.slice(at, at + AT_ONCE))
      await store.tx(async (tx) => {
        if (drop === "row") await tx.delete(key.table).where(some)
        else
          await tx
            .update(key.table)
            .set({ [column.name]: null })
            .where(some)
      })
    }
  }
  await store.tx(async (tx) => {
    await instanceValues.set(tx, MASTER_KEY, secrets.key_id)
    await instanceValues.remove(tx, NEXT_MASTER_KEY)
    await instanceValues.remove(tx, PREVIOUS_KEY)
  })
  return lost
}

async function lostKeys(store: Store, secrets: Secrets, sealed: SealedColumn): Promise<string[]> {
  const lost: string[] = []
  for await (const rows of sealedRows(store, sealed)) {
    for (const { key, text } of rows)
      if (openedIn(secrets, text, sealed.contextOf(key)) === undefined) lost.push(key)
  }
  return lost
}
