import { millis, monotonic, now } from "../core/time"
import type { Store, Tx } from "../store/store"
import {
  type InFlightRows,
  inFlightOf,
  type LookAhead,
  lookAheadOf,
  type RecentRows,
  recentRowsOf,
} from "./in-flight"
import { LEASED, type WorkRow } from "./work-item"
import type { DueShare, Lease, WorkRows } from "./work-rows"
import type { Share, WorkTable } from "./work-table"

/** How a process says that a row is its own. */
export interface Claims<Row extends WorkRow> {
  readonly owner: string
  /** Up to the share's limit of due rows. */
  claim(share: Share): Promise<Row[]>
  /** The one row, if it waits, due or not. */
  claimOne(id: string): Promise<Row | undefined>
  /** Of these claims, those that still count; nothing changes that until the transaction ends. */
  held(tx: Tx, rows: Row[]): Promise<Set<Row>>
  /** The claimed row, read again if it was not claimed just now; undefined when the claim is lost. */
  fresh(row: Row): Promise<Row | undefined>
  /** Forgets claims whose results are on disk. */
  end(rows: Row[]): void
  /** Releases what was not begun, or is cut off, as if it had not been claimed. */
  release(rows: Row[]): Promise<void>
  /** Keeps these claims for longer. */
  keep(rows: Row[]): Promise<void>
  /** Frees what other processes left behind. */
  sweep(working: Row[]): Promise<void>
}

type Claimable<Row extends WorkRow> = Pick<WorkTable<Row, never>, "rows" | "looks_ahead"> & {
  onRelease?: WorkTable<Row, never>["onRelease"] | undefined
}

export const claimsOf = <Row extends WorkRow>(
  store: Store,
  table: Claimable<Row>,
  lease: Lease & { alone: boolean },
): Claims<Row> => {
  const inFlight = lease.alone ? inFlightOf(store.read, table.rows.name) : undefined
  return inFlight
    ? new MemoryClaims(store, table, inFlight, lease.owner)
    : new LeaseClaims(store, table, lease)
}

/**
 * Changes rows that wait: of `ids`, `change` gets the unclaimed ones, and they stay unclaimed until
 * it is on disk. A claimed row is left to its attempt.
 */
export async function changeUnclaimed<Row extends WorkRow, Result>(
  store: Store,
  rows: WorkRows<Row>,
  ids: string[],
  change: (tx: Tx, unclaimed: string[]) => Promise<Result>,
): Promise<Result> {
  const reserved = inFlightOf(store.read, rows.name)?.reserve(ids)
  try {
    return await store.tx(async (tx) => change(tx, await rows.unclaimed(tx, reserved?.free ?? ids)))
  } finally {
    reserved?.end()
  }
}

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

const noteClaims = (rows: WorkRow[], changes?: number) => {
  const at = { epoch_ms: millis(), monotonic_ms: monotonic(), changes }
  for (const row of rows) moments.set(row, at)
}

/**
 * Whether the claimed row is still what a read would give, but for what the claim itself changed:
 * nobody else has changed the table since.
 */
export function isCurrent(tx: Tx, table: string, row: WorkRow): boolean {
  const changes = moments.get(row)?.changes
  return changes !== undefined && changes === tx.changeCount(table)
}

/** Whether the row was claimed just now. A clock that was set back says no. */
function isFresh(row: WorkRow): boolean {
  const at = moments.get(row)
  if (!at) return false
  const [by_clock, lasted] = [millis() - at.epoch_ms, monotonic() - at.monotonic_ms]
  return by_clock >= 0 && Math.max(by_clock, lasted) < FRESH_MILLISECONDS
}

/**
 * Claims where no other process can be: they are kept in memory and write nothing. A process that
 * dies has attempted nothing, as far as the rows can tell.
 */
class MemoryClaims<Row extends WorkRow> implements Claims<Row> {
  readonly owner: string
  readonly #store: Store
  readonly #table: Claimable<Row>
  readonly #inFlight: InFlightRows
  readonly #ahead: LookAhead<Row> | undefined
  readonly #recent: RecentRows<Row> | undefined

  constructor(store: Store, table: Claimable<Row>, inFlight: InFlightRows, owner: string) {
    this.#store = store
    this.#table = table
    this.#inFlight = inFlight
    this.owner = owner
    this.#recent = recentRowsOf<Row>(store.read, table.rows.name)
    if (table.looks_ahead) this.#ahead = lookAheadOf<Row>(store.read, table.rows.name)
  }

  async claim({ admit, ...share }: Share): Promise<Row[]> {
    const rows: Row[] = []
    try {
      if (!admit) await this.#claim(rows, share)
      else {
        await this.#store.tx((tx) =>
          admit(tx, async (limit) => {
            await this.#claim(rows, { ...share, limit })
            return rows.length
          }),
        )
      }
      return rows
    } catch (error) {
      this.end(rows) // no attempt will run, so they would stay claimed for ever
      throw error
    }
  }

  async #claim(rows: Row[], share: DueShare) {
    const { partition, limit, filter } = share
    const ahead = filter === undefined ? this.#ahead : undefined
    const found = ahead?.remove(partition, limit) ?? []
    rows.push(...found.filter(({ id }) => !this.#inFlight.has(id)))
    this.#own(rows, partition)
    const missing = limit - rows.length
    if (missing === 0) return
    // The index of due rows still contains the rows in flight, so the query asks for that many more.
    const most = missing + this.#inFlight.countOf(partition) + (ahead?.extraFor(partition) ?? 0)
    if (!this.#recent?.size) return this.#claimAtOnce(rows, share, { missing, most })
    const looked_at = now()
    const due = await this.#table.rows.due(this.#store.read, { partition, limit: most, filter })
    const free = due.filter((id) => !this.#inFlight.has(id)).slice(0, missing)
    // A row that was settled since then may be due later.
    const isDue = ({ run_at }: Row) => run_at <= looked_at
    rows.push(...(await this.#claimIds(free, partition, isDue)))
  }

  /** Nothing is committed between the look and the claim, so nobody can have changed the rows. */
  #claimAtOnce(
    rows: Row[],
    { partition, filter }: DueShare,
    { missing, most }: { missing: number; most: number },
  ) {
    const { read } = this.#store
    const changes = read.changeCount(this.#table.rows.name)
    const due = this.#table.rows.dueAtOnce(read, { partition, limit: most, filter })
    const free = due.filter(({ id }) => !this.#inFlight.has(id))
    const rest = free.splice(missing)
    this.#own(free, partition, changes)
    rows.push(...free)
    if (filter === undefined)
      this.#ahead?.keep(partition, rest, due.length < most, this.#ahead.changes)
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
      const known = free.flatMap((id) => this.#recent?.remove(id) ?? [])
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

  end(rows: Row[]) {
    for (const row of rows) if (this.#inFlight.holds(row.id, row)) this.#inFlight.release(row.id)
  }

  async release(rows: Row[]) {
    this.end(rows)
    this.#table.onRelease?.(rows)
  }

  async keep() {}

  async sweep() {}
}

function without(ids: string[], known: WorkRow[]): string[] {
  if (known.length === ids.length) return []
  const found = new Set(known.map(({ id }) => id))
  return ids.filter((id) => !found.has(id))
}

/** Claims among several processes: a lease in the row, which ends unless it is kept. */
class LeaseClaims<Row extends WorkRow> implements Claims<Row> {
  readonly #store: Store
  readonly #table: Claimable<Row>
  readonly #lease: Lease

  constructor(store: Store, table: Claimable<Row>, lease: Lease) {
    this.#store = store
    this.#table = table
    this.#lease = lease
  }

  get owner(): string {
    return this.#lease.owner
  }

  async claim({ admit, ...share }: Share): Promise<Row[]> {
    const { rows } = this.#table
    // An idle node writes nothing.
    if ((await rows.due(this.#store.read, { ...share, limit: 1 })).length === 0) return []
    const claimed = await this.#store.tx(async (tx) => {
      if (!admit) return rows.claim(tx, share, this.#lease)
      const list: Row[] = []
      await admit(tx, async (limit) => {
        list.push(...(await rows.claim(tx, { ...share, limit }, this.#lease)))
        return list.length
      })
      return list
    })
    noteClaims(claimed)
    return claimed
  }

  async claimOne(id: string): Promise<Row | undefined> {
    const row = await this.#store.tx((tx) => this.#table.rows.claimOne(tx, id, this.#lease))
    if (row) noteClaims([row])
    return row
  }

  held(tx: Tx, list: Row[]): Promise<Set<Row>> {
    return this.#table.rows.held(tx, list, this.owner)
  }

  async fresh(row: Row): Promise<Row | undefined> {
    return isFresh(row) ? row : this.#table.rows.reread(this.#store.read, row)
  }

  end() {}

  async release(list: Row[]) {
    if (list.length === 0) return
    await this.#store.tx((tx) => this.#table.rows.release(tx, list, this.owner))
    this.#table.onRelease?.(list)
  }

  async keep(list: Row[]) {
    const ids = list.map(({ id }) => id)
    if (ids.length > 0) await this.#table.rows.keep(this.#store, ids, this.#lease)
  }

  async sweep(working: Row[]) {
    const ids = working.map(({ id }) => id)
    await this.#table.rows.sweep(this.#store, ids)
  }
}
