import { lt } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { dayOf, secondsFromNow } from "../core/time"
import { remover } from "./statements"
import type { Store } from "./store"

/** Three years, leap days included: as the usage of an account (`tenancy/usage.ts`). */
const KEPT_SECONDS = 3 * 366 * 86_400

/** Rows of one transaction. */
const AT_ONCE = 200

/**
 * What removes up to 200 counts of days or months long past from a table, and returns how many went. Its column
 * `day` has the form YYYY-MM-DD, a column `period` the form YYYY-MM.
 */
export function dayPurge<
  Table extends SQLiteTable & Record<Time, SQLiteColumn>,
  Time extends string = "day",
>(
  table: Table,
  key: (keyof Table["$inferSelect"] & string)[],
  name: Time | "day" = "day",
): (store: Store) => Promise<number> {
  const removeRows = remover(table, key, { quiet: true })
  const columns = Object.fromEntries(key.map((name) => [name, table[name as keyof Table]]))
  const time = table[name as Time]
  const characters = name === "day" ? "YYYY-MM-DD".length : "YYYY-MM".length
  return async (store) => {
    const rows = store.read
      .select(columns as Record<string, SQLiteColumn>)
      .from(table as SQLiteTable)
    const old = rows.where(lt(time, dayOf(secondsFromNow(-KEPT_SECONDS)).slice(0, characters)))
    const some = await old.orderBy(time).limit(AT_ONCE)
    if (some.length > 0) await store.tx((tx) => removeRows(tx, some as never))
    return some.length
  }
}
