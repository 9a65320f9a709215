import { and, eq, inArray, isNull, sql } from "drizzle-orm"
import { monotonic } from "../core/time"
import type { Workers } from "../core/workers"
import { API_VERSION } from "../events/registry"
import { events } from "../events/tables"
import { DeferredError, type WorkResult } from "../jobs/work-item"
import type { WorkTable } from "../jobs/work-table"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader, Store } from "../store/store"
import { renderTransform } from "../templates/transform"
import { type ClaimedDelivery, deliveryRows, WEBHOOKS } from "./delivery-rows"
import { addStored, bodyBytes } from "./endpoint-counts"
import {
  type AttemptOutcome,
  attempt,
  EndpointCache,
  type Receiver,
  type RequestSettings,
  receiverOf,
} from "./receiver"
import { type EndedAttempt, settleDeliveries } from "./settle-deliveries"
import { deliveries, webhooks } from "./tables"

/** How long a delivery waits while the worker pool or the database is busy. */
const BUSY_SECONDS = 1

export interface DeliveryParts {
  store: Store
  workers: Workers
  requests: RequestSettings
  /** Failed attempts in a row that disable an endpoint. */
  failures: number
}

interface Loaded {
  receivers: ReadonlyMap<string, Receiver>
  envelopes: ReadonlyMap<string, string>
}

/** The table of deliveries for the engine: how one is attempted, and how the results are written. */
export class DeliveryTable implements WorkTable<ClaimedDelivery, EndedAttempt> {
  readonly rows = deliveryRows
  readonly looks_ahead = true
  readonly settles_apart_ms = 8
  readonly running = new RunningAttempts()
  readonly #parts: DeliveryParts
  readonly #receivers = new EndpointCache<Receiver>()
  /** Receivers as the endpoints are now, for as long as no endpoint changes. */
  #current = { changes: undefined as number | undefined, receivers: new Map<string, Receiver>() }
  readonly #envelopes = new Envelopes()
  readonly #throttle = new ConnectionThrottle()
  readonly #claimed = new Map<
    ClaimedDelivery,
    { loaded: Promise<Loaded>; running: RunningAttempt }
  >()

  constructor(parts: DeliveryParts) {
    this.#parts = parts
  }

  queueOf = () => WEBHOOKS

  /** Of an attempt that failed by a fault of ours. */
  scheduleOf = () => () => BUSY_SECONDS

  onClaim(rows: ClaimedDelivery[]) {
    if (rows.length === 0) return
    const loaded = this.#load(rows).catch(defer)
    loaded.catch(() => {}) // each row hears of it
    for (const row of rows) {
      this.#claimed.set(row, { loaded, running: this.running.begin(row.webhook_id) })
    }
  }

  onRelease(rows: ClaimedDelivery[]) {
    for (const row of rows) this.#forget(row)
  }

  #forget(row: ClaimedDelivery) {
    this.#claimed.get(row)?.running.end()
    this.#claimed.delete(row)
  }

  async run(row: ClaimedDelivery): Promise<WorkResult<EndedAttempt>> {
    const claimed = this.#claimed.get(row)
    if (!claimed) throw new Error("A delivery runs that was not claimed")
    const settled = () => this.#forget(row)
    try {
      const { receivers, envelopes } = await claimed.loaded
      const receiver = receivers.get(row.webhook_id)
      const envelope = envelopes.get(row.event_id)
      const made = receiver && bodyFor(this.#parts, row, receiver.transform, envelope)
      const body = made instanceof Promise ? await made.catch(defer) : made
      if (!receiver || !body) return { settled } // nothing is left to send
      const release = this.#throttle.tryAcquire() ?? (await this.#throttle.acquire())
      if (!this.#claimed.has(row)) {
        release() // the process stops
        return {}
      }
      const { requests } = this.#parts
      const outcome = await attempt(requests, receiver, row.event_id, body.text)
      release()
      return resultOf(outcome, body, claimed.running, settled)
    } catch (error) {
      settled()
      throw error
    }
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
    const changes = db.changeCount("webhooks")
    if (changes === undefined || changes !== this.#current.changes) {
      this.#current = { changes, receivers: new Map() }
    }
    const { receivers } = this.#current
    const missing = ids.filter((id) => !receivers.has(id))
    if (missing.length > 0) await this.#readReceivers(db, missing, receivers)
    return receivers
  }

  async #readReceivers(db: Reader, ids: string[], found: Map<string, Receiver>) {
    const states = await selectStates(db, { ids })
    for (const state of states) {
      const receiver = this.#receivers.get(state)
      if (receiver) found.set(state.id, receiver)
    }
    const changed = states.flatMap(({ id }) => (found.has(id) ? [] : [id]))
    if (changed.length === 0) return
    for (const row of await db.select().from(webhooks).where(inArray(webhooks.id, changed))) {
      const receiver = receiverOf(this.#parts.requests, row)
      this.#receivers.set(row, receiver)
      found.set(row.id, receiver)
    }
  }
}

function resultOf(
  outcome: AttemptOutcome,
  { transform_failed }: DeliveryBody,
  running: RunningAttempt,
  settled: () => void,
): WorkResult<EndedAttempt> {
  if (outcome.error !== null) {
    return { end: { outcome, transform_failed, is_outdone: running.isOutdone() }, settled }
  }
  // The next attempt may begin while the success is written. A failure is counted before that.
  running.succeeded()
  running.free()
  return { end: { outcome, transform_failed }, settled, frees_slot: true }
}

/** The worker pool or the database is busy: no attempt was made. */
function defer(error: Error): never {
  throw new DeferredError(error.message, BUSY_SECONDS)
}

const selectStates = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select({ id: webhooks.id, updated_at: webhooks.updated_at })
    .from(webhooks)
    .where(isAmong(db, webhooks.id, slot.ids)),
)

type RunningAttempt = ReturnType<RunningAttempts["begin"]>

/** The attempts that run, by endpoint: how many there are, and which began before its last success. */
export class RunningAttempts {
  /** Attempts by endpoint that use its concurrency. */
  readonly busy = new Map<string, number>()
  /** `succeeded`: the number of the latest attempt among those that succeeded. */
  readonly #endpoints = new Map<string, { running: number; succeeded: number }>()
  #last = 0

  begin(webhook_id: string) {
    this.#last += 1
    const number = this.#last
    const endpoint = this.#endpoints.get(webhook_id) ?? { running: 0, succeeded: 0 }
    this.#endpoints.set(webhook_id, endpoint)
    endpoint.running += 1
    this.#count(webhook_id, 1)
    let is_busy = true
    let is_over = false
    const free = () => {
      if (is_busy) this.#count(webhook_id, -1)
      is_busy = false
    }
    return {
      /** Frees its share of the endpoint's concurrency. */
      free,
      succeeded: () => {
        endpoint.succeeded = Math.max(endpoint.succeeded, number)
      },
      /** Whether a later attempt of the same endpoint has succeeded already. */
      isOutdone: () => endpoint.succeeded > number,
      /** Its result is on disk, or is not written any more. */
      end: () => {
        free()
        if (is_over) return
        is_over = true
        endpoint.running -= 1
        if (endpoint.running === 0) this.#endpoints.delete(webhook_id)
      },
    }
  }

  #count(webhook_id: string, by: number) {
    const busy = (this.busy.get(webhook_id) ?? 0) + by
    if (busy > 0) this.busy.set(webhook_id, busy)
    else this.busy.delete(webhook_id)
  }
}

/** The runtime keeps 64 connections open (it has no setting for it). Some are left to other requests. */
const AT_ONCE = 60

/** A receiver that answers later than this is slow, and does not delay other requests. */
const YOUNG_MILLISECONDS = 5

/**
 * Limits how many requests begin at one moment, so that those which are answered fast share the
 * connections that stay open. Each request beyond would open a connection, only to close it again.
 */
export class ConnectionThrottle {
  /** The beginning of each young request, the oldest first. */
  readonly #young = new Set<{ at: number }>()
  readonly #waiting: ((release: () => void) => void)[] = []
  readonly #young_ms: number
  #timer: Timer | undefined

  constructor(young_ms = YOUNG_MILLISECONDS) {
    this.#young_ms = young_ms
  }

  /** Resolves when a request may begin, with the function to call at its end. */
  async acquire(): Promise<() => void> {
    const release = this.tryAcquire()
    if (release) return release
    this.#timer ??= setInterval(() => this.#admit(), this.#young_ms)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** As `acquire`, where the request may begin now; otherwise undefined. */
  tryAcquire(): (() => void) | undefined {
    return this.#waiting.length === 0 && this.#isOpen() ? this.#begin() : undefined
  }

  #begin(): () => void {
    const one = { at: monotonic() }
    this.#young.add(one)
    return () => {
      this.#young.delete(one)
      this.#admit()
    }
  }

  #admit() {
    while (this.#waiting.length > 0 && this.#isOpen()) this.#waiting.shift()?.(this.#begin())
    if (this.#waiting.length > 0 || !this.#timer) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #isOpen(): boolean {
    if (this.#young.size < AT_ONCE) return true
    const grown = monotonic() - this.#young_ms
    for (const one of this.#young) {
      if (one.at > grown) break
      this.#young.delete(one)
    }
    return this.#young.size < AT_ONCE
  }
}

/** The envelope of each event by its id. An envelope is the compact JSON that a delivery sends. */
export async function envelopesOf(db: Reader, event_ids: string[]): Promise<Map<string, string>> {
  const ids = [...new Set(event_ids)]
  if (ids.length === 0) return new Map()
  const rows = await eventsOf(db, { ids })
  return new Map(rows.map((row) => [row.id, envelopeText(row)]))
}

const eventsOf = prepared({ ids: idList }, (db: Reader, slot) => {
  const { id, type, created_at } = events
  const data = sql<string>`${events.data}` // the text of the column, not what it says
  return db
    .select({ id, type, created_at, data })
    .from(events)
    .where(isAmong(db, id, slot.ids))
})

const MOST_CHARACTERS = 4_000_000

/** A cache of envelopes: one event goes to many endpoints, and it never changes. */
class Envelopes {
  readonly #cached = new Map<string, string>()
  #characters = 0

  async of(db: Reader, event_ids: string[]): Promise<ReadonlyMap<string, string>> {
    const missing = event_ids.filter((id) => !this.#cached.has(id))
    if (missing.length === 0) return this.#cached
    if (this.#characters > MOST_CHARACTERS) {
      this.#cached.clear()
      this.#characters = 0
      return this.of(db, event_ids)
    }
    for (const [id, body] of await envelopesOf(db, missing)) {
      if (this.#cached.has(id)) continue
      this.#cached.set(id, body)
      this.#characters += body.length
    }
    return this.#cached
  }
}

/** The stored text is not parsed, so that every attempt of every node sends the same bytes. */
const envelopeText = (event: {
  id: string
  type: string
  created_at: string
  data: string
}): string =>
  `{"id":${JSON.stringify(event.id)},"type":${JSON.stringify(event.type)},` +
  `"api_version":"${API_VERSION}","created_at":"${event.created_at}","data":${event.data}}`

interface DeliveryBody {
  text: string
  transform_failed: boolean
}

/**
 * The body of a delivery. An endpoint's transform runs before the first attempt, and its result is
 * stored before it is sent. Where it gives no JSON, the plain envelope is sent. Undefined where the
 * event is gone. A promise only where the transform runs; it rejects with `service_unavailable`
 * when the transform could not be tried.
 */
export function bodyFor(
  parts: Pick<DeliveryParts, "store" | "workers">,
  row: ClaimedDelivery,
  transform: string | null,
  envelope: string | undefined,
): DeliveryBody | undefined | Promise<DeliveryBody> {
  const { body } = row
  // A stored body that is the envelope itself: the transform failed before the first attempt.
  if (body !== null) return { text: body, transform_failed: body === envelope }
  if (envelope === undefined) return undefined
  // A transform that was set between two attempts must not change the body of the first one.
  if (transform === null || row.attempts > 0) return { text: envelope, transform_failed: false }
  return transformedBody(parts, row, transform, envelope)
}

async function transformedBody(
  { store, workers }: Pick<DeliveryParts, "store" | "workers">,
  row: ClaimedDelivery,
  transform: string,
  envelope: string,
): Promise<DeliveryBody> {
  const rendered = await renderTransform(workers, transform, JSON.parse(envelope))
  const text = rendered ?? envelope
  const unset = and(eq(deliveries.id, row.id), isNull(deliveries.body))
  await store.tx(async (tx) => {
    const { id, project_id } = deliveries
    const update = tx.update(deliveries).set({ body: text }).where(unset)
    const written = await update.returning({ id, project_id })
    await addStored(
      tx,
      written.map((one) => ({ ...one, bytes: bodyBytes(text) })),
    )
  })
  return { text, transform_failed: rendered === undefined }
}
