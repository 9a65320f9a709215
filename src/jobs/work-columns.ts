import { sql } from "drizzle-orm"
import { index, int, text, time } from "../store/columns"

type Indexed = Parameters<ReturnType<typeof index>["on"]>[0]

/** The columns of work that waits, for a table's declaration. `work.ts` has the states. */
export const workColumns = () => ({
  state: int().notNull(),
  /** When it is due. Of dead work: when it died. */
  run_at: time().notNull(),
  /** Attempts that have begun. */
  attempt: int().notNull(),
  owner: text(),
  lease_until: time(),
})

interface Indexable {
  id: Indexed
  run_at: Indexed
  owner: Indexed
  lease_until: Indexed
}

/** The indexes that the engine walks. `partition` is what `WorkRows` is given for the same table. */
export const workIndexes = (name: string, row: Indexable, partition: Indexed) => [
  index(`${name}_ready`).on(partition, row.run_at, row.id).where(sql`state = 0`),
  index(`${name}_leased`).on(row.lease_until).where(sql`state = 1`),
  index(`${name}_dead`).on(row.run_at).where(sql`state = 2`),
  index(`${name}_held`).on(row.owner, row.id).where(sql`state = 3`),
]
