import { perTable } from "../store/cached"
import type { Reader } from "../store/store"
import type { WorkRow } from "./work-item"

/** Rows of one table that this process works on. Where it is alone, that is all of them. */
export class InFlightRows {
  /** By id: the claim, or nothing for a row that is kept from being claimed. */
  readonly #claims = new Map<string, object | undefined>()
  readonly #partitions = new Map<unknown, number>()
  readonly #partition_of = new Map<string, unknown>()

  /** Whether the row is claimed, or kept from it. */
  has(id: string): boolean {
    return this.#claims.has(id)
  }

  isClaimed(id: string): boolean {
    return this.#claims.get(id) !== undefined
  }

  /** Whether this very claim still counts. */
  holds(id: string, claim: object): boolean {
    return this.#claims.get(id) === claim
  }

  /** How many of the partition are claimed. */
  countOf(partition: unknown): number {
    return this.#partitions.get(partition) ?? 0
  }

  /** The rows that are claimed. */
  ids(): string[] {
    return [...this.#claims].flatMap(([id, claim]) => (claim ? [id] : []))
  }

  claims<Row extends object>(): Row[] {
    return [...this.#claims.values()].filter((claim) => claim !== undefined) as Row[]
  }

  claim(id: string, partition: unknown, claim: object) {
    this.release(id)
    this.#claims.set(id, claim)
    this.#partition_of.set(id, partition)
    this.#partitions.set(partition, this.countOf(partition) + 1)
  }

  release(id: string) {
    this.#claims.delete(id)
    if (!this.#partition_of.has(id)) return
    const partition = this.#partition_of.get(id)
    this.#partition_of.delete(id)
    const left = this.countOf(partition) - 1
    if (left > 0) this.#partitions.set(partition, left)
    else this.#partitions.delete(partition)
  }

  /** Keeps rows from being claimed that are not, until the returned function is called. */
  reserve(ids: string[]): { free: string[]; end: () => void } {
    const free = ids.filter((id) => !this.#claims.has(id))
    for (const id of free) this.#claims.set(id, undefined)
    const end = () => {
      for (const id of free) if (!this.isClaimed(id)) this.#claims.delete(id)
    }
    return { free, end }
  }
}

/** What this process works on; undefined where other processes share the database. */
export const inFlightOf = (db: Reader, table: string): InFlightRows | undefined =>
  db.isAlone ? rowsInFlight(db, table) : undefined

const rowsInFlight = perTable(() => new InFlightRows())

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

/** The rows found ahead in one table of one store. */
export const lookAheadOf = <Row extends WorkRow>(db: Reader, table: string) =>
  foundAhead(db, table) as unknown as LookAhead<Row>

const foundAhead = perTable((db, table) => new LookAhead<never>(db, table))
