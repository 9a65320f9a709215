import { isoFrom, millis } from "../../core/time"

/** The first pause of a destination. It doubles with each further one, up to the last. */
const FIRST_PAUSE_MS = 30_000
const LAST_PAUSE_MS = 900_000

/** A denied message is told to come again no sooner and no later. */
const SOONEST_MS = 250
const HORIZON_MS = 600_000

const FIRST_LIMIT = 2

/** Messages of a quick destination that wait for each permit that it may have, and for how long. */
const WAITERS_PER_PERMIT = 2
const WAIT_MS = 1_000

/** So many denials since the last time are a backlog, which is deferred together. */
const BACKLOG = 100

/** So many good deliveries in a row raise the limit of a destination that was slowed down. */
const CALM_DELIVERIES = 10

const MOST_DESTINATIONS = 10_000

/** A delivery that takes longer makes its destination a slow one. */
const SLOW_MS = 1_000
const FIRST_GUESS_MS = 50

export interface PermitRequest {
  is_urgent?: boolean | undefined
  project_id?: string | undefined
  /** What people call the destination, where that is not its key. */
  name?: string | undefined
}

/** The right to make one delivery to a destination now. It counts until it is released. */
export interface Permit {
  destination: Destination
  request: PermitRequest
  /** Epoch milliseconds; undefined while the message is still prepared. */
  began: number | undefined
}

/** There is no permit now: why, and when to ask again. */
export interface PermitDenial {
  until: string
  reason: string
}

/** Of `late` only the duration counts. `slow_down` has the reason for a pause. */
export type DestinationFeedback = "fine" | "late" | "nothing" | { slow_down: string }

/** Many messages that were denied a permit at one destination, and the project of the last of them. */
export interface DeniedBacklog {
  destination: string
  project_id: string | undefined
}

export interface PerDestinationOptions {
  per_destination: number
  /** Called when many messages were denied, with what spaces the next `count` of them. */
  onBacklog?: ((backlog: DeniedBacklog, defer: (count: number) => PermitDenial) => void) | undefined
  concurrency: ConcurrencyLimit
}

/** Waits for a permit. With nothing it is denied. */
interface PermitWaiter {
  request: PermitRequest
  resolve(permit: Permit | undefined): void
}

class Destination {
  readonly key: string
  limit: number
  readonly running = new Set<Permit>()
  readonly waiters = new Set<PermitWaiter>()
  /** It has taken a message since it is remembered. */
  is_proven = false
  average_ms = FIRST_GUESS_MS
  /** The next time that no denied message has been told yet. */
  next_time = 0
  paused_until = 0
  slowed_at = 0
  pause_ms = 0
  pause_reason = ""
  /** Good deliveries since the last pause or the last raise of the limit. */
  calm = 0
  /** Since the last backlog. */
  denied = 0

  constructor(key: string, limit: number) {
    this.key = key
    this.limit = limit
  }

  get is_paused(): boolean {
    return this.paused_until > millis()
  }

  /** Milliseconds that a delivery takes: as they did lately, or as long as one takes already. */
  get delivery_ms(): number {
    let longest = this.average_ms
    const now = millis()
    for (const { began = now } of this.running) longest = Math.max(longest, now - began)
    return longest
  }

  get is_slow(): boolean {
    return this.delivery_ms > SLOW_MS
  }

  /** Slow, or not known to be anything else: it may hold its permits for minutes. */
  get is_doubtful(): boolean {
    return !this.is_proven || this.is_slow
  }

  /** It asks for less: it gets half of its permits, and none for a while. */
  slowDown(reason: string) {
    this.pause_ms = Math.min(LAST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * this.pause_ms))
    this.limit = Math.max(1, this.limit >> 1)
    this.calm = 0
    this.pause_reason = reason
    this.slowed_at = millis() + 1
    this.paused_until = millis() + this.pause_ms
    this.next_time = this.paused_until
  }

  /** It took a message, which raises its limit, though slowly after a pause. */
  recover(most: number) {
    this.is_proven = true
    if (this.limit >= most) return
    this.calm++
    if (this.pause_ms > 0 && this.calm < CALM_DELIVERIES) return
    this.calm = 0
    this.limit++
    if (this.limit >= most) this.pause_ms = 0
  }
}

/** Why there is no permit. `is_shared`: for the other destinations, and not for this one. */
interface Obstacle {
  reason: string
  is_shared: boolean
}

/**
 * The per-destination limit: how many deliveries one recipient domain, or one provider, gets at the
 * same time. A new destination begins with two permits and gains one with each success. One that asks
 * for less gets half and a pause, and earns the rest back slowly. Each denied message is told a time of
 * its own, spaced as fast as the destination has been, so that a long queue is not tried over and over.
 */
export class PerDestinationLimits {
  readonly #destinations = new Map<string, Destination>()
  /** Those with a message that waits for a permit. */
  readonly #awaited = new Set<Destination>()
  readonly #options: PerDestinationOptions

  constructor(options: PerDestinationOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#destinations.size
  }

  /** Gives a permit, which must be given back to `release`, or says when to come again. */
  tryAcquire(key: string, request: PermitRequest = {}): Permit | PermitDenial {
    const destination = this.#find(key)
    const obstacle = this.#obstacle(destination, request)
    return obstacle ? this.#deny(destination, request, obstacle) : this.#give(destination, request)
  }

  /** As `tryAcquire`, but where the destination is quick it waits up to a second for a permit. */
  async acquire(key: string, request: PermitRequest = {}): Promise<Permit | PermitDenial> {
    const destination = this.#find(key)
    const obstacle = this.#obstacle(destination, request)
    if (!obstacle || !this.#isWorthWaiting(destination, obstacle)) {
      return this.tryAcquire(key, request)
    }
    const { promise, resolve } = Promise.withResolvers<Permit | undefined>()
    const waiter = { request, resolve }
    destination.waiters.add(waiter)
    this.#awaited.add(destination)
    const timer = setTimeout(resolve, WAIT_MS, undefined)
    const permit = await promise
    clearTimeout(timer)
    destination.waiters.delete(waiter)
    if (destination.waiters.size === 0) this.#awaited.delete(destination)
    return permit ?? this.tryAcquire(key, request)
  }

  release(permit: Permit, feedback: DestinationFeedback): void {
    const { destination, began = millis() } = permit
    destination.running.delete(permit)
    this.#options.concurrency.remove(permit)
    if (feedback !== "nothing") {
      destination.average_ms = 0.8 * destination.average_ms + 0.2 * Math.max(1, millis() - began)
    }
    if (feedback === "fine") destination.recover(this.#options.per_destination)
    // Those that had begun before the pause say the same once more.
    else if (typeof feedback === "object" && began >= destination.slowed_at) {
      destination.slowDown(feedback.slow_down)
    }
    this.#wakeNext(destination)
    // Those of other destinations may have waited for their share of all permits.
    for (const other of this.#awaited) this.#wakeNext(other)
  }

  #isWorthWaiting(destination: Destination, { is_shared }: Obstacle): boolean {
    if (destination.is_slow || destination.is_paused) return false
    if (is_shared && this.#options.concurrency.hangs) return false
    return destination.waiters.size < WAITERS_PER_PERMIT * this.#options.per_destination
  }

  #wakeNext(destination: Destination) {
    for (const waiter of destination.waiters) {
      const { is_paused } = destination
      if (!is_paused && this.#obstacle(destination, waiter.request)) return
      destination.waiters.delete(waiter)
      waiter.resolve(is_paused ? undefined : this.#give(destination, waiter.request))
    }
  }

  #give(destination: Destination, request: PermitRequest): Permit {
    const permit: Permit = { destination, request, began: undefined }
    destination.running.add(permit)
    this.#options.concurrency.add(permit)
    return permit
  }

  #obstacle(destination: Destination, request: PermitRequest): Obstacle | undefined {
    const { concurrency } = this.#options
    const { name = destination.key, is_urgent } = request
    const own = (reason: string) => ({ reason: `${name} ${reason}`, is_shared: false })
    if (destination.is_paused) return own(`is paused: ${destination.pause_reason}`)
    const allowed = is_urgent ? 2 * destination.limit : destination.limit
    const limit = Math.min(allowed, concurrency.per_destination)
    if (destination.running.size >= limit) return own(`takes at most ${limit} messages at a time`)
    if (!destination.is_doubtful || !concurrency.isShareUsed(request)) return undefined
    const why = destination.is_slow ? "is slow" : "has accepted no message yet"
    const reason = `${name} ${why}. Slow and new servers may use only a part of the delivery slots`
    return { reason, is_shared: true }
  }

  #deny(destination: Destination, { project_id }: PermitRequest, obstacle: Obstacle): PermitDenial {
    const defer = (count: number) => this.#later(destination, obstacle, count)
    destination.denied++
    if (destination.denied >= BACKLOG) {
      destination.denied = 0
      this.#options.onBacklog?.({ destination: destination.key, project_id }, defer)
    }
    return defer(1)
  }

  #later(destination: Destination, { is_shared, reason }: Obstacle, count: number): PermitDenial {
    const soonest = Math.max(millis() + SOONEST_MS, destination.paused_until)
    const horizon = Math.max(destination.paused_until, millis() + HORIZON_MS)
    const own = Math.min(Math.max(soonest, destination.next_time), horizon)
    destination.next_time = own + (count * destination.delivery_ms) / destination.limit
    const shared = is_shared ? this.#options.concurrency.nextTime(count) : 0
    return { until: isoFrom(Math.ceil(Math.max(own, shared))), reason }
  }

  #find(key: string): Destination {
    const known = this.#destinations.get(key)
    if (known) return known
    const limit = Math.min(FIRST_LIMIT, this.#options.per_destination)
    const destination = new Destination(key, limit)
    this.#destinations.set(key, destination)
    if (this.#destinations.size > MOST_DESTINATIONS) this.#forget()
    return destination
  }

  /** The oldest half of those where nothing runs. They begin anew. */
  #forget() {
    for (const [key, { running, waiters }] of this.#destinations) {
      if (this.#destinations.size <= MOST_DESTINATIONS / 2) return
      if (running.size === 0 && waiters.size === 0) this.#destinations.delete(key)
    }
  }
}

export const isDenied = (answer: Permit | PermitDenial): answer is PermitDenial => "until" in answer

/** Of all permits: what doubtful destinations hold for one project, and at most at all. */
const HALF = 1 / 2
const MOST = 3 / 4

/** How long after mail of another project a destination may not take every permit. */
const OTHERS_MS = 60_000

/** A message that is denied for the shared limit comes back this much later, and spaced. */
const SHARED_SOONEST_MS = 1_000
const SHARED_SPACING_MS = 100
const SHARED_HORIZON_MS = 60_000

/**
 * The concurrency limit: the permits of all destinations of this process together. Destinations that are
 * slow or have taken nothing yet get half of them for one project and three quarters in all. So mail to
 * a destination that is known to be quick finds a permit, however many others hang.
 */
export class ConcurrencyLimit {
  readonly #permits = new Set<Permit>()
  readonly #concurrency: number
  #latest: string | undefined
  #changed_at = Number.NEGATIVE_INFINITY
  #next_time = 0

  constructor(concurrency: number) {
    this.#concurrency = concurrency
  }

  add(permit: Permit): void {
    this.#permits.add(permit)
  }

  remove(permit: Permit): void {
    this.#permits.delete(permit)
  }

  /** A project has mail, whichever provider delivers it. */
  saw(project_id: string): void {
    if (this.#latest === project_id) return
    if (this.#latest !== undefined) this.#changed_at = millis()
    this.#latest = project_id
  }

  get per_destination(): number {
    const is_shared = millis() - this.#changed_at < OTHERS_MS
    return is_shared ? this.#share(MOST) : Number.POSITIVE_INFINITY
  }

  /** Whether doubtful destinations hold as many as they may, for this project or for all. */
  isShareUsed({ project_id, is_urgent = false }: PermitRequest): boolean {
    const all = this.#permitsOf("is_doubtful")
    const own = all.filter(({ request }) => request.project_id === project_id)
    return all.length >= this.#share(MOST) || own.length >= this.#share(is_urgent ? MOST : HALF)
  }

  /** Slow destinations hold nearly all permits, so waiting for one has no use. */
  get hangs(): boolean {
    return this.#permitsOf("is_slow").length >= this.#share(HALF) / 2
  }

  /** When the next `count` denied messages may come again, in epoch milliseconds. */
  nextTime(count: number): number {
    const soonest = Math.max(millis() + SHARED_SOONEST_MS, this.#next_time)
    const until = Math.min(soonest, millis() + SHARED_HORIZON_MS)
    this.#next_time = until + count * SHARED_SPACING_MS
    return until
  }

  /** Each destination is asked once, however many permits it has. */
  #permitsOf(kind: "is_doubtful" | "is_slow"): Permit[] {
    const found = new Map<Destination, boolean>()
    for (const { destination } of this.#permits) {
      if (!found.has(destination)) found.set(destination, destination[kind])
    }
    return [...this.#permits].filter(({ destination }) => found.get(destination))
  }

  #share = (part: number) => Math.max(1, Math.floor(part * this.#concurrency))
}
