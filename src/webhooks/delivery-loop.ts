import { log } from "../core/log"
import { monotonic, sleep } from "../core/time"
import type { Workers } from "../core/workers"
import type { Store } from "../store/store"
import { Alarm } from "./alarm"
import { attempt, type Receiver, type RequestSettings } from "./attempt"
import { onPlanned } from "./bell"
import { bodyFor, type DeliveryBody, Envelopes } from "./delivery-body"
import { shareOut } from "./fair"
import { clearInactive } from "./held"
import { letGo, slowOnes, willEnd } from "./in-hand"
import { Pages } from "./pages"
import * as queue from "./queue"
import { Receivers } from "./receivers"
import { Settler } from "./settler"
import { type AttemptPermit, Slots } from "./slots"
import { ConnectionThrottle } from "./throttle"
import { type OpenEndpoint, PAGE } from "./walk"

const POLL_MILLISECONDS = 1000
const SWEEP_MILLISECONDS = 5000
const BUSY_SECONDS = 1
/** Attempts that take longer are leased in their rows: few do, and the others need not be. */
const SLOW_MILLISECONDS = 100

export interface DeliveryLoopOptions {
  store: Store
  workers: Workers
  requests: RequestSettings
  concurrency: number
  /** Failed attempts in a row that disable an endpoint. */
  failures: number
  /** True where no other process can share the queue: then every lease at the start is a dead one. */
  alone: boolean
  isPaused: () => boolean // by an operator
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
  readonly #envelopes = new Envelopes()
  readonly #throttle = new ConnectionThrottle()
  readonly #pages = new Pages()
  readonly #alarm = new Alarm(POLL_MILLISECONDS)
  #after = ""
  #timers: Timer[] = []
  #stopping = false
  #over = false
  #loop: Promise<void> = Promise.resolve()
  #silence: (() => void)[] = []
  #stopped: Promise<void> | undefined

  constructor(options: DeliveryLoopOptions) {
    this.#options = options
    this.#settler = new Settler(options.store, options.failures)
    this.#receivers = new Receivers(options.requests)
  }

  async start(): Promise<void> {
    if (this.#options.alone) await queue.freeAll(this.#options.store)
    this.#silence = [this.#pages.listen(), onPlanned(() => this.wake())]
    this.#timers = [
      setInterval(() => void this.#sweep(), SWEEP_MILLISECONDS),
      setInterval(() => void this.#leaseSlow(), SLOW_MILLISECONDS),
    ]
    this.#loop = this.#turn()
  }

  /** There may be work: look now instead of at the next poll. */
  wake(): void {
    this.#pages.forget()
    this.#alarm.ring()
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
    for (const silence of this.#silence) silence()
    for (const timer of this.#timers) clearInterval(timer)
    this.wake()
    await this.#loop
    await Promise.race([Promise.all(this.#running.values()), sleep(drain_ms)])
    await this.#settler.stop()
    // What still runs is cut off now: its end finds no lease, and writes nothing.
    this.#over = true
    const rest = [...this.#running.keys()]
    const back = queue.giveBack(this.#options.store, rest)
    await back.catch((error) =>
      log.warn("deliveries could not be released; they wait until their leases expire", { error }),
    )
  }

  async #sweep() {
    try {
      await queue.sweep(this.#options.store)
      this.wake()
    } catch (error) {
      log.warn("the maintenance of webhook deliveries failed", { error })
    }
  }

  async #leaseSlow() {
    const { store, requests } = this.#options
    const slow = slowOnes(this.#running.keys(), SLOW_MILLISECONDS)
    const leasing = queue.leaseInHand(store, slow, queue.leaseSeconds(requests.timeout_ms))
    await leasing.catch((error) =>
      log.warn("the leases of running webhook attempts could not be recorded", { error }),
    )
  }

  async #turn() {
    let failing = false
    while (!this.#stopping) {
      this.#alarm.quiet()
      let due = Number.POSITIVE_INFINITY
      try {
        due = await this.#fill()
        this.progressed_at = monotonic()
        failing = false
      } catch (error) {
        if (!failing) log.warn("webhook deliveries cannot be claimed; trying again", { error })
        failing = true
      }
      if (failing) await sleep(POLL_MILLISECONDS)
      else if (!this.#stopping) await this.#alarm.rest(due)
    }
  }

  /** Once around all endpoints, or until every slot is taken. Returns when the next work is due. */
  async #fill(): Promise<number> {
    const { store, concurrency, isPaused } = this.#options
    let due = Number.POSITIVE_INFINITY
    let begun_at_first = this.#after === ""
    while (!this.#stopping && !isPaused() && this.#taken() < concurrency) {
      // Before the page is read: a failure that is counted meanwhile must free nothing for it.
      const busy = new Map(this.#slots.busy)
      const page = await this.#pages.behind(store.read, this.#after)
      const next = await this.#serve(page, busy)
      this.progressed_at = monotonic()
      if (next === undefined) continue
      due = Math.min(due, next)
      this.#after = page.length < PAGE ? "" : (page.at(-1)?.webhook_id ?? "")
      if (this.#after !== "") continue
      if (begun_at_first) break
      begun_at_first = true
    }
    return due
  }

  /** Begins what is due of these endpoints. Returns when the next is, or nothing: ask again now. */
  async #serve(
    page: OpenEndpoint[],
    busy: ReadonlyMap<string, number>,
  ): Promise<number | undefined> {
    const { store, requests, concurrency } = this.#options
    for (const waiting of page) {
      if (waiting.status === "active") continue
      this.#pages.forget()
      await clearInactive(store, waiting)
    }
    const present = page.filter(({ status }) => status !== null)
    const slots = { concurrency, running: this.#taken(), busy }
    const { wishes, wished, due, more } = shareOut(present, slots)
    if (wishes.length === 0) return due
    const claimed = await queue.claim(store, wishes, queue.leaseSeconds(requests.timeout_ms))
    if (claimed.length < wished) this.#pages.forget()
    if (claimed.length === 0) return due
    await this.#begin(page, claimed)
    return more ? undefined : due
  }

  async #begin(page: OpenEndpoint[], claimed: queue.Claimed[]) {
    const { read } = this.#options.store
    try {
      const webhook_ids = claimed.map(({ webhook_id }) => webhook_id)
      const event_ids = claimed.map(({ event_id }) => event_id)
      const receivers = await this.#receivers.of(read, page, webhook_ids)
      const plain = await this.#envelopes.of(read, event_ids)
      for (const one of claimed) {
        const receiver = receivers.get(one.webhook_id)
        this.#run({ claimed: one, receiver, plain: plain.get(one.event_id) })
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
    const turn = this.#slots.take(claimed.webhook_id, () => this.#alarm.ring())
    const done = this.#work(work, turn)
      .catch((error) =>
        log.error("a delivery failed unexpectedly; it waits until its lease expires", { error }),
      )
      .finally(() => {
        // Its own slot was free long before. As one of too many that wait for the disk it took one.
        if (this.#running.size > this.#options.concurrency) this.#alarm.ring()
        this.#running.delete(claimed)
        turn.end()
      })
    this.#running.set(claimed, done)
  }

  async #work({ claimed, receiver, plain }: Work, turn: AttemptPermit) {
    const { store, requests } = this.#options
    let body: DeliveryBody | undefined
    try {
      body = receiver && (await bodyFor(this.#options, claimed, receiver.transform, plain))
    } catch (error) {
      log.warn("the body of a webhook delivery could not be made; trying again", { error })
      return queue.giveBack(store, [claimed], BUSY_SECONDS)
    }
    if (!receiver || !body) return queue.drop(store, claimed)
    const release = await this.#throttle.acquire()
    if (this.#over) return release()
    const outcome = await attempt(requests, receiver, claimed.event_id, body.text)
    release()
    willEnd(claimed)
    // The next may leave while the end is written. A failure is to be counted before another try.
    if (outcome.error === null) {
      turn.succeeded()
      turn.free()
    }
    const is_outdone = turn.isOutdone()
    const ended = { claimed, outcome, transform_failed: body.transform_failed, is_outdone }
    if (await this.#settler.settle(ended)) return
    // What was sent must not be sent again at once: as if its lease had to end.
    setTimeout(letGo, queue.leaseSeconds(requests.timeout_ms) * 1000, [claimed]).unref()
  }
}
