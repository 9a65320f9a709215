/**
 * Work that waits: a row with the work columns, in the table that it belongs to. This folder is the
 * engine for every such table; `messages`, `webhook_deliveries` and `jobs` use it.
 *
 * How a table joins:
 * 1. Its declaration spreads `workColumns()` and `workIndexes()` of `tables.ts`.
 * 2. `new WorkRows(table, partition, options)` compiles the statements. Due rows are found
 *    by partition: `priority`, or what a share belongs to, such as the endpoint of a delivery.
 * 3. A `WorkTable` says how a row is tried (`run`) and how the result is written (`settle`).
 * 4. `new WorkLoop({ store, table, … })` claims, runs, settles, keeps and releases.
 *
 * The `picker` decides what is claimed next. Without one, the most urgent priority comes first, and
 * its oldest due row. A picker shares free slots between partitions, which is where
 * fairness, a breaker, a rate limit or a pause of one endpoint belong. It may refuse to give any.
 *
 * Where the process is alone (SQLite), a claim is kept in memory and writes nothing
 * (`in-flight.ts`). On Postgres it is a lease in the row (`claims.ts`). In both, `run` and
 * `settle` get the row as it is claimed: `attempt` counts the attempt that begins.
 *
 * Delivery is at least once. `run` tolerates a second run after a crash.
 */
import type { Tx } from "../store/store"
import type { RetrySchedule, Settled, WorkResult, WorkRow } from "./work-item"
import type { WorkRows } from "./work-rows"

export interface Share {
  partition: string | number
  limit: number
  /** Only rows that `narrows` of `WorkRows` is true of. */
  narrow?: boolean
  /** Calls `claim` in its own transaction with a limit, or not: for a rate of all nodes. */
  admit?: (tx: Tx, claim: (limit: number) => Promise<number>) => Promise<void>
}

export interface Picker {
  /** Called when its loop starts; the returned function when it stops. */
  listen?(): () => void
  /** The shares that may be claimed now, in their order, and when more may be: milliseconds since 1970. */
  pick(free: number): Promise<{ shares: Share[]; due: number | undefined }>
}

export interface WorkTable<Row extends WorkRow, End = unknown> {
  rows: WorkRows<Row>
  /** The queue that a row belongs to, by the name under which an operator pauses it. */
  queueOf(row: Row): string
  /** When work is tried again that failed without a schedule of its own. */
  scheduleOf(row: Row): RetrySchedule
  /**
   * Tries once. An error is logged and asks for another try; a `DeferredError` defers. `recheck`, right
   * before what cannot be undone, gives the row as it is now; undefined when the claim is lost.
   */
  run(row: Row, recheck: () => Promise<Row | undefined>): Promise<WorkResult<End>>
  /** Writes results of claims that still hold, in the transaction that ends them. It may run twice. */
  settle(tx: Tx, list: Settled<Row, End>[]): Promise<void>
  /** Where the process is alone, a claim reads more rows of a partition than it needs (`in-flight.ts`). */
  looks_ahead?: boolean
  /** Results are written so far apart, as `apart_ms` of `Store.tx`, so that more of them share a commit. */
  settles_apart_ms?: number
  /** Called after each claim, before any of it runs. It does not reject. */
  onClaim?: (rows: Row[]) => void | Promise<void>
  /** Called for rows that were claimed and are released without an attempt. */
  onRelease?: (rows: Row[]) => void
}

/** What a process has claimed of a table, and how it claims more. */
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
  /** A row waits that no look has seen. */
  lookAgain?(): void
  /** Forgets a claim whose result is on disk. */
  end(row: Row): void
  /** Releases what was not begun, or is cut off, as if it had not been claimed. */
  release(rows: Row[]): Promise<void>
  keep(rows: Row[]): Promise<void>
  /** Frees what other processes left behind. */
  sweep(working: Row[]): Promise<void>
}

/** What claims ask of a table. */
export type Claimable<Row extends WorkRow> = Pick<WorkTable<Row, never>, "rows" | "looks_ahead"> & {
  onRelease?: WorkTable<Row, never>["onRelease"] | undefined
}
