import type { Store, Tx } from "../store/store"
import { inFlightOf, isFresh, MemoryClaims, noteClaims } from "./in-flight"
import type { WorkRow } from "./work-item"
import type { Lease, WorkRows } from "./work-rows"
import type { Claimable, Claims, Share } from "./work-table"

/** In memory where the process is alone, otherwise as leases in the rows. */
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
