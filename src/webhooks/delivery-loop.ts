import { log } from "../core/log"
import { millis, monotonic, nextTurn, sleep } from "../core/time"
import type { Workers } from "../core/workers"
import type { Store } from "../store/store"
import { attempt, type Receiver, type Way } from "./attempt"
import { onPlanned } from "./bell"
import { type Body, bodiesOf, bodyFor } from "./body"
import { shareOut } from "./fair"
import { exhaustAll, hasToHold, holdOpen } from "./hold"
import * as queue from "./queue"
import { Receivers } from "./receivers"
import { Settler } from "./settler"
import { Slots } from "./slots"

const POLL_MILLISECONDS = 1000
const SWEEP_MILLISECONDS = 5000
const BUSY_SECONDS = 1

export interface DeliveryLoopOptions {
  store: Store
  workers: Workers
  way: Way
  concurrency: number
  /** Failed attempts in a row that disable an endpoint. */
  failures: number
  /** True where no other process can share the queue: then every lease at the start is a dead one. */
  alone: boolean
}

interface Work {
  claimed: queue.Claimed
  receiver: Receiver | undefined // deleted meanwhile
  plain: string | undefined // its event was
}

/** Delivers what is due, `concurrency` side by side and few of one endpoint at a time. */
export class DeliveryLoop {
  /** When, by `monotonic`, the loop last looked for work: `/readyz` asks whether it still does. */
  progressed_at = monotonic()

  readonly #options: DeliveryLoopOptions
  readonly #settler: Settler
  readonly #receivers: Receivers
  /** Claimed, until their end is on disk. */
  readonly #running = new Map<queue.Claimed, Promise<void>>()
  readonly #slots = new Slots()
  #after = ""
  #sweeper: Timer | undefined
  #careful = false
  #stopping = false
  #rung = false
  #wake: () => void = () => {}
  #loop: Promise<void> = Promise.resolve()
  #silence: () => void = () => {}
  #stopped: Promise<void> | undefined

  constructor(options: DeliveryLoopOptions) {
    this.#options = options
    this.#settler = new Settler(options.store, options.failures)
    this.#receivers = new Receivers(options.way)
  }

  async start(): Promise<void> {
    if (this.#options.alone) await queue.freeAll(this.#options.store)
    this.#silence = onPlanned(() => this.wake())
    this.#sweeper = setInterval(() => void this.#sweep(), SWEEP_MILLISECONDS)
    this.#loop = this.#turn()
  }

  /** There may be work: look now instead of at the next poll. */
  wake(): void {
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
    this.#silence()
    clearInterval(this.#sweeper)
    this.wake()
    await this.#loop
    await Promise.race([Promise.all(this.#running.values()), sleep(drain_ms)])
    this.#settler.stop()
    // What still runs is cut off now: its end finds no lease, and writes nothing.
    const rest = [...this.#running.keys()]
    const back = queue.giveBack(this.#options.store, rest)
    await back.catch((error) => log.warn("deliveries stay leased until they run out", { error }))
  }

  async #sweep() {
    try {
      await queue.sweep(this.#options.store)
      this.wake()
    } catch (error) {
      log.warn("upkeep of the webhook deliveries failed", { error })
    }
  }

  async #turn() {
    let failing = false
    while (!this.#stopping) {
      this.#rung = false
      let due = Number.POSITIVE_INFINITY
      try {
        due = await this.#fill()
        this.progressed_at = monotonic()
        failing = false
      } catch (error) {
        if (!failing) log.warn("webhook deliveries cannot be claimed; trying on", { error })
        failing = true
      }
      if (failing) await sleep(POLL_MILLISECONDS)
      else if (!this.#stopping) await this.#rest(due)
    }
  }

  /** Once around all endpoints, or until every slot is taken. Returns when the next work is due. */
  async #fill(): Promise<number> {
    const { store, concurrency } = this.#options
    let due = Number.POSITIVE_INFINITY
    let begun_at_first = this.#after === ""
    while (!this.#stopping && this.#taken() < concurrency) {
      const page = await queue.withOpen(store.read, this.#after)
      const next = await this.#serve(page)
      this.progressed_at = monotonic()
      if (next === undefined) continue
      due = Math.min(due, next)
      this.#after = page.length < queue.PAGE ? "" : (page.at(-1)?.webhook_id ?? "")
      if (this.#after !== "") continue
      if (begun_at_first) break
      begun_at_first = true
    }
    return due
  }

  /** Begins what is due of these endpoints. Returns when the next is, or nothing: ask again now. */
  async #serve(page: queue.Waiting[]): Promise<number | undefined> {
    const { concurrency } = this.#options
    for (const waiting of page) await this.#setAside(waiting)
    const present = page.filter(({ status }) => status !== null)
    const slots = { concurrency, running: this.#taken(), busy: this.#slots.busy }
    const { wishes, due, more } = shareOut(present, slots)
    if (wishes.length === 0) return due
    const claimed = await this.#claim(wishes)
    if (claimed.length === 0) return due
    await this.#begin(page, claimed)
    return more ? undefined : due
  }

  /** Waits for the disk only after it failed: else the same might go out again and again. */
  async #claim(wishes: queue.Wish[]): Promise<queue.Claimed[]> {
    const { store, way } = this.#options
    const { taken, committed } = queue.claim(store, wishes, queue.leaseSeconds(way.timeout_ms))
    if (this.#careful) {
      const claimed = await committed
      this.#careful = false
      return claimed
    }
    committed.catch(() => {
      this.#careful = true
    })
    return taken
  }

  /** What a disabled endpoint has open is held, what a deleted one has ends: a part each time. */
  async #setAside({ webhook_id, status }: queue.Waiting) {
    const { store } = this.#options
    const webhook = { id: webhook_id }
    if (status === null) await store.tx((tx) => exhaustAll(tx, webhook))
    else if (status === "disabled" && (await hasToHold(store.read, webhook))) {
      await store.tx((tx) => holdOpen(tx, webhook))
    }
  }

  async #begin(page: queue.Waiting[], claimed: queue.Claimed[]) {
    const { read } = this.#options.store
    try {
      const webhook_ids = claimed.map(({ webhook_id }) => webhook_id)
      const event_ids = claimed.map(({ event_id }) => event_id)
      const receivers = await this.#receivers.of(read, page, webhook_ids)
      const plain = await bodiesOf(read, event_ids)
      for (const one of claimed) {
        const { webhook_id, event_id } = one
        const receiver = receivers.get(webhook_id)
        this.#run({ claimed: one, receiver, plain: plain.get(event_id) })
      }
    } catch (error) {
      await queue.giveBack(this.#options.store, claimed, BUSY_SECONDS)
      throw error
    }
  }

  /** What waits for a slow disk counts, once there is more of it than slots. */
  #taken(): number {
    return Math.max(this.#slots.taken, this.#running.size - this.#options.concurrency)
  }

  #run(work: Work) {
    const { claimed } = work
    const free = this.#slots.take(claimed.webhook_id, () => this.wake())
    const done = this.#work(work, free)
      .catch((error) => log.error("a delivery waits for its lease to end", { error }))
      .finally(() => {
        this.#running.delete(claimed)
        free()
      })
    this.#running.set(claimed, done)
  }

  async #work({ claimed, receiver, plain }: Work, free: () => void) {
    const { store, way } = this.#options
    let body: Body | undefined
    try {
      body = receiver && (await bodyFor(this.#options, claimed, receiver.transform, plain))
    } catch (error) {
      log.warn("a webhook's body could not be made; trying again", { error })
      return queue.giveBack(store, [claimed], BUSY_SECONDS)
    }
    if (!receiver || !body) return queue.drop(store, claimed)
    const attempted = await attempt(way, receiver, claimed.event_id, body.text)
    // Its end and the next claim share a commit. A failure is to be counted before another try.
    if (attempted.error === null) free()
    const { transform_failed } = body
    return this.#settler.settle({ claimed, attempted, transform_failed })
  }

  async #rest(due: number) {
    if (!this.#rung) await this.#sleep(due)
    await nextTurn() // what ends in the same turn is looked for together
  }

  async #sleep(due: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const pause = Math.min(POLL_MILLISECONDS, Math.max(1, due - millis()))
    const timer = setTimeout(resolve, pause)
    this.#wake = resolve
    await promise
    clearTimeout(timer)
  }
}
