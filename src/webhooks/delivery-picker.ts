import { and, eq, type SQL, sql } from "drizzle-orm"
import { log } from "../core/log"
import { millis, millisFrom, monotonic, secondsFromNow } from "../core/time"
import { isReady } from "../jobs/work-rows"
import type { Picker, Share } from "../jobs/work-table"
import { perStore } from "../store/cached"
import { forUpdate } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { deliveryWakeUp, isHeldByEndpoint, notInFlight } from "./delivery-rows"
import { totalsOfOne } from "./endpoint-counts"
import { clearInactive, exhaust } from "./held"
import { deliveries, webhooks } from "./tables"

/** Endpoints of one page. The next pick goes on with the page after it. */
const PAGE = 200

/** A page is read again after this time, even if nothing seems to have changed. */
const FRESH_MILLISECONDS = 25

/** Attempts of one endpoint side by side; half as many with each failure in a row, and one at last. */
const PER_ENDPOINT = 10

interface PickerOptions {
  store: Store
  concurrency: number
  busy: ReadonlyMap<string, number>
  isPaused: () => boolean
}

/**
 * Shares the free slots among the endpoints that have deliveries due, so that no endpoint waits for
 * the backlog of another. It walks from endpoint to endpoint, a page at a time.
 */
export class DeliveryPicker implements Picker {
  readonly #options: PickerOptions
  #after = ""
  /** The first page, where it is also the last one and no other process changes it. */
  #cached: OpenEndpoint[] | undefined
  #read_at = 0
  #changes = 0

  constructor(options: PickerOptions) {
    this.#options = options
  }

  /** Listens to the changes that make the cached page old, until the returned function is called. */
  listen(): () => void {
    const forget = () => {
      this.#changes += 1
      this.#cached = undefined
    }
    const ends = [
      deliveryWakeUp(this.#options.store.read).onWakeUp(forget),
      this.#options.store.read.onChanged(["webhooks"], forget),
    ]
    return () => {
      for (const end of ends) end()
    }
  }

  async pick(free: number): Promise<{ shares: Share[]; due: number | undefined }> {
    const { store, concurrency, busy, isPaused } = this.#options
    await endBacklogs(store)
    if (isPaused()) return { shares: [], due: undefined }
    // Copied before the page is read: a failure that is counted meanwhile must free no slot.
    const slots = { free, concurrency, busy: new Map(busy) }
    const page = await this.#page(store.read)
    for (const endpoint of page) {
      if (endpoint.status !== "active") await clearInactive(store, endpoint)
    }
    this.#after = page.length < PAGE ? "" : (page.at(-1)?.webhook_id ?? "")
    const { shares, due } = shareOut(page, slots)
    return { shares, due: this.#after === "" ? due : millis() }
  }

  async #page(db: Reader): Promise<OpenEndpoint[]> {
    const is_fresh = monotonic() - this.#read_at < FRESH_MILLISECONDS
    if (this.#after === "" && this.#cached && is_fresh) return this.#cached
    const changes = this.#changes
    this.#read_at = monotonic()
    const page = await withOpen(db, { after: this.#after })
    const is_all = db.isAlone && this.#after === "" && page.length < PAGE
    this.#cached = is_all && changes === this.#changes ? page : undefined
    return page
  }
}

interface Slots {
  free: number
  concurrency: number
  busy: ReadonlyMap<string, number>
}

/** The shares of the endpoints that have deliveries due; `due`: when the next endpoint has. */
function shareOut(page: readonly OpenEndpoint[], slots: Slots) {
  const looked_at = millis()
  let due: number | undefined
  const ready: { endpoint: OpenEndpoint; limit: number }[] = []
  for (const endpoint of page) {
    if (endpoint.status === null) continue
    const at = Math.max(Number(endpoint.due ?? Number.POSITIVE_INFINITY), rateSlotOf(endpoint))
    if (at > looked_at) {
      due = Math.min(due ?? at, at)
      continue
    }
    const limit = concurrencyLeft(endpoint, slots)
    if (limit > 0) ready.push({ endpoint, limit })
  }
  const share = Math.max(1, Math.floor(slots.free / Math.max(1, ready.length)))
  const shares = ready
    .slice(0, slots.free)
    .map(({ endpoint, limit }) => shareOf(endpoint, Math.min(limit, share)))
  return { shares, due }
}

const rateSlotOf = ({ next_slot_at, rate_limit }: OpenEndpoint) =>
  next_slot_at === null || rate_limit === null ? 0 : millisFrom(next_slot_at)

/** While more than half of all slots are taken, something is slow: then no endpoint gets a second one. */
function concurrencyLeft({ webhook_id, consecutive_failures }: OpenEndpoint, slots: Slots): number {
  const crowded = slots.free < slots.concurrency / 2
  const trusted = Math.floor(PER_ENDPOINT / 2 ** (consecutive_failures ?? 0))
  const most = crowded ? 1 : Math.max(1, trusted)
  return most - (slots.busy.get(webhook_id) ?? 0)
}

function shareOf({ webhook_id, status, rate_limit }: OpenEndpoint, limit: number): Share {
  const share: Share = { partition: webhook_id, limit }
  if (status !== "active") share.narrow = true // those that were asked for by hand
  if (rate_limit !== null) {
    share.admit = (tx, claim) => admitByRate(tx, { webhook_id, rate_limit, limit }, claim)
  }
  return share
}

/** Claims when the endpoint's next slot has come. All nodes keep the rate together, in the endpoint's row. */
async function admitByRate(
  tx: Tx,
  { webhook_id, rate_limit, limit }: { webhook_id: string; rate_limit: number; limit: number },
  claim: (limit: number) => Promise<number>,
) {
  const theirs = eq(webhooks.id, webhook_id)
  const row = tx.select({ at: webhooks.next_slot_at }).from(webhooks).where(theirs)
  const [found] = await forUpdate(row)
  if (!found || (found.at !== null && millisFrom(found.at) > millis())) return
  // A tenth of a second's deliveries are claimed together: a slot each would be a commit each.
  const claimed = await claim(Math.min(limit, Math.max(1, Math.floor(rate_limit / 10))))
  if (claimed === 0) return
  const next_slot_at = secondsFromNow(claimed / rate_limit)
  await tx.update(webhooks).set({ next_slot_at }).where(theirs)
}

/** An endpoint with open deliveries. All fields but `webhook_id` and `due` are null after its deletion. */
type OpenEndpoint = Awaited<ReturnType<typeof withOpen>>[number]

/** The endpoints with open deliveries, by id after `after`, and when the first of each is due. */
const withOpen = prepared({ after: deliveries.webhook_id }, (db: Reader, slot) =>
  walk(db, isReady, slot.after),
)

/** The endpoints that hold deliveries, and until when the first of each is held. */
export const withHeld = prepared({ after: deliveries.webhook_id }, (db: Reader, slot) =>
  walk(db, isHeldByEndpoint, slot.after),
)

/** From one endpoint to the next by the index, however many deliveries each of them has. */
function walk(db: Reader, state: SQL, after: SQL) {
  const next = (from: SQL) =>
    sql`(SELECT webhook_id FROM ${deliveries} WHERE ${state} AND webhook_id > ${from}
      ORDER BY webhook_id LIMIT 1)`
  const steps = sql`(WITH RECURSIVE step(webhook_id, number) AS (
    SELECT ${next(after)}, 1
    UNION ALL SELECT ${next(sql`step.webhook_id`)}, number + 1 FROM step
      WHERE step.webhook_id IS NOT NULL AND number < ${sql.raw(String(PAGE))}
  ) SELECT webhook_id FROM step WHERE webhook_id IS NOT NULL) AS step`
  const first = sql<number | string | null>`(SELECT min(d.run_at) FROM ${deliveries} d
    WHERE ${state} AND d.webhook_id = step.webhook_id)`
  const { status, consecutive_failures, rate_limit, next_slot_at } = webhooks
  return db
    .select({
      webhook_id: sql`step.webhook_id`.mapWith(deliveries.webhook_id),
      due: first,
      status,
      consecutive_failures,
      rate_limit,
      next_slot_at,
    })
    .from(steps)
    .leftJoin(webhooks, sql`${webhooks.id} = step.webhook_id`)
}

/** Open deliveries of one endpoint (contract 30, section 2). */
export const MOST_OPEN = 100_000

/** The most that end in one transaction. */
const BATCH = 500

/** Other nodes may plan deliveries, too. So a node reads the total again after it planned this number. */
const LOOK_AFTER = 500

const MOST_ENDPOINTS = 10_000

/** Which endpoints may have too many open deliveries, as far as this process planned them. */
class Backlogs {
  /** How many more deliveries may be planned before the total is looked at. */
  readonly #room = new Map<string, number>()
  readonly #full = new Set<string>()

  /** After the commit. An endpoint that is not known may have any number. */
  planned(webhook_ids: string[]) {
    for (const id of webhook_ids) {
      const room = (this.#room.get(id) ?? 0) - 1
      if (room < 0) this.#full.add(id)
      else this.#room.set(id, room)
    }
  }

  take(): string[] {
    const ids = [...this.#full]
    this.#full.clear()
    return ids
  }

  setRoom(id: string, room: number) {
    if (this.#room.size >= MOST_ENDPOINTS) this.#room.clear()
    this.#room.set(id, room)
  }
}

export const backlogsOf = perStore(() => new Backlogs())

/** Ends the oldest open deliveries of endpoints that have too many, those that are held first. */
async function endBacklogs(store: Store): Promise<void> {
  const backlogs = backlogsOf(store.read)
  for (const id of backlogs.take()) {
    const left = MOST_OPEN - (await totalsOfOne(store.read, id)).open
    if (left < 0) await endOldest(store, id, -left)
    const room = Math.max(0, left)
    backlogs.setRoom(id, store.isAlone ? room : Math.min(room, LOOK_AFTER))
  }
}

async function endOldest(store: Store, webhook_id: string, number: number) {
  let left = number
  while (left > 0) {
    const ended = await store.tx((tx) => endSome(tx, webhook_id, Math.min(left, BATCH)))
    if (ended === 0) break // the others are attempted now
    left -= ended
  }
  log.warn("an endpoint had too many open deliveries, and the oldest ended", {
    ...{ webhook_id, ended: number - left, most: MOST_OPEN },
  })
}

async function endSome(tx: Tx, webhook_id: string, most: number): Promise<number> {
  const ours = eq(deliveries.webhook_id, webhook_id)
  const last_error = "backlog_limit" as const
  // Each of the two walks an index.
  const held = await exhaust(tx, and(ours, isHeldByEndpoint), { most, last_error })
  const waits = and(ours, isReady, eq(deliveries.by_hand, false), notInFlight(tx))
  const rest = most - held
  return rest === 0 ? held : held + (await exhaust(tx, waits, { most: rest, last_error }))
}
