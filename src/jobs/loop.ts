import { newId } from "../core/ids"
import { log } from "../core/log"
import { isoFrom, millis, monotonic, nextTurn, sleep } from "../core/time"
import type { Store } from "../store/store"
import { ClaimSize } from "./claim-size"
import { claimsOf } from "./claims"
import { CRASH_HOLD, type CrashGuard } from "./crash-guard"
import { Settler } from "./settler"
import {
  DeferredError,
  HELD,
  type Hold,
  holdFor,
  PRIORITIES,
  type WorkResult,
  type WorkRow,
} from "./work-item"
import { wakeUpOf } from "./work-rows"
import type { Claims, Picker, WorkTable } from "./work-table"

const POLL_MILLISECONDS = 1000
const SWEEP_MILLISECONDS = 5000

/** Work that is due for longer than this is one of a backlog, and lets requests go before it. */
const LATE_MILLISECONDS = 1000

/**
 * Attempts of a backlog that begin in one turn of the event loop while requests arrive. At least
 * one begins for each millisecond of the turn before: many requests must not stop the queue.
 */
const LATE_A_TURN = 3

/** Of work that does not say how many of its results may wait for the disk. */
const MOST_UNSETTLED = 1000

/** With a picker, the loop rests for this multiple of the time that the last pick took. */
const PAUSES_PER_PICK = 2
const LONGEST_PAUSE_MILLISECONDS = 5

/** A reason may reach the world: an error's own words, with SQL and paths in them, may not. */
const FAILED = "The job failed. The log has the reason."

interface WorkLoopOptions<Row extends WorkRow, End> {
  store: Store
  table: WorkTable<Row, End>
  concurrency: number
  /**
   * How many more than `concurrency` may run or wait for the disk with their slots freed, together. A crash
   * runs all of them again.
   */
  most_unsettled?: number
  lease_ms: number
  /** True where no other process can share the queue: then every lease at the start is a dead one. */
  alone: boolean
  owner?: string
  /** Chooses what is claimed. Without it the most urgent rows are first, the oldest before the others. */
  picker?: Picker
  /** Claims beyond the free slots, so that the next rows are at hand. Default: true. */
  prefetches?: boolean
  /** Why nothing of a queue may begin; undefined while it may. */
  holdOf?: (queue: string) => Hold | undefined
  isAsked?: () => boolean
  guard?: CrashGuard | undefined
}

/**
 * Claims due rows of one table and runs them, `concurrency` side by side. Each freed slot is filled at
 * once, so work that hangs holds one slot and nothing else. At most one claim is prefetched: some
 * 200 ms of work, so that it keeps no rows from other nodes and no urgent ones behind it.
 */
export class WorkLoop<Row extends WorkRow, End> {
  /** When, by `monotonic`, the loop last looked for work: `/readyz` asks whether it still does. */
  progressed_at = monotonic()

  readonly #options: WorkLoopOptions<Row, End>
  readonly #claims: Claims<Row>
  readonly #settler: Settler<Row, End>
  /** From its end: removing the front of a long list moves all of it. */
  #prefetched: Row[] = []
  readonly #claim_size: ClaimSize
  /** When the last claim ended, and how long it took. */
  #picked_at = 0
  #picked_ms = 0
  /** When the last claim looked: what was due by then is claimed, or in flight. */
  #looked_at = ""
  /** When more is due, in milliseconds since 1970, and until when (by `monotonic`) that is believed. */
  #due: number | undefined
  #due_known_until = 0
  #late_left = LATE_A_TURN
  /** The last claim since it woke was not full: nothing else is due. */
  #found_all = false
  readonly #running = new Map<Row, Promise<void>>()
  /** Their slots are free, and their results are not on disk yet. */
  readonly #unsettled = new Map<Row, Promise<void>>()
  #stopping = false
  #woken = false
  #wake: () => void = () => {}
  #loop: Promise<void> = Promise.resolve()
  #silence: () => void = () => {}
  #timers: Timer[] = []
  #stopped: Promise<void> | undefined

  constructor(options: WorkLoopOptions<Row, End>) {
    const { store, table, lease_ms, alone, owner = newId() } = options
    this.#options = options
    this.#claim_size = new ClaimSize(options.concurrency)
    this.#claims = claimsOf(store, table, { owner, lease_ms, alone })
    this.#settler = new Settler(store, table, this.#claims)
  }

  async start() {
    const { store, table, alone, lease_ms } = this.#options
    if (alone) while ((await table.rows.freeAll(store, this.#claims.owner)) > 0);
    const ends = [
      this.#options.picker?.listen?.(),
      wakeUpOf(store.read, table.rows.name).onWakeUp(() => this.wake()),
    ]
    this.#silence = () => {
      for (const end of ends) end?.()
    }
    this.#timers.push(setInterval(() => this.wake(), POLL_MILLISECONDS))
    this.#every(lease_ms / 3, () => this.#keep())
    this.#every(SWEEP_MILLISECONDS, () => this.#claims.sweep(this.#held()))
    this.#loop = this.#run()
  }

  wake() {
    this.#woken = true
    this.#wake()
  }

  get running(): number {
    return this.#running.size
  }

  /** Claims nothing new, waits for what runs (at most `drain_ms`), and releases the rest. */
  stop(drain_ms: number): Promise<void> {
    this.#stopped ??= this.#stop(drain_ms)
    return this.#stopped
  }

  async #stop(drain_ms: number) {
    this.#stopping = true
    this.#settler.close()
    this.#options.guard?.stop()
    this.wake()
    await this.#loop
    const ended = Promise.all(this.#running.values()).then(() =>
      Promise.all(this.#unsettled.values()),
    )
    await Promise.race([ended, sleep(drain_ms)])
    await this.#settler.drained()
    for (const timer of this.#timers) clearInterval(timer)
    this.#silence()
    // What still runs is cut off now: a result that comes of that finds no claim, and writes nothing.
    await this.#release([...this.#running.keys()])
    this.#options.guard?.close()
  }

  async #run() {
    const { store, table } = this.#options
    let failing = false
    await this.#options.guard?.recover({
      ready: (ids) => table.rows.ready(store.read, ids),
      run: (id) => this.#runAlone(id),
      hold: (row, reason) => this.#holdCrashed(row as Row, reason),
    })
    while (!this.#stopping) {
      this.#woken = false
      this.#found_all = false
      try {
        await this.#fill()
        this.progressed_at = monotonic() // a claim that failed is no progress
        if (failing) log.info("work can be claimed again", { table: table.rows.name })
        failing = false
      } catch (error) {
        if (!failing) log.warn("work cannot be claimed; trying again every second", { error })
        failing = true
      }
      if (failing) await sleep(POLL_MILLISECONDS)
      else if (!this.#stopping) await this.#rest()
      if (this.#options.picker) await this.#pauseAfterPick()
    }
    const prefetched = this.#prefetched
    this.#prefetched = []
    await this.#release(prefetched)
  }

  async #fill() {
    while (!this.#stopping && this.#hasSlot()) {
      if (this.#prefetched.length === 0 && this.#found_all) return
      if (this.#prefetched.length === 0) await this.#claim()
      if (isLate(this.#prefetched.at(-1)) && this.#late_left-- < 1) await this.#letRequestsIn()
      if (this.#stopping) return // what came meanwhile is released
      const row = this.#prefetched.pop()
      if (!row) return
      this.#begin(row)
    }
    const { alone, prefetches = true } = this.#options
    if (!alone || !prefetches || this.#stopping || this.#prefetched.length > 0) return
    // A full claim has begun at once: the next one need not wait for a free slot.
    if (this.#claim_size.is_used_up_fast) await this.#claim()
  }

  async #letRequestsIn() {
    if (!this.#options.isAsked?.()) return
    const begun = monotonic()
    await nextTurn()
    this.#late_left = Math.max(LATE_A_TURN, monotonic() - begun) - 1 // one begins with this
  }

  #hasSlot = () => {
    const { concurrency, most_unsettled = MOST_UNSETTLED } = this.#options
    const [running, unsettled] = [this.#running.size, this.#unsettled.size]
    return running < concurrency && running + unsettled < concurrency + most_unsettled
  }

  async #claim() {
    // Work ends in groups, with the commit that records it: one claim for all their slots.
    await nextTurn()
    const { concurrency, prefetches = true } = this.#options
    const size = prefetches ? this.#claim_size.next() : concurrency - this.#running.size
    const begun = monotonic()
    const claimed = await this.#claimUpTo(size)
    await this.#options.table.onClaim?.(claimed)
    this.#picked_at = monotonic()
    this.#picked_ms = this.#picked_at - begun
    const is_full = claimed.length === size
    // On Postgres the database works meanwhile, and the event loop is free.
    this.#claim_size.note(is_full, this.#options.alone ? this.#picked_ms : 0)
    if (!is_full) this.#due_known_until = 0 // what else came is for later
    this.#found_all = !is_full && !this.#options.picker
    this.#prefetched = claimed.reverse()
    this.progressed_at = monotonic()
  }

  /** Rejects where nothing was claimed: what one share gave is not lost because the next one failed. */
  async #claimUpTo(size: number): Promise<Row[]> {
    const { picker } = this.#options
    this.#looked_at = isoFrom(millis())
    const { shares, due } = picker ? await picker.pick(size) : everyPriority(size)
    if (picker) this.#due = due
    const claimed: Row[] = []
    for (const share of shares) {
      const limit = Math.min(share.limit, size - claimed.length)
      if (limit === 0) break
      try {
        claimed.push(...(await this.#claims.claim(share, limit)))
      } catch (error) {
        if (claimed.length === 0) throw error
        break // the next claim meets the same fault, or none
      }
    }
    return claimed
  }

  #begin(row: Row) {
    this.#options.guard?.begin(row.id, row.attempt)
    this.#running.set(row, this.#work(row))
  }

  /** The only row that is worked on. Resolves when it has ended, or when there is nothing to run. */
  async #runAlone(id: string) {
    const row = await this.#claims.claimOne(id)
    if (!row || this.#stopping) return
    this.#begin(row)
    await this.#running.get(row)
  }

  async #holdCrashed(row: Row, reason: string) {
    const { run_at, attempt } = row
    const held = { state: HELD, owner: CRASH_HOLD, lease_until: null, run_at, attempt }
    const { store, table } = this.#options
    await store.tx((tx) => table.settle(tx, [{ row, end: undefined, after: held, reason }]))
  }

  async #rest() {
    if (this.#woken) return
    const pause = await this.#pause()
    if (this.#woken) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = pause < POLL_MILLISECONDS ? setTimeout(resolve, pause) : undefined
    this.#wake = resolve
    await promise
    clearTimeout(timer)
  }

  /** A pick costs the same for one row as for forty: with much to do there are fewer of them. */
  async #pauseAfterPick() {
    const pause = Math.min(LONGEST_PAUSE_MILLISECONDS, this.#picked_ms * PAUSES_PER_PICK)
    const left = pause - (monotonic() - this.#picked_at)
    if (left >= 1 && !this.#stopping) await sleep(left)
  }

  /** With a free slot until the next row is due; otherwise the end of one wakes the loop. */
  async #pause(): Promise<number> {
    if (!this.#hasSlot()) return POLL_MILLISECONDS
    try {
      await this.#lookAhead()
      if (this.#due === undefined) return POLL_MILLISECONDS
      return Math.min(POLL_MILLISECONDS, Math.max(1, this.#due - millis()))
    } catch {
      return POLL_MILLISECONDS
    }
  }

  async #lookAhead() {
    const { store, table, picker } = this.#options
    if (picker || this.#due_known_until > monotonic()) return
    this.#due_known_until = monotonic() + POLL_MILLISECONDS
    const levels = Object.values(PRIORITIES)
    this.#due = await table.rows.next(store.read, levels, this.#looked_at)
  }

  async #work(row: Row) {
    const result = await this.#attempt(row)
    if (result.frees_slot) this.#unsettled.set(row, this.#settle(row, result))
    else await this.#settle(row, result)
    this.#noteEnd(this.#running, row)
  }

  async #settle(row: Row, result: WorkResult<End>) {
    await this.#settler.settle(row, result)
    this.#options.guard?.end(row.id, !result.hold || result.hold.was_tried === true)
    this.#noteEnd(this.#unsettled, row)
    if (result.retry === undefined && !result.hold) return
    this.#claims.lookAgain?.()
    this.#due_known_until = 0
    this.wake()
  }

  /** With a slot free the loop has looked before. A picker, or another node, may have more for it now. */
  #noteEnd(list: Map<Row, unknown>, row: Row) {
    const { alone, picker } = this.#options
    const had_slot = this.#hasSlot()
    list.delete(row)
    if (!had_slot || picker || !alone) this.wake()
  }

  async #attempt(row: Row): Promise<WorkResult<End>> {
    const { table, holdOf } = this.#options
    try {
      const hold = holdOf?.(table.queueOf(row))
      return hold ? { hold } : await table.run(row, () => this.#claims.fresh(row))
    } catch (error) {
      if (error instanceof DeferredError) return { hold: holdFor(error) }
      log.error("a job failed", { id: row.id, attempt: row.attempt, error })
      return { retry: FAILED }
    }
  }

  async #keep() {
    await this.#share()
    await this.#claims.keep(this.#held())
  }

  /** Work that turned slow after a large claim: what waits behind it is for others, too. */
  async #share() {
    const surplus = this.#prefetched.length - this.#claim_size.least
    if (surplus <= 0 || !this.#claim_size.lasts_long) return
    await this.#release(this.#prefetched.splice(0, surplus))
  }

  /** Storage that refuses lets their leases run out. */
  async #release(rows: Row[]) {
    if (rows.length === 0) return
    await this.#claims
      .release(rows)
      .catch((error) =>
        log.warn("claimed work could not be released; it waits until its lease ends", { error }),
      )
  }

  #held = () => [...this.#running.keys(), ...this.#prefetched, ...this.#unsettled.keys()]

  #every(milliseconds: number, work: () => Promise<unknown>) {
    const run = () =>
      void work().catch((error) => log.warn("upkeep of the queue failed", { error }))
    this.#timers.push(setInterval(run, milliseconds))
  }
}

const everyPriority = (limit: number) => ({
  shares: Object.values(PRIORITIES).map((partition) => ({ partition, limit })),
  due: undefined,
})

const isLate = (row: WorkRow | undefined) =>
  row !== undefined && millis() - Date.parse(row.run_at) > LATE_MILLISECONDS
