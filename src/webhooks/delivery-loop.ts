import { inArray } from "drizzle-orm"
import { log } from "../core/log"
import { millis, monotonic, sleep } from "../core/time"
import type { Workers } from "../core/workers"
import type { Store } from "../store/store"
import { attempt, type Way } from "./attempt"
import { onPlanned } from "./bell"
import { type Body, bodiesOf, bodyFor } from "./body"
import { shareOut } from "./fair"
import { exhaustAll, hasToHold, holdOpen } from "./hold"
import * as queue from "./queue"
import { Settler } from "./settler"
import { webhooks } from "./tables"

const POLL_MILLISECONDS = 1000
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

type Webhook = typeof webhooks.$inferSelect

/** What one attempt needs; `webhook` and `plain` are missing where they were deleted. */
interface Work {
  claimed: queue.Claimed
  webhook: Webhook | undefined
  plain: string | undefined
}

/**
 * Delivers what is due, `concurrency` side by side and few of one endpoint, so that one which hangs
 * keeps nobody waiting. A freed slot is filled at once; nothing waits in memory.
 */
export class DeliveryLoop {
  /** When, by `monotonic`, the loop last looked for work: `/readyz` asks whether it still does. */
  progressed_at = monotonic()

  readonly #options: DeliveryLoopOptions
  readonly #settler: Settler
  readonly #running = new Map<queue.Claimed, Promise<void>>()
  readonly #busy = new Map<string, number>()
  #after = ""
  #stopping = false
  #rung = false
  #wake: () => void = () => {}
  #loop: Promise<void> = Promise.resolve()
  #silence: () => void = () => {}
  #stopped: Promise<void> | undefined

  constructor(options: DeliveryLoopOptions) {
    this.#options = options
    this.#settler = new Settler(options.store, options.failures)
  }

  async start(): Promise<void> {
    if (this.#options.alone) await queue.freeAll(this.#options.store)
    this.#silence = onPlanned(() => this.wake())
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
    this.wake()
    await this.#loop
    await Promise.race([Promise.all(this.#running.values()), sleep(drain_ms)])
    this.#settler.stop()
    // What still runs is cut off now: its end finds no lease, and writes nothing.
    const rest = [...this.#running.keys()]
    if (rest.length === 0) return
    const back = queue.giveBack(this.#options.store, rest)
    await back.catch((error) => log.warn("deliveries stay leased until they run out", { error }))
  }

  async #turn() {
    let failing = false
    while (!this.#stopping) {
      this.#rung = false
      let due = Number.POSITIVE_INFINITY
      try {
        due = await this.#fill()
        this.progressed_at = monotonic()
        if (failing) log.info("webhook deliveries can be claimed again")
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
    while (!this.#stopping && this.#running.size < concurrency) {
      const page = await queue.withOpen(store.read, this.#after)
      const next = await this.#serve(page)
      this.progressed_at = monotonic()
      if (next === undefined) continue // more of the same page
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
    const { store, concurrency, way } = this.#options
    for (const waiting of page) await this.#setAside(waiting)
    const present = page.filter(({ status }) => status !== null)
    const slots = { concurrency, running: this.#running.size, busy: this.#busy }
    const { wishes, due, more } = shareOut(present, slots)
    if (wishes.length === 0) return due
    const claimed = await queue.claim(store, wishes, queue.leaseSeconds(way.timeout_ms))
    if (claimed.length === 0) return due
    await this.#begin(claimed)
    return more ? undefined : due
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

  async #begin(claimed: queue.Claimed[]) {
    const { read } = this.#options.store
    try {
      const ids = [...new Set(claimed.map(({ webhook_id }) => webhook_id))]
      const rows = await read.select().from(webhooks).where(inArray(webhooks.id, ids))
      const known = new Map(rows.map((webhook) => [webhook.id, webhook]))
      const plain = await bodiesOf(
        read,
        claimed.map(({ event_id }) => event_id),
      )
      for (const one of claimed) {
        const { webhook_id, event_id } = one
        this.#run({ claimed: one, webhook: known.get(webhook_id), plain: plain.get(event_id) })
      }
    } catch (error) {
      await queue.giveBack(this.#options.store, claimed, BUSY_SECONDS)
      throw error
    }
  }

  #run(work: Work) {
    const { claimed } = work
    const { webhook_id } = claimed
    this.#busy.set(webhook_id, (this.#busy.get(webhook_id) ?? 0) + 1)
    const done = this.#work(work)
      .catch((error) => log.error("a delivery waits for its lease to end", { error }))
      .finally(() => {
        this.#running.delete(claimed)
        const left = (this.#busy.get(webhook_id) ?? 1) - 1
        if (left > 0) this.#busy.set(webhook_id, left)
        else this.#busy.delete(webhook_id)
        this.wake()
      })
    this.#running.set(claimed, done)
  }

  async #work({ claimed, webhook, plain }: Work) {
    const { store, way } = this.#options
    let body: Body | undefined
    try {
      body = webhook && (await bodyFor(this.#options, claimed, webhook.transform, plain))
    } catch (error) {
      log.warn("a webhook's body could not be made; trying again", { error })
      return queue.giveBack(store, [claimed], BUSY_SECONDS)
    }
    if (!webhook || !body) return queue.drop(store, claimed)
    const attempted = await attempt(way, webhook, claimed.event_id, body.text)
    const { transform_failed } = body
    return this.#settler.settle({ claimed, attempted, transform_failed })
  }

  async #rest(due: number) {
    if (this.#rung) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const pause = Math.min(POLL_MILLISECONDS, Math.max(1, due - millis()))
    const timer = setTimeout(resolve, pause)
    this.#wake = resolve
    await promise
    clearTimeout(timer)
  }
}
