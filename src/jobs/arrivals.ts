import { millis, monotonic, now } from "../core/time"
import { perTable } from "../store/cached"
import type { Reader } from "../store/store"
import type { WorkRow } from "./work-item"

const MOST_KEPT = 2000

/** For so long a look that found everything is believed: what it could not see is found then. */
const BELIEVED_MILLISECONDS = 500

/** Rows are claimed by it, the most urgent first. */
interface PartitionedRow extends WorkRow {
  priority?: number
}

/** Until then everything else that is due in a partition is in flight. */
interface Believed {
  /** By `monotonic`. */
  until: number
  /** When the next row is due, in milliseconds since 1970. */
  next_due: number
}

/**
 * Rows of one table that were just written, as a read would give them, in the order of their commits. Where a look has
 * claimed everything that is due, they are all that can be claimed next, and no look is needed. Every change of the
 * table forgets both, but for quiet writes.
 */
export class Arrivals<Row extends PartitionedRow> {
  readonly #rows = new Map<string, Row>()
  readonly #believed = new Map<unknown, Believed>()
  /** Rises with everything that a look, begun before, may not have seen. */
  #version = 0

  get size(): number {
    return this.#rows.size
  }

  get version(): number {
    return this.#version
  }

  /** After the commit. Those that come first stay, because they are claimed first; one for later is not kept. */
  keep(id: string, row: Row): void {
    if (this.#rows.size < MOST_KEPT && row.run_at <= now()) this.#rows.set(id, row)
    else this.noteOther()
  }

  /** A row waits that is not kept here. */
  noteOther(): void {
    this.#version += 1
    this.#believed.clear()
  }

  remove(id: string): Row | undefined {
    const row = this.#rows.get(id)
    this.#rows.delete(id)
    return row
  }

  clear(): void {
    this.#rows.clear()
    this.noteOther()
  }

  /** A look has claimed every due row; `version` is that of its beginning, `next_due` of the next row. */
  noteAllClaimed(partition: unknown, version: number, next_due = Number.POSITIVE_INFINITY): void {
    if (version !== this.#version) return
    this.#believed.set(partition, { until: monotonic() + BELIEVED_MILLISECONDS, next_due })
  }

  /** Removes and returns what may be claimed of a partition; undefined where only a look can tell. */
  claimable(partition: unknown, most: number, isFree: (id: string) => boolean): Row[] | undefined {
    const believed = this.#believed.get(partition)
    if (!believed || monotonic() >= believed.until || millis() >= believed.next_due)
      return undefined
    const found: Row[] = []
    const moment = now()
    for (const row of this.#rows.values()) {
      if (found.length === most) break
      if (row.priority === partition && row.run_at <= moment && isFree(row.id)) found.push(row)
    }
    for (const { id } of found) this.#rows.delete(id)
    return found.map((row) => ({ ...row })) // the claim changes its own
  }
}

const arrivals = perTable((db, table) => {
  const rows = new Arrivals<never>()
  db.onChanged([table], () => rows.clear())
  return rows
})

/** Undefined where other processes share the database. */
export const arrivalsOf = <Row extends WorkRow>(db: Reader, table: string) =>
  db.isAlone ? (arrivals(db, table) as unknown as Arrivals<Row>) : undefined
