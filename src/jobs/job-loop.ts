import { newId } from "../core/ids"
import { log } from "../core/log"
import { millis, monotonic, nextTurn, sleep } from "../core/time"
import type { Store } from "../store/store"
import { Claims } from "./job-claims"
import { Endings } from "./job-endings"
import { attempt, isPlainEnd, type JobHandlers } from "./job-handler"
import { Recorder } from "./job-recorder"
import * as queue from "./queue"
import { onEnqueued } from "./wake-ups"

const POLL_MILLISECONDS = 1000
const SWEEP_MILLISECONDS = 5000

/** A claim grows while one is used up faster than this, and shrinks when it lasts longer. */
const SHORT_MILLISECONDS = 50
const LONG_MILLISECONDS = 200
const CLAIM_LIMIT = 160

/** It shrinks, too, when it holds the event loop for longer: everybody else waits meanwhile. */
const HOLD_MILLISECONDS = 2

/** A job that is due for longer than this is one of a backlog, and lets requests go before it. */
const LATE_MILLISECONDS = 1000

/**
 * So many of a backlog begin in a turn of the event loop while somebody asks, and no fewer than one for
 * each millisecond of the turn before: whoever asks for much must not stop the queue.
 */
const LATE_A_TURN = 3

export interface JobLoopOptions {
  store: Store
  handlers: JobHandlers
  concurrency: number
  lease_ms: number
  /** True where no other process can share the queue: then every lease at the start is a dead one. */
  alone: boolean
  /** Whether somebody waits for an answer of this process; without it nobody does. */
  isAsked?: () => boolean
}

/**
 * Claims due jobs and runs them, `concurrency` side by side. Each freed slot is filled at once, so
 * one that hangs holds one slot and nothing else. What waits in memory is at most a claim: some
 * 200 ms of work, lest it keep jobs from other nodes or urgent ones behind it.
 */
export class JobLoop {
  /** When, by `monotonic`, the loop last looked for work: `/readyz` asks whether it still does. */
  progressed_at = monotonic()

  readonly #options: JobLoopOptions
  readonly #lease: queue.Lease
  #waiting: queue.ClaimedJob[] = []
  #room: number
  /** How many late ones may begin before requests have their turn. */
  #late_left = LATE_A_TURN
  #claimed_at = 0
  readonly #claims: Claims
  readonly #endings: Endings
  readonly #recorder: Recorder
  readonly #running = new Map<queue.ClaimedJob, Promise<void>>()
  #stopping = false
  #rung = false
  #wake: () => void = () => {}
  #loop: Promise<void> = Promise.resolve()
  #silence: () => void = () => {}
  #timers: Timer[] = []
  #stopped: Promise<void> | undefined

  constructor(options: JobLoopOptions) {
    this.#options = options
    this.#lease = { owner: newId(), lease_ms: options.lease_ms }
    this.#room = this.#least
    this.#claims = new Claims(options.store, options.handlers, this.#lease)
    this.#endings = new Endings(options.store, () => this.wake())
    this.#recorder = new Recorder(options.store, options.handlers)
  }

  async start() {
    const { store, alone, lease_ms } = this.#options
    if (alone) while ((await queue.sweepAll(store, this.#lease.owner)) > 0);
    this.#silence = onEnqueued(() => this.wake())
    this.#every(lease_ms / 3, () => this.#keep())
    this.#every(SWEEP_MILLISECONDS, () => queue.sweep(store, this.#held()))
    this.#loop = this.#turn()
  }

  /** There may be work: look now instead of at the next poll. */
  wake() {
    this.#rung = true
    this.#wake()
  }

  get running(): number {
    return this.#running.size
  }

  /** Takes nothing new, waits for what runs (at most `drain_ms`), and gives the rest back. */
  stop(drain_ms: number): Promise<void> {
    this.#stopped ??= this.#stop(drain_ms)
    return this.#stopped
  }

  async #stop(drain_ms: number) {
    this.#stopping = true
    this.#recorder.close()
    this.wake()
    await this.#loop
    const ended = Promise.all(this.#running.values()).then(() => this.#endings.written())
    await Promise.race([ended, sleep(drain_ms)])
    this.#endings.close()
    for (const timer of this.#timers) clearInterval(timer)
    this.#silence()
    // What still runs is cut off now: a verdict that comes of that finds no lease, and writes nothing.
    await this.#claims.giveBack([...this.#running.keys()])
  }

  async #turn() {
    let failing = false
    while (!this.#stopping) {
      this.#rung = false
      try {
        await this.#fill()
        this.progressed_at = monotonic() // a claim that failed is no progress
        if (failing) log.info("jobs can be claimed again")
        failing = false
      } catch (error) {
        if (!failing) log.warn("jobs cannot be claimed; trying again every second", { error })
        failing = true
      }
      if (failing) await sleep(POLL_MILLISECONDS)
      else if (!this.#stopping) await this.#rest()
    }
    const unbegun = this.#waiting
    this.#waiting = []
    await this.#claims.giveBack(unbegun)
  }

  /** Runs until every slot is taken or nothing is due. */
  async #fill() {
    while (!this.#stopping && this.#hasSlot()) {
      if (this.#waiting.length === 0) await this.#claim()
      if (isLate(this.#waiting.at(-1)) && this.#late_left-- < 1) await this.#letAskersIn()
      if (this.#stopping) return // what came meanwhile is given back
      const job = this.#waiting.pop()
      if (!job) return
      this.#begin(job)
    }
  }

  async #letAskersIn() {
    if (!this.#options.isAsked?.()) return
    const begun = monotonic()
    await nextTurn()
    this.#late_left = Math.max(LATE_A_TURN, monotonic() - begun) - 1 // one begins with this
  }

  #hasSlot = () => this.#running.size < this.#options.concurrency && !this.#endings.isFull

  get #least(): number {
    return Math.min(CLAIM_LIMIT, this.#options.concurrency)
  }

  async #claim() {
    // Jobs end in groups, with the commit that records them: one claim for all their slots.
    await nextTurn()
    const lasted = monotonic() - this.#claimed_at
    const { held_ms } = this.#claims
    if (lasted > LONG_MILLISECONDS || held_ms > HOLD_MILLISECONDS) {
      this.#room = Math.max(this.#least, this.#room >> 1)
    } else if (lasted < SHORT_MILLISECONDS && held_ms < HOLD_MILLISECONDS / 2) {
      this.#room = Math.min(CLAIM_LIMIT, this.#room * 2)
    }
    const claimed = await this.#claims.claim(this.#room)
    // Only a full claim says something about the next one.
    this.#claimed_at = claimed.length < this.#room ? 0 : monotonic()
    this.#waiting = claimed.reverse() // taken from the end: the front of a long list moves all of it
    this.progressed_at = monotonic()
  }

  #begin(job: queue.ClaimedJob) {
    const work = this.#work(job).finally(() => {
      this.#running.delete(job)
      this.wake()
    })
    this.#running.set(job, work)
  }

  async #rest() {
    if (this.#rung) return
    const pause = await this.#pause()
    if (this.#rung) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, pause)
    this.#wake = resolve
    await promise
    clearTimeout(timer)
  }

  /** With a free slot until the next job is due; otherwise a slot will ring. */
  async #pause(): Promise<number> {
    if (!this.#hasSlot()) return POLL_MILLISECONDS
    try {
      const due = await queue.nextDue(this.#options.store.read)
      if (due === undefined) return POLL_MILLISECONDS
      return Math.min(POLL_MILLISECONDS, Math.max(1, due - millis()))
    } catch {
      return POLL_MILLISECONDS
    }
  }

  async #work(job: queue.ClaimedJob) {
    const verdict = await attempt(
      this.#options.handlers[job.name]?.handler,
      job,
      this.#claims.known(job),
    )
    if (isPlainEnd(verdict)) return this.#endings.add(job)
    await this.#recorder.record(job, verdict)
  }

  async #keep() {
    await this.#share()
    const held = this.#held()
    if (held.length > 0) await queue.heartbeat(this.#options.store, this.#lease, held)
  }

  /** Work that turned slow after a large claim: what waits behind it is for others, too. */
  async #share() {
    const surplus = this.#waiting.length - this.#least
    if (surplus <= 0 || monotonic() - this.#claimed_at < LONG_MILLISECONDS) return
    await this.#claims.giveBack(this.#waiting.splice(0, surplus))
  }

  #held = () =>
    [...this.#running.keys(), ...this.#waiting, ...this.#endings.held].map(({ id }) => id)

  #every(milliseconds: number, work: () => Promise<unknown>) {
    const run = () =>
      void work().catch((error) => log.warn("upkeep of the queue failed", { error }))
    this.#timers.push(setInterval(run, milliseconds))
  }
}

const isLate = (job: queue.ClaimedJob | undefined) =>
  job !== undefined && millis() - Date.parse(job.run_at) > LATE_MILLISECONDS
