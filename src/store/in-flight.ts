import type { Reader } from "./store"

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

/** What one process works on, by the name of the table. */
class InFlight {
  readonly #tables = new Map<string, InFlightRows>()

  of(table: string): InFlightRows {
    const rows = this.#tables.get(table) ?? new InFlightRows()
    this.#tables.set(table, rows)
    return rows
  }
}

/** Where a process is alone with its database, what it works on; `sqlite.ts` enters it. */
const alone = new WeakMap<Reader, InFlight>()

export function beAlone(...connections: Reader[]) {
  const inFlight = new InFlight()
  for (const connection of connections) alone.set(connection, inFlight)
}

/** What this process works on; undefined where other processes share the database. */
export const inFlightOf = (db: Reader, table: string): InFlightRows | undefined =>
  alone.get(db)?.of(table)
