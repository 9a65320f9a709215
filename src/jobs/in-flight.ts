import { perTable, Recent } from "../store/cached"
import type { Reader, Store } from "../store/store"
import type { WorkRow } from "./work-item"

/** Rows of one table that this process works on. Where it is alone, that is all of them. */
export class InFlightRows {
  /** Without a claim where a row is kept from being claimed. */
  readonly #rows = new Map<string, { claim: object | undefined; partition: unknown }>()
  readonly #counts = new Map<unknown, number>()

  /** Whether the row is claimed, or kept from it. */
  has(id: string): boolean {
    return this.#rows.has(id)
  }

  isClaimed(id: string): boolean {
    return this.#rows.get(id)?.claim !== undefined
  }

  holds(id: string, claim: object): boolean {
    return this.#rows.get(id)?.claim === claim
  }

  countOf(partition: unknown): number {
    return this.#counts.get(partition) ?? 0
  }

  ids(): string[] {
    return [...this.#rows].flatMap(([id, { claim }]) => (claim ? [id] : []))
  }

  claims<Row extends object>(): Row[] {
    return [...this.#rows.values()].flatMap(({ claim }) => (claim ? [claim as Row] : []))
  }

  claim(id: string, partition: unknown, claim: object) {
    if (this.isClaimed(id)) this.release(id)
    this.#rows.set(id, { claim, partition })
    this.#counts.set(partition, this.countOf(partition) + 1)
  }

  release(id: string) {
    const row = this.#rows.get(id)
    this.#rows.delete(id)
    if (!row?.claim) return
    const left = this.countOf(row.partition) - 1
    if (left > 0) this.#counts.set(row.partition, left)
    else this.#counts.delete(row.partition)
  }

  /** Keeps rows from being claimed that are not, until the returned function is called. */
  reserve(ids: string[]): { free: string[]; end: () => void } {
    const free = ids.filter((id) => !this.has(id))
    for (const id of free) this.#rows.set(id, { claim: undefined, partition: undefined })
    const end = () => {
      for (const id of free) if (!this.isClaimed(id)) this.#rows.delete(id)
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
  /** How many of them were removed, from the front. */
  removed: number
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

  remove(partition: unknown, limit: number): Row[] {
    const found = this.#found.get(partition)
    if (!found) return []
    const rows = found.rows.slice(found.removed, found.removed + limit)
    found.removed += rows.length
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
    const { rows: before = [], removed = 0, extra = 0 } = this.#found.get(partition) ?? {}
    this.#count -= before.length - removed
    const kept = this.#count + rows.length > MOST_OF_ALL ? [] : rows
    this.#count += kept.length
    const next = kept.length < rows.length ? 0 : Math.min(MOST, Math.max(FIRST, extra * 2))
    if (is_all && kept.length === 0) this.#found.delete(partition)
    else this.#found.set(partition, { rows: kept, removed: 0, extra: next })
  }
}

export const lookAheadOf = <Row extends WorkRow>(db: Reader, table: string) =>
  foundAhead(db, table) as unknown as LookAhead<Row>

const foundAhead = perTable((db, table) => new LookAhead<never>(db, table))

const MOST_RECENT = 2000

/** Every change of the table forgets them, but for quiet writes. */
const recentRows = perTable((db, table) => {
  const recent = new Recent<never>({ most: MOST_RECENT })
  db.onChanged([table], () => recent.clear())
  return recent
})

/** As a read would give them; undefined where other processes share the database. */
export const recentRowsOf = <Row extends WorkRow>(db: Reader, table: string) =>
  db.isAlone ? (recentRows(db, table) as unknown as Recent<Row>) : undefined

const TOGETHER_MILLISECONDS = 10

/** How the parts of a process hear that there is something new, and how it is told. */
export interface WakeUpTopic {
  topic: string
  /** Calls `listener` after each commit that brought something, until the returned function is called. */
  onWakeUp(listener: () => void): () => void
  /** Wakes the listeners of this process; also called when another node tells of something new. */
  wakeUp(): void
}

export const wakeUpOf = perTable((_, table): WakeUpTopic => {
  const listeners = new Set<() => void>()
  return {
    topic: `belfry_work_${table}`,
    onWakeUp(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    wakeUp() {
      for (const listener of listeners) listener()
    },
  }
})

/**
 * Carries wake-ups to the other nodes on the same Postgres, and theirs to us. Commits that come
 * together are told together; what is lost, the polls find. Returns how to stop.
 */
export function shareWakeUps(store: Store, shared: WakeUpTopic[]): () => void {
  if (store.isAlone) return () => {}
  const leave = shared.map((one) => share(store, one))
  return () => {
    for (const stop of leave) stop()
  }
}

function share(store: Store, { topic, onWakeUp, wakeUp }: WakeUpTopic) {
  let is_foreign = false
  let timer: Timer | undefined
  void store.listen(topic, () => {
    is_foreign = true // what follows came from outside: it must not go out again
    wakeUp()
    is_foreign = false
  })
  const off = onWakeUp(() => {
    if (is_foreign || timer) return
    timer = setTimeout(() => {
      timer = undefined
      void store.notify(topic, "")
    }, TOGETHER_MILLISECONDS)
  })
  return () => {
    off()
    clearTimeout(timer)
  }
}
