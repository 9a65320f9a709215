import { lt } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { dayOf, secondsFromNow } from "../core/time"
import { remover } from "./statements"
import type { Store } from "./store"

/** Three years, leap days included: as the usage of an account (`tenancy/usage.ts`). */
const KEPT_SECONDS = 3 * 366 * 86_400

/** Rows of one transaction. */
const AT_ONCE = 200

/** What removes up to 200 counts of days long past from a table with a column `day`, and returns how many went. */
export const dayPurge = <Table extends SQLiteTable & { day: SQLiteColumn }>(
  table: Table,
  key: (keyof Table["$inferSelect"] & string)[],
) => purgeBefore(table, table.day, key, "YYYY-MM-DD".length)

/** The same of months, in a column `period`. */
export const monthPurge = <Table extends SQLiteTable & { period: SQLiteColumn }>(
  table: Table,
  key: (keyof Table["$inferSelect"] & string)[],
) => purgeBefore(table, table.period, key, "YYYY-MM".length)

function purgeBefore<Table extends SQLiteTable>(
  table: Table,
  time: SQLiteColumn,
  key: (keyof Table["$inferSelect"] & string)[],
  characters: number,
): (store: Store) => Promise<number> {
  const removeRows = remover(table, key, { quiet: true })
  const columns = Object.fromEntries(key.map((name) => [name, table[name as keyof Table]]))
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
