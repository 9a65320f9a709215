import {
  and,
  type Column,
  eq,
  getTableColumns,
  getTableName,
  gt,
  inArray,
  lt,
  lte,
  ne,
  notInArray,
  type SQL,
  sql,
} from "drizzle-orm"
import { millis, now, secondsFromNow } from "../core/time"
import { perTable } from "../store/cached"
import { forUpdate, idList, isAmong, skipLocked } from "../store/columns"
import { prepared, preparedAtOnce } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import type { jobs } from "./tables"
import { DEAD, LEASED, READY, type WorkRow } from "./work-item"

/** As literals: a bound value would keep the database from using the partial indexes. */
export const isReady = sql`state = 0`
export const isLeased = sql`state = 1`
export const isDead = sql`state = 2`
export const isHeld = sql`state = 3`

const SWEEP_LIMIT = 500
const FREE = { state: READY, owner: null, lease_until: null }

export interface DuePosition {
  run_at: string
  id: string
}

export interface DueShare<Position extends DuePosition = DuePosition> {
  partition: string | number
  limit: number
  narrow?: boolean | undefined
  after?: Position | undefined
}

const FIRST: DuePosition = { run_at: new Date(0).toISOString(), id: "" }

/** The owner of a claim in the row, and for how long. */
export interface Lease {
  owner: string
  lease_ms: number
}

type Table = typeof jobs

type ClaimedColumns = Table["_"]["columns"]

interface RowsOptions {
  /** What else is written when work is given up without a word of its table's `settle`. */
  buried?: (reason: string) => object
  onBury?: (tx: Tx, row: WorkRow) => Promise<void>
  /** What a narrowed claim asks of rows besides. */
  narrows?: SQL
  /** The columns of a claimed row; without them all. */
  claimed?: object
  under_hold?: HoldColumns
  /** Rows that wait for their time alone: nothing is left to do with them, and no queue counts them. */
  idle?: SQL
}

/** What else is written where a named hold takes rows, and where it gives them back. */
interface HoldColumns {
  takes: object
  frees: object
}

/**
 * The statements of the engine on one table; `Row` is a whole row of it. Due rows are found by
 * `partition`, an indexed column.
 */
export class WorkRows<Row extends WorkRow> {
  readonly name: string
  /** The table, for what only some users of the engine ask of it. */
  readonly table: Table
  /** Since when a row is wanted: in milliseconds, as SQL. */
  readonly wanted_since: SQL<number>
  readonly under_hold: HoldColumns
  readonly idle: SQL
  readonly #options: RowsOptions
  readonly #claimed: ClaimedColumns
  readonly #statements: ReturnType<typeof statementsOf>
  readonly #all: ReturnType<typeof dueStatements>
  readonly #narrowed: ReturnType<typeof dueStatements>

  constructor(table: object, partition: Column, options: RowsOptions) {
    this.table = table as Table
    this.name = getTableName(this.table)
    this.under_hold = options.under_hold ?? { takes: {}, frees: {} }
    this.idle = options.idle ?? sql`1 = 0`
    this.#options = options
    const columns = getTableColumns(this.table)
    this.#claimed = (options.claimed as ClaimedColumns | undefined) ?? columns
    const { scheduled_at, created_at } = columns as Record<string, Column>
    this.wanted_since = scheduled_at
      ? sql`coalesce(${scheduled_at}, ${created_at})`
      : sql`${created_at}`
    const level = partition as Table["priority"]
    this.#statements = statementsOf(this.table, level, this.#claimed)
    this.#all = dueStatements(this.table, level, undefined, this.#claimed)
    this.#narrowed = dueStatements(this.table, level, options.narrows, this.#claimed)
  }

  #due = ({ narrow }: DueShare) => (narrow ? this.#narrowed : this.#all)

  async due(db: Reader, share: DueShare): Promise<string[]> {
    return (await this.#due(share).find(db, dueValues(share))).map(({ id }) => id)
  }

  /** Due rows, the oldest first, where the process is alone. */
  dueAtOnce(db: Reader, share: DueShare): Row[] {
    return this.#due(share).findAtOnce(db, dueValues(share)) as unknown as Row[]
  }

  /** The rows with these ids, in no order, without those that wait no more. */
  async ready(db: Reader, ids: string[]): Promise<Row[]> {
    if (ids.length === 0) return []
    return (await this.#statements.findReady(db, { ids })) as unknown as Row[]
  }

  /** Leases due rows, in the order of their ids. */
  async claim(tx: Tx, share: DueShare, lease: Lease): Promise<Row[]> {
    const rows = await this.#due(share).claim(tx, {
      partition: share.partition as number,
      now: now(),
      limit: share.limit,
      owner: lease.owner,
      lease_until: secondsFromNow(lease.lease_ms / 1000),
    })
    // RETURNING promises no order.
    return rows.sort((a, b) => (a.id < b.id ? -1 : 1)) as unknown as Row[]
  }

  /** Leases the one row, if it waits, due or not. */
  async claimOne(tx: Tx, id: string, { owner, lease_ms }: Lease): Promise<Row | undefined> {
    const { attempt } = this.table
    const lease_until = secondsFromNow(lease_ms / 1000)
    const rows = await tx
      .update(this.table)
      .set({ state: LEASED, attempt: sql`${attempt} + 1`, owner, lease_until })
      .where(and(eq(this.table.id, id), isReady))
      .returning(this.#claimed)
    return rows[0] as unknown as Row | undefined
  }

  /** The first moment after `after` at which a row of these partitions is due; in milliseconds. */
  async next(db: Reader, partitions: readonly number[], after: string) {
    const times: number[] = []
    for (const partition of partitions) {
      const [row] = await this.#statements.findNext(db, { partition, after })
      if (row) times.push(Date.parse(row.run_at))
    }
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Those of the claims whose leases still hold. Their rows stay so until the transaction ends. */
  async held<One extends WorkRow>(tx: Tx, list: One[], owner: string): Promise<Set<One>> {
    const ids = list.map(({ id }) => id)
    const found = await this.#statements.findHeld(tx, { ids, owner })
    const attempts = new Map(found.map(({ id, attempt }) => [id, attempt]))
    return new Set(list.filter(({ id, attempt }) => attempts.get(id) === attempt))
  }

  /** A claimed row as it is now, if its lease still holds. */
  async reread(db: Reader, row: WorkRow): Promise<Row | undefined> {
    const [found] = await db.select(this.#claimed).from(this.table).where(eq(this.table.id, row.id))
    const is_ours = found?.owner === row.owner && found.attempt === row.attempt
    return is_ours && found.state === LEASED ? (found as unknown as Row) : undefined
  }

  /** The unclaimed ones of these. They stay unclaimed until the transaction ends. */
  async unclaimed(tx: Tx, ids: string[]): Promise<string[]> {
    const { id, state } = this.table
    const free = and(inArray(id, ids), ne(state, LEASED))
    const found = await forUpdate(tx.select({ id }).from(this.table).where(free).orderBy(id))
    return found.map((row) => row.id)
  }

  /** Gives claims back whose work was not begun, or is cut off: they count as no attempt. */
  async release(tx: Tx, list: WorkRow[], owner: string) {
    const ids = [...(await this.held(tx, list, owner))].map(({ id }) => id)
    if (ids.length === 0) return
    const { id, attempt } = this.table
    await tx
      .update(this.table)
      .set({ ...FREE, attempt: sql`${attempt} - 1` })
      .where(inArray(id, ids))
  }

  /** Buries a claimed row without a word of its table's. */
  async bury(tx: Tx, row: WorkRow, reason: string) {
    const { attempt } = row
    const dead = { ...FREE, state: DEAD, attempt, run_at: now(), ...this.#options.buried?.(reason) }
    await tx.update(this.table).set(dead).where(eq(this.table.id, row.id))
    await this.#options.onBury?.(tx, row)
  }

  /**
   * Keeps the leases of these rows, and of no other: one whose claim was committed but never
   * reached its owner has to run out, or it would wait for ever.
   */
  async keep(store: Store, ids: string[], { owner, lease_ms }: Lease) {
    const lease_until = secondsFromNow(lease_ms / 1000)
    const ours = and(inArray(this.table.id, ids), isLeased, eq(this.table.owner, owner))
    await store.tx((tx) =>
      tx.update(this.table).set({ lease_until }).where(this.#inOrder(tx, ours)),
    )
  }

  /** Frees leases that ran out, but for the rows that the caller works on. Returns how many. */
  sweep(store: Store, working: string[]): Promise<number> {
    const { id, lease_until } = this.table
    return this.#free(store, and(lt(lease_until, now()), notInArray(id, working)), {})
  }

  /** Frees what these owners had claimed. Each claim counts as an attempt. */
  freeOf(store: Store, owners: string[]): Promise<number> {
    return this.#free(store, inArray(this.table.owner, owners), {})
  }

  /**
   * Frees everything that is leased to others, where no other process can live. What they had begun
   * counts as no attempt: a restart must not use up the few tries of a message.
   */
  freeAll(store: Store, me: string): Promise<number> {
    const { owner, attempt } = this.table
    return this.#free(store, ne(owner, me), { attempt: sql`${attempt} - 1` })
  }

  async #free(store: Store, left: SQL | undefined, change: { attempt?: SQL }) {
    const { id } = this.table
    const abandoned = and(isLeased, left)
    const leased = store.read.select({ id }).from(this.table).where(abandoned)
    const ids = (await leased.limit(SWEEP_LIMIT)).map((row) => row.id)
    if (ids.length === 0) return 0
    const freed = await store.tx((tx) =>
      tx
        .update(this.table)
        .set({ ...FREE, ...change })
        .where(this.#inOrder(tx, and(inArray(id, ids), abandoned)))
        .returning({ id }),
    )
    return freed.length
  }

  /** The same rows, locked by their ids: two that lock many in another order would deadlock. */
  #inOrder(tx: Tx, which: SQL | undefined) {
    const { id } = this.table
    return inArray(id, forUpdate(tx.select({ id }).from(this.table).where(which).orderBy(id)))
  }
}

const dueValues = ({ partition, limit, after = FIRST }: DueShare) => ({
  partition: partition as number,
  now: now(),
  limit,
  after_run_at: after.run_at,
  after_id: after.id,
})

function dueStatements(
  table: Table,
  partition: Table["priority"],
  filter: SQL | undefined,
  claimed: ClaimedColumns,
) {
  const { id, run_at, attempt, owner, lease_until } = table
  const isDue = (slot: { partition: SQL; now: SQL }) =>
    and(isReady, eq(partition, slot.partition), lte(run_at, slot.now), filter)
  const due = { partition, now: run_at, limit: attempt }
  const look = { ...due, after_run_at: run_at, after_id: id }
  const isBehind = (slot: { after_run_at: SQL; after_id: SQL }) =>
    sql`(${run_at}, ${id}) > (${slot.after_run_at}, ${slot.after_id})`
  return {
    findAtOnce: preparedAtOnce(look, (db, slot) =>
      db
        .select(claimed)
        .from(table)
        .where(and(isDue(slot), isBehind(slot)))
        .orderBy(run_at, id)
        .limit(slot.limit as unknown as number),
    ),
    find: prepared(look, (db: Reader, slot) =>
      db
        .select({ id })
        .from(table)
        .where(and(isDue(slot), isBehind(slot)))
        .orderBy(run_at, id)
        .limit(slot.limit as unknown as number),
    ),
    claim: prepared({ ...due, owner, lease_until }, (tx: Tx, slot) => {
      const ids = tx.select({ id }).from(table).where(isDue(slot))
      const first = ids.orderBy(run_at, id).limit(slot.limit as unknown as number)
      const leased = { state: LEASED, attempt: sql`${attempt} + 1`, owner: slot.owner }
      return tx
        .update(table)
        .set({ ...leased, lease_until: slot.lease_until })
        .where(inArray(id, skipLocked(first)))
        .returning(claimed)
    }),
  }
}

function statementsOf(table: Table, partition: Table["priority"], claimed: ClaimedColumns) {
  const { id, run_at, attempt, owner } = table
  return {
    findReady: prepared({ ids: idList }, (db: Reader, slot) =>
      db
        .select(claimed)
        .from(table)
        .where(and(isAmong(db, id, slot.ids), isReady)),
    ),
    findNext: prepared({ partition, after: run_at }, (db: Reader, slot) =>
      db
        .select({ run_at })
        .from(table)
        .where(and(isReady, eq(partition, slot.partition), gt(run_at, slot.after)))
        .orderBy(run_at)
        .limit(1),
    ),
    findHeld: prepared({ ids: idList, owner }, (tx: Tx, slot) =>
      forUpdate(
        tx
          .select({ id, attempt })
          .from(table)
          .where(and(isAmong(tx, id, slot.ids), isLeased, eq(owner, slot.owner)))
          .orderBy(id),
      ),
    ),
  }
}

/** For how many seconds the work has been wanted. */
export const ageSeconds = ({ created_at, scheduled_at }: WorkRow) =>
  (millis() - Date.parse(scheduled_at ?? created_at)) / 1000

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
