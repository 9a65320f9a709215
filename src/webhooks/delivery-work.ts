import { inArray } from "drizzle-orm"
import type { Workers } from "../core/workers"
import { DeferredError, type WorkResult } from "../jobs/work"
import type { WorkTable } from "../jobs/work-table"
import { idList, isAmong } from "../store/dialect"
import { prepared } from "../store/statements"
import type { Reader, Store } from "../store/store"
import { attempt, type Receiver, type RequestSettings, receiverOf } from "./attempt"
import { bodyFor, type DeliveryBody, Envelopes } from "./delivery-body"
import { WEBHOOKS } from "./delivery-counts"
import { type ClaimedDelivery, deliveryRows } from "./delivery-picker"
import { EndpointCache } from "./endpoint-cache"
import { type RunningAttempt, RunningAttempts } from "./running-attempts"
import { type EndedAttempt, settleDeliveries } from "./settle-deliveries"
import { webhooks } from "./tables"
import { ConnectionThrottle } from "./throttle"

/** While the worker pool or the database is busy, a delivery waits for so long. */
const BUSY_SECONDS = 1

export interface DeliveryParts {
  store: Store
  workers: Workers
  requests: RequestSettings
  /** Failed attempts in a row that disable an endpoint. */
  failures: number
}

/** What is read for all rows of a claim at once. */
interface Loaded {
  receivers: ReadonlyMap<string, Receiver>
  envelopes: ReadonlyMap<string, string>
}

/** The table of deliveries for the engine: how one is attempted, and how the results are written. */
export class DeliveryTable implements WorkTable<ClaimedDelivery, EndedAttempt> {
  readonly rows = deliveryRows
  readonly looks_ahead = true
  readonly settles_apart_ms = 8
  /** The attempts that run, by endpoint. */
  readonly running = new RunningAttempts()
  readonly #parts: DeliveryParts
  readonly #receivers: EndpointCache<Receiver>
  readonly #envelopes = new Envelopes()
  readonly #throttle = new ConnectionThrottle()
  readonly #claimed = new WeakMap<
    ClaimedDelivery,
    { loaded: Promise<Loaded>; running: RunningAttempt }
  >()

  constructor(parts: DeliveryParts) {
    this.#parts = parts
    this.#receivers = new EndpointCache()
  }

  queueOf = () => WEBHOOKS

  /** Of an attempt that failed by a fault of ours. */
  scheduleOf = () => () => BUSY_SECONDS

  onClaim(rows: ClaimedDelivery[]) {
    const loaded = this.#load(rows)
    loaded.catch(() => {}) // each row hears of it
    for (const row of rows) {
      this.#claimed.set(row, { loaded, running: this.running.begin(row.webhook_id) })
    }
  }

  onRelease(rows: ClaimedDelivery[]) {
    for (const row of rows) {
      this.#claimed.get(row)?.running.end()
      this.#claimed.delete(row)
    }
  }

  async run(row: ClaimedDelivery): Promise<WorkResult<EndedAttempt>> {
    const claimed = this.#claimed.get(row)
    if (!claimed) return {}
    const { running } = claimed
    const settled = () => running.end()
    const { receivers, envelopes } = await claimed.loaded.catch(busy)
    const receiver = receivers.get(row.webhook_id)
    const envelope = envelopes.get(row.event_id)
    const body =
      receiver && (await bodyFor(this.#parts, row, receiver.transform, envelope).catch(busy))
    if (!receiver || !body) return { settled } // nothing is left to send
    const release = await this.#throttle.acquire()
    if (!this.#claimed.has(row)) {
      release() // the process stops
      return {}
    }
    const end = await attemptDelivery(this.#parts.requests, receiver, row, body)
    release()
    if (end.outcome.error !== null) {
      return { end: { ...end, is_outdone: running.isOutdone() }, settled }
    }
    // The next attempt may begin while the success is written. A failure is counted before that.
    running.succeeded()
    running.free()
    return { end, settled, frees_slot: true }
  }

  settle: WorkTable<ClaimedDelivery, EndedAttempt>["settle"] = (tx, list) =>
    settleDeliveries(tx, list, this.#parts.failures)

  async #load(rows: ClaimedDelivery[]): Promise<Loaded> {
    const { read } = this.#parts.store
    const webhook_ids = [...new Set(rows.map((row) => row.webhook_id))]
    const event_ids = rows.map((row) => row.event_id)
    const receivers = await this.#receiversOf(read, webhook_ids)
    return { receivers, envelopes: await this.#envelopes.of(read, event_ids) }
  }

  /** An endpoint that was deleted is not in the result. */
  async #receiversOf(db: Reader, ids: string[]): Promise<ReadonlyMap<string, Receiver>> {
    const states = await selectStates(db, { ids })
    const found = new Map<string, Receiver>()
    for (const state of states) {
      const receiver = this.#receivers.get(state)
      if (receiver) found.set(state.id, receiver)
    }
    const changed = states.flatMap(({ id }) => (found.has(id) ? [] : [id]))
    if (changed.length === 0) return found
    for (const row of await db.select().from(webhooks).where(inArray(webhooks.id, changed))) {
      const receiver = receiverOf(this.#parts.requests, row)
      this.#receivers.set(row, receiver)
      found.set(row.id, receiver)
    }
    return found
  }
}

/** One attempt, as it is settled. */
export async function attemptDelivery(
  requests: RequestSettings,
  receiver: Receiver,
  { event_id }: ClaimedDelivery,
  { text, transform_failed }: DeliveryBody,
): Promise<EndedAttempt> {
  return { outcome: await attempt(requests, receiver, event_id, text), transform_failed }
}

function busy(error: Error): never {
  throw new DeferredError(error.message, BUSY_SECONDS)
}

const selectStates = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select({ id: webhooks.id, updated_at: webhooks.updated_at })
    .from(webhooks)
    .where(isAmong(db, webhooks.id, slot.ids)),
)
