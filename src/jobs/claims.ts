import { millis, monotonic, now } from "../core/time"
import type { Recent } from "../store/cached"
import type { Store, Tx } from "../store/store"
import {
  type InFlightRows,
  inFlightOf,
  type LookAhead,
  lookAheadOf,
  recentRowsOf,
} from "./in-flight"
import { LEASED, type WorkRow } from "./work-item"
import type { DuePosition, DueShare, Lease, WorkRows } from "./work-rows"
import type { Share, WorkTable } from "./work-table"

export interface Claims<Row extends WorkRow> {
  readonly owner: string
  /** Due rows of a share, at most `limit` or its own limit. */
  claim(share: Share, limit?: number): Promise<Row[]>
  /** The one row, if it waits, due or not. */
  claimOne(id: string): Promise<Row | undefined>
  /** Of these claims, those that still count; nothing changes that until the transaction ends. */
  held(tx: Tx, rows: Row[]): Promise<Set<Row>>
  /** The claimed row, read again if it was not claimed just now; undefined when the claim is lost. */
  fresh(row: Row): Promise<Row | undefined>
  /** Forgets a claim whose result is on disk. */
  end(row: Row): void
  /** Releases what was not begun, or is cut off, as if it had not been claimed. */
  release(rows: Row[]): Promise<void>
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

/** Whether the row is as a read would give it, but for its claim: the table did not change. */
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
class MemoryClaims<Row extends WorkRow> implements Claims<Row> {
  readonly owner: string
  readonly #store: Store
  readonly #table: Claimable<Row>
  readonly #inFlight: InFlightRows
  readonly #ahead: LookAhead<Row> | undefined
  readonly #recent: Recent<Row> | undefined
  readonly #positions = new Map<unknown, ReadPosition>()

  constructor(store: Store, table: Claimable<Row>, inFlight: InFlightRows, owner: string) {
    this.#store = store
    this.#table = table
    this.#inFlight = inFlight
    this.owner = owner
    this.#recent = recentRowsOf<Row>(store.read, table.rows.name)
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
      this.#positions.clear()
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
    const after = ahead || narrow ? undefined : this.#positionOf(partition)
    // The index of due rows still contains the rows in flight, so the query asks for that many more.
    const skipped = after
      ? 0
      : this.#inFlight.countOf(partition) + (ahead?.extraFor(partition) ?? 0)
    const look = { partition, narrow, after, limit: missing + skipped }
    const before = rows.length
    if (this.#recent?.size) await this.#claimKnown(rows, look, missing)
    else this.#claimAtOnce(rows, look, missing)
    if (!after || rows.length - before === missing) return
    this.#positions.delete(partition)
    if (rows.length === before) await this.#claim(rows, share, missing)
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

  /** Rows that were just written need not be read, only their order. */
  async #claimKnown(rows: Row[], look: DueShare<ReadPosition>, missing: number) {
    const looked_at = now()
    const changes = this.#store.read.changeCount(this.#table.rows.name)
    const due = await this.#table.rows.due(this.#store.read, look)
    const free = due.filter((id) => !this.#inFlight.has(id)).slice(0, missing)
    // A row that was settled since then may be due later.
    const isDue = ({ run_at }: Row) => run_at <= looked_at
    const claimed = await this.#claimIds(free, look.partition, isDue)
    rows.push(...claimed)
    if (claimed.length === missing) this.#notePosition(look, claimed.at(-1), changes)
  }

  /** Nothing is committed between the look and the claim, so nobody can have changed the rows. */
  #claimAtOnce(rows: Row[], look: DueShare<ReadPosition>, missing: number) {
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
        const row = this.#recent?.remove(id)
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
    this.#positions.clear()
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

  async claim({ admit, ...share }: Share, limit = share.limit): Promise<Row[]> {
    const { rows } = this.#table
    // An idle node writes nothing.
    if ((await rows.due(this.#store.read, { ...share, limit: 1 })).length === 0) return []
    const claimed = await this.#store.tx(async (tx) => {
      if (!admit) return rows.claim(tx, { ...share, limit }, this.#lease)
      const list: Row[] = []
      await admit(tx, async (admitted) => {
        const part = { ...share, limit: Math.min(limit, admitted) }
        list.push(...(await rows.claim(tx, part, this.#lease)))
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
