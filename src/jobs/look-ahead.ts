import type { InFlightRows } from "../store/in-flight"
import type { Reader } from "../store/store"
import type { WorkRow } from "./work-item"

const FIRST = 8
const MOST = 128
const MOST_OF_ALL = 8192

interface Found<Row> {
  rows: Row[]
  /** How many more rows than needed the next look reads. */
  extra: number
}

/**
 * Due rows that a claim found beyond its limit, by partition and in their order, so that a backlog is
 * read once. Only where the process is alone. Every change of the table forgets them, but for quiet
 * writes: those of new rows, which are due after these, and of rows in flight.
 */
export class LookAhead<Row extends WorkRow> {
  readonly #found = new Map<unknown, Found<Row>>()
  #count = 0
  #changes = 0

  constructor(db: Reader, table: string) {
    db.onChanged([table], () => {
      this.#changes += 1
      this.#count = 0
      this.#found.clear()
    })
  }

  /** How often the table changed, as `keep` must hear it of the moment before the look. */
  get changes(): number {
    return this.#changes
  }

  /** Removes and returns the next rows of the partition, at most `limit`. */
  remove(partition: unknown, limit: number): Row[] {
    const rows = this.#found.get(partition)?.rows.splice(0, limit) ?? []
    this.#count -= rows.length
    return rows
  }

  /** How many rows more than it needs a look should ask for: twice as many with each that paid. */
  extraFor(partition: unknown): number {
    return this.#found.get(partition)?.extra ?? 0
  }

  /** Keeps rows of a look, unless the table changed meanwhile. `is_all`: no other row is due. */
  keep(partition: unknown, rows: Row[], is_all: boolean, changes: number) {
    if (changes !== this.#changes) return
    const { rows: before = [], extra = 0 } = this.#found.get(partition) ?? {}
    this.#count -= before.length
    const kept = this.#count + rows.length > MOST_OF_ALL ? [] : rows
    this.#count += kept.length
    const next = kept.length < rows.length ? 0 : Math.min(MOST, Math.max(FIRST, extra * 2))
    if (is_all && kept.length === 0) this.#found.delete(partition)
    else this.#found.set(partition, { rows: kept, extra: next })
  }
}

const all = new WeakMap<InFlightRows, LookAhead<never>>()

/** The rows found ahead in one table of one store. */
export function lookAheadOf<Row extends WorkRow>(
  db: Reader,
  inFlight: InFlightRows,
  table: string,
): LookAhead<Row> {
  const known = all.get(inFlight)
  if (known) return known as unknown as LookAhead<Row>
  const made = new LookAhead<Row>(db, table)
  all.set(inFlight, made as unknown as LookAhead<never>)
  return made
}
