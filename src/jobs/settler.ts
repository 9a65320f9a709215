import { faultOf } from "../core/faults"
import { log } from "../core/log"
import { now, secondsFromNow, sleep } from "../core/time"
import { Batcher } from "../store/batcher"
import type { Store, Tx } from "../store/store"
import { isCurrent } from "./in-flight"
import {
  DEAD,
  HELD,
  OVER,
  READY,
  type Settled,
  type WorkColumns,
  type WorkResult,
  type WorkRow,
} from "./work-item"
import { ageSeconds } from "./work-rows"
import type { Claims, WorkTable } from "./work-table"

const PAUSE_MILLISECONDS = 500

/** Ten seconds of tries, then the fault is not the storage's. */
const MOST_TRIES = 20

/** Trouble may be one row's: a page that cannot be read, bytes too many for what is left of the disk. */
const MOST_TRIES_TOGETHER = 4

const MOST_TOGETHER = 100

const NOT_TOGETHER = "results could not be recorded together"

/** It ran, but its result breaks a rule of ours: run again it would break it again. */
const UNRECORDABLE = "The result could not be recorded. The log has the reason."

interface Entry<Row extends WorkRow, End> {
  row: Row
  result: WorkResult<End>
}

/**
 * Writes results. Those that come while a transaction is under way share the next one. Storage that
 * refuses is asked again: what was done must not be done again.
 */
export class Settler<Row extends WorkRow, End> {
  readonly #store: Store
  readonly #table: WorkTable<Row, End>
  readonly #claims: Claims<Row>
  readonly #batcher: Batcher<Entry<Row, End>, undefined>
  #settling = 0
  #onDrained: () => void = () => {}
  #told: unknown
  #is_over = false
  #is_closed = false

  constructor(store: Store, table: WorkTable<Row, End>, claims: Claims<Row>) {
    this.#store = store
    this.#table = table
    this.#claims = claims
    const write = async (tx: Tx, batch: Entry<Row, End>[]) => {
      await this.#write(tx, batch)
      return batch.map(() => undefined)
    }
    const apart_ms = table.settles_apart_ms
    this.#batcher = new Batcher({ store, write, most: MOST_TOGETHER, apart_ms })
  }

  /** Resolves when the result is on disk, or after the last try to write it. Never rejects. */
  async settle(row: Row, result: WorkResult<End>): Promise<void> {
    if (this.#is_over) return result.settled?.()
    this.#settling += 1
    const is_shared = !result.done && (await this.#together({ row, result }))
    if (!is_shared) await this.#alone(row, result)
    result.settled?.()
    this.#settling -= 1
    if (this.#settling === 0) this.#onDrained()
  }

  /** Takes no result any more. Resolves when every one is on disk, or given up. */
  async drained(): Promise<void> {
    this.#is_over = true
    if (this.#settling === 0) return
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve
    })
  }

  /** What storage refuses from now on is given up: its lease runs out, or is released. */
  close() {
    this.#is_closed = true
  }

  /** False when it failed for a reason that is not the storage's, or too often. */
  async #together(entry: Entry<Row, End>): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#batcher.add(entry)
        this.#claims.end(entry.row)
        return true
      } catch (error) {
        if (error !== this.#told) log.error(`${NOT_TOGETHER}; trying again`, { error })
        this.#told = error // once for all that shared the transaction
        if (!faultOf(error)) return false
        if (this.#is_closed) return true
        if (tries === MOST_TRIES_TOGETHER) return false
        await sleep(PAUSE_MILLISECONDS)
      }
    }
  }

  async #alone(row: Row, given: WorkResult<End>) {
    let result: WorkResult<End> = given
    let bury = false
    for (let tries = 1; ; tries++) {
      try {
        await this.#store.tx(async (tx) => {
          if (!bury) return this.#write(tx, [{ row, result }])
          if ((await this.#claims.held(tx, [row])).size > 0)
            await this.#table.rows.bury(tx, row, UNRECORDABLE)
        })
        this.#claims.end(row)
        return
      } catch (error) {
        // What was done must not be done again: hold the slot until storage takes the result.
        if (tries % MOST_TRIES === 1)
          log.error("a result could not be recorded; trying again", { id: row.id, error })
        if (this.#is_closed) return
        if (tries % MOST_TRIES === 0 && !faultOf(error)) {
          bury = tries > MOST_TRIES // its last word breaks a rule, too
          result = { retry: UNRECORDABLE, schedule: () => undefined }
        }
        await sleep(PAUSE_MILLISECONDS)
      }
    }
  }

  /** One transaction: the end of these claims and what it means for their subjects, or neither. */
  async #write(tx: Tx, list: Entry<Row, End>[]) {
    const ours = await this.#claims.held(
      tx,
      list.map(({ row }) => row),
    )
    const settled = list.filter(({ row }) => ours.has(row))
    if (settled.length === 0) return
    const { name } = this.#table.rows
    const written = settled.map(({ row, result }): Settled<Row, End> => {
      const schedule = result.schedule ?? this.#table.scheduleOf(row)
      const reason = result.hold?.reason ?? result.retry ?? null
      const after = afterOf(row, result, schedule)
      return { row, end: result.end, after, reason, is_current: isCurrent(tx, name, row) }
    })
    await this.#table.settle(tx, written)
    for (const { result } of settled) if (result.done) await result.done(tx)
  }
}

function afterOf(
  row: WorkRow,
  { retry, hold }: WorkResult<unknown>,
  schedule: (attempt: number, age_seconds: number) => number | undefined,
): WorkColumns {
  const { run_at, attempt } = row
  if (retry === undefined && !hold) {
    return { owner: null, lease_until: null, state: OVER, run_at, attempt }
  }
  const free = { owner: null, lease_until: null }
  if (hold) {
    const tries = hold.was_tried ? attempt : attempt - 1
    const { until, by = null } = hold
    if (until === null || by !== null)
      return { state: HELD, owner: by, lease_until: until, run_at, attempt: tries }
    return { ...free, state: READY, run_at: until, attempt: tries }
  }
  const seconds = schedule(attempt, ageSeconds(row))
  if (seconds === undefined) return { ...free, state: DEAD, run_at: now(), attempt }
  return { ...free, state: READY, run_at: secondsFromNow(seconds), attempt }
}
