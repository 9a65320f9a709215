import { sql } from "drizzle-orm"
import type { Reader } from "../../src/store/store"

/**
 * Resolves once so many sessions of this Postgres database wait for a lock, or once `work` is over, which
 * may need none. The database is that of the test file alone.
 */
export async function untilLocked(
  db: Reader,
  sessions: number,
  work: Promise<unknown>,
): Promise<void> {
  let is_over = false
  const over = () => {
    is_over = true
  }
  void work.then(over, over)
  while (!is_over && (await lockWaits(db)) < sessions) await Bun.sleep(5)
}

async function lockWaits(db: Reader): Promise<number> {
  const ours = sql`datname = current_database() AND wait_event_type = 'Lock'`
  const counted = db.select({ n: sql<string>`count(*)` }).from(sql`pg_stat_activity`)
  const [row] = await counted.where(ours)
  return Number(row?.n ?? 0)
}
