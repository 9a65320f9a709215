import { millis, monotonic, now } from "../core/time"
import { perTable } from "../store/cached"
import type { Reader, Store, Tx } from "../store/store"
import { type Arrivals, arrivalsOf } from "./arrivals"
import { LEASED, type WorkRow } from "./work-item"
import type { DuePosition, DueShare } from "./work-rows"
import type { Claimable, Claims, Share } from "./work-table"

/** Rows of one table that this process works on. Where it is alone, that is all of them. */
class InFlightRows {
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

const lookAheadOf = <Row extends WorkRow>(db: Reader, table: string) =>
  foundAhead(db, table) as unknown as LookAhead<Row>

const foundAhead = perTable((db, table) => new LookAhead<never>(db, table))

/**
 * How long a claim counts as fresh: far less than a lease lasts. Work that waited longer may have
 * been claimed again, or ended, meanwhile.
 */
const FRESH_MILLISECONDS = 1000

/** By both clocks: the one may be set, and the other stands still while the machine sleeps. */
interface Moment {
  epoch_ms: number
  monotonic_ms: number
  /** As `changeCount` gave it when the row was read. */
  changes: number | undefined
}

const moments = new WeakMap<WorkRow, Moment>()

/** Remembers when these rows were claimed. */
export const noteClaims = (rows: WorkRow[], changes?: number) => {
  const at = { epoch_ms: millis(), monotonic_ms: monotonic(), changes }
  for (const row of rows) moments.set(row, at)
}

/** Whether the row is as a read would give it, but for its claim: the table did not change. */
export function isCurrent(tx: Tx, table: string, row: WorkRow): boolean {
  const changes = moments.get(row)?.changes
  return changes !== undefined && changes === tx.changeCount(table)
}

/** Whether the row was claimed just now. A clock that was set back says no. */
export function isFresh(row: WorkRow): boolean {
  const at = moments.get(row)
  if (!at) return false
  const [by_clock, lasted] = [millis() - at.epoch_ms, monotonic() - at.monotonic_ms]
  return by_clock >= 0 && Math.max(by_clock, lasted) < FRESH_MILLISECONDS
}

/**
 * How long looks go on from where the one before ended. A row that becomes due before that place is
 * found when this time is over, or as soon as a look finds too little.
 */
const POSITION_MILLISECONDS = 500

/** The last row that a look claimed. What is due before it was in flight then. */
interface ReadPosition extends DuePosition {
  /** By `monotonic`. */
  until: number
  changes: number
}

/**
 * Claims where no other process can be: they are kept in memory and write nothing. A process that
 * dies has attempted nothing, as far as the rows can tell.
 */
export class MemoryClaims<Row extends WorkRow> implements Claims<Row> {
  readonly owner: string
  readonly #store: Store
  readonly #table: Claimable<Row>
  readonly #inFlight: InFlightRows
  readonly #ahead: LookAhead<Row> | undefined
  readonly #arrivals: Arrivals<Row> | undefined
  readonly #positions = new Map<unknown, ReadPosition>()

  constructor(store: Store, table: Claimable<Row>, inFlight: InFlightRows, owner: string) {
    this.#store = store
    this.#table = table
    this.#inFlight = inFlight
    this.owner = owner
    this.#arrivals = arrivalsOf<Row>(store.read, table.rows.name)
    if (table.looks_ahead) this.#ahead = lookAheadOf<Row>(store.read, table.rows.name)
  }

  async claim(share: Share, limit = share.limit): Promise<Row[]> {
    const { admit } = share
    const rows: Row[] = []
    try {
      if (!admit) await this.#claim(rows, share, limit)
      else {
        await this.#store.tx((tx) =>
          admit(tx, async (admitted) => {
            await this.#claim(rows, share, Math.min(limit, admitted))
            return rows.length
          }),
        )
      }
      return rows
    } catch (error) {
      for (const row of rows) this.end(row) // no attempt will run, so they would stay claimed for ever
      this.lookAgain()
      throw error
    }
  }

  async #claim(rows: Row[], share: Share, limit: number) {
    const { partition, narrow } = share
    const ahead = !narrow ? this.#ahead : undefined
    for (const row of ahead?.remove(partition, limit) ?? []) {
      if (!this.#inFlight.has(row.id)) rows.push(row)
    }
    this.#own(rows, partition)
    const missing = limit - rows.length
    if (missing === 0) return
    const arrived = narrow || ahead ? undefined : this.#arrived(partition, missing)
    if (arrived) return void rows.push(...arrived)
    const after = ahead || narrow ? undefined : this.#positionOf(partition)
    // The index of due rows still contains the rows in flight, so the query asks for that many more.
    const skipped = after
      ? 0
      : this.#inFlight.countOf(partition) + (ahead?.extraFor(partition) ?? 0)
    const look = { partition, narrow, after, limit: missing + skipped }
    const before = rows.length
    const { version = 0 } = this.#arrivals ?? {}
    const looked_at = now()
    const due = this.#arrivals?.size
      ? await this.#claimKnown(rows, look, missing)
      : this.#claimAtOnce(rows, look, missing)
    // Of rows in flight some may be deleted: then it found more than is needed.
    const is_all = due.length < look.limit && due.every((id) => this.#inFlight.isClaimed(id))
    if (is_all && !after && !narrow && !ahead)
      await this.#noteAllClaimed(partition, version, looked_at)
    if (!after || rows.length - before === missing) return
    this.#positions.delete(partition)
    if (rows.length === before) await this.#claim(rows, share, missing)
  }

  /** What was just written, where nothing else can be due. */
  #arrived(partition: unknown, most: number): Row[] | undefined {
    const isFree = (id: string) => !this.#inFlight.has(id)
    const rows = this.#arrivals?.claimable(partition, most, isFree)
    if (rows) this.#own(rows, partition, this.#store.read.changeCount(this.#table.rows.name))
    return rows
  }

  async #noteAllClaimed(partition: unknown, version: number, looked_at: string) {
    const next = await this.#table.rows.next(this.#store.read, [partition as number], looked_at)
    this.#arrivals?.noteAllClaimed(partition, version, next)
  }

  #positionOf(partition: unknown): ReadPosition | undefined {
    const position = this.#positions.get(partition)
    if (!position) return undefined
    const changes = this.#store.read.changeCount(this.#table.rows.name)
    if (position.changes === changes && monotonic() < position.until) return position
    this.#positions.delete(partition)
    return undefined
  }

  /** After a look that found enough: what is due before its last row is in flight. */
  #notePosition(
    { partition, narrow, after }: DueShare<ReadPosition>,
    last: Row | undefined,
    changes?: number,
  ) {
    if (this.#ahead || narrow || !last || changes === undefined) return
    const until = after?.until ?? monotonic() + POSITION_MILLISECONDS
    this.#positions.set(partition, { run_at: last.run_at, id: last.id, until, changes })
  }

  /** Rows that were just written need not be read, only their order. Returns what is due. */
  async #claimKnown(rows: Row[], look: DueShare<ReadPosition>, missing: number): Promise<string[]> {
    const looked_at = now()
    const changes = this.#store.read.changeCount(this.#table.rows.name)
    const due = await this.#table.rows.due(this.#store.read, look)
    const free = due.filter((id) => !this.#inFlight.has(id)).slice(0, missing)
    // A row that was settled since then may be due later.
    const isDue = ({ run_at }: Row) => run_at <= looked_at
    const claimed = await this.#claimIds(free, look.partition, isDue)
    rows.push(...claimed)
    if (claimed.length === missing) this.#notePosition(look, claimed.at(-1), changes)
    return due
  }

  /** As `#claimKnown`. Nothing is committed between the look and the claim, so nobody can have changed the rows. */
  #claimAtOnce(rows: Row[], look: DueShare<ReadPosition>, missing: number): string[] {
    const { partition, limit, narrow } = look
    const { read } = this.#store
    const changes = read.changeCount(this.#table.rows.name)
    const due = this.#table.rows.dueAtOnce(read, look)
    const free = due.filter(({ id }) => !this.#inFlight.has(id))
    const rest = free.splice(missing)
    this.#own(free, partition, changes)
    rows.push(...free)
    if (free.length === missing) this.#notePosition(look, free.at(-1), changes)
    if (!narrow) this.#ahead?.keep(partition, rest, due.length < limit, this.#ahead.changes)
    return due.map(({ id }) => id)
  }

  async claimOne(id: string): Promise<Row | undefined> {
    if (this.#inFlight.has(id)) return undefined
    const [claimed] = await this.#claimIds([id], undefined, () => true)
    return claimed
  }

  /** Kept from others first, then read: what was cancelled or ended in between is not among them. */
  async #claimIds(ids: string[], partition: unknown, which: (row: Row) => boolean) {
    if (ids.length === 0) return []
    const order = new Map(ids.map((id, at) => [id, at]))
    const { free, end } = this.#inFlight.reserve(ids)
    const { read } = this.#store
    try {
      const changes = read.changeCount(this.#table.rows.name)
      const known = free.flatMap((id) => {
        const row = this.#arrivals?.remove(id)
        return row ? [{ ...row }] : [] // the claim changes its own
      })
      const missing = known.length === 0 ? free : without(free, known)
      const found = [...known, ...(await this.#table.rows.ready(read, missing))].filter(which)
      const claimed = found.sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0))
      this.#own(claimed, partition, changes)
      return claimed
    } finally {
      end()
    }
  }

  #own(rows: Row[], partition: unknown, changes?: number) {
    for (const row of rows) {
      row.attempt += 1
      row.state = LEASED
      row.owner = this.owner
      this.#inFlight.claim(row.id, partition, row)
    }
    noteClaims(rows, changes)
  }

  async held(_: Tx, rows: Row[]): Promise<Set<Row>> {
    return new Set(rows.filter((row) => this.#inFlight.holds(row.id, row)))
  }

  async fresh(row: Row): Promise<Row | undefined> {
    if (isFresh(row)) return row
    const [found] = await this.#table.rows.ready(this.#store.read, [row.id])
    if (!found || !this.#inFlight.holds(row.id, row)) return undefined
    const { attempt, state, owner } = row
    moments.delete(row) // of its first read
    return Object.assign(row, found, { attempt, state, owner })
  }

  end(row: Row) {
    if (this.#inFlight.holds(row.id, row)) this.#inFlight.release(row.id)
  }

  async release(rows: Row[]) {
    for (const row of rows) this.end(row)
    this.lookAgain()
    this.#table.onRelease?.(rows)
  }

  lookAgain() {
    this.#positions.clear()
    this.#arrivals?.noteOther()
  }

  async keep() {}

  async sweep() {}
}

function without(ids: string[], known: WorkRow[]): string[] {
  if (known.length === ids.length) return []
  const found = new Set(known.map(({ id }) => id))
  return ids.filter((id) => !found.has(id))
}
