import { isoFrom, millis } from "../../core/time"

/** The first pause of a destination. It doubles with each further one, up to the last. */
const FIRST_PAUSE_MS = 30_000
const LAST_PAUSE_MS = 900_000

/** A denied message is told to come again no sooner and no later. */
const SOONEST_MS = 250
const HORIZON_MS = 600_000

const FIRST_LIMIT = 2

/** At a quick destination so many messages, for each permit that it may ever have, wait for so long. */
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

/** What asks for a permit. */
export interface PermitRequest {
  is_urgent?: boolean | undefined
  project_id?: string | undefined
  /** What people call the destination, where that is not its key. */
  name?: string | undefined
}

/** The right to make one delivery to a destination now. It counts until it is released. */
export interface Permit {
  destination: string
  state: DestinationState
  request: PermitRequest
  /** Epoch milliseconds; undefined while the message is still prepared. */
  began: number | undefined
}

/** There is no permit now: why, and when to ask again. */
export interface PermitDenial {
  until: string
  reason: string
}

/**
 * What a delivery says about its destination. `late` counts only its duration, and `slow_down` has the
 * reason for a pause.
 */
export type DestinationFeedback = "fine" | "late" | "nothing" | { slow_down: string }

/** Many messages that were denied a permit at one destination, and the project of the last of them. */
export interface DeniedBacklog {
  destination: string
  project_id: string | undefined
}

export interface PerDestinationOptions {
  /** Permits of one destination at most. */
  per_destination: number
  /** Called when many messages were denied, with what spaces the next `count` of them. */
  onBacklog?: ((backlog: DeniedBacklog, defer: (count: number) => PermitDenial) => void) | undefined
  /** Of all destinations together. */
  concurrency: ConcurrencyLimit
}

/** Waits for a permit. With nothing it is denied. */
interface PermitWaiter {
  request: PermitRequest
  resolve(permit: Permit | undefined): void
}

interface DestinationState {
  running: Set<Permit>
  waiters: Set<PermitWaiter>
  limit: number
  /** It has taken a message since it is remembered. */
  is_proven: boolean
  average_ms: number
  /** The next time that no denied message has been told yet. */
  next_time: number
  paused_until: number
  slowed_at: number
  pause_ms: number
  calm: number
  /** Since the last backlog. */
  denied: number
  reason: string
}

interface Obstacle {
  reason: string
  /** Other destinations are in the way, and not this one. */
  is_shared: boolean
}

interface Denied {
  state: DestinationState
  request: PermitRequest
  obstacle: Obstacle
}

/**
 * The per-destination limit: how many deliveries one recipient domain, or one provider, gets at the
 * same time. A new destination begins with two permits and gains one with each success. One that asks
 * for less gets half and a pause, and earns the rest back slowly. Each denied message is told a time of
 * its own, spaced as fast as the destination has been, so that a long queue is not tried over and over.
 */
export class PerDestinationLimits {
  readonly #states = new Map<string, DestinationState>()
  /** Where a message waits for a permit. */
  readonly #awaited = new Map<string, DestinationState>()
  readonly #options: PerDestinationOptions

  constructor(options: PerDestinationOptions) {
    this.#options = options
  }

  /** Destinations that are remembered. */
  get size(): number {
    return this.#states.size
  }

  /** Gives a permit, which must be given back to `release`, or says when to come again. */
  tryAcquire(destination: string, request: PermitRequest = {}): Permit | PermitDenial {
    const state = this.#stateOf(destination)
    const obstacle = this.#obstacle(destination, state, request)
    if (obstacle) return this.#deny(destination, { state, request, obstacle })
    return this.#give(destination, state, request)
  }

  /** As `tryAcquire`, but where the destination is quick it waits up to a second for a permit. */
  async acquire(destination: string, request: PermitRequest = {}): Promise<Permit | PermitDenial> {
    const state = this.#stateOf(destination)
    const obstacle = this.#obstacle(destination, state, request)
    if (!obstacle || !this.#isWorthWaiting(state, obstacle)) {
      return this.tryAcquire(destination, request)
    }
    const { promise, resolve } = Promise.withResolvers<Permit | undefined>()
    const waiter = { request, resolve }
    state.waiters.add(waiter)
    this.#awaited.set(destination, state)
    const timer = setTimeout(resolve, WAIT_MS, undefined)
    const permit = await promise
    clearTimeout(timer)
    state.waiters.delete(waiter)
    if (state.waiters.size === 0) this.#awaited.delete(destination)
    return permit ?? this.tryAcquire(destination, request)
  }

  #isWorthWaiting(state: DestinationState, { is_shared }: Obstacle): boolean {
    if (isSlow(state) || state.paused_until > millis()) return false
    if (is_shared && this.#options.concurrency.hangs) return false
    return state.waiters.size < WAITERS_PER_PERMIT * this.#options.per_destination
  }

  release(permit: Permit, feedback: DestinationFeedback): void {
    const { destination, state, began = millis() } = permit
    state.running.delete(permit)
    this.#options.concurrency.remove(permit)
    if (feedback !== "nothing") this.#learn(state, began, feedback)
    this.#wakeNext(destination, state)
    // Those of other destinations may have waited for their share of all permits.
    for (const [other, awaited] of this.#awaited) this.#wakeNext(other, awaited)
  }

  #learn(
    state: DestinationState,
    began: number,
    feedback: Exclude<DestinationFeedback, "nothing">,
  ) {
    state.average_ms = 0.8 * state.average_ms + 0.2 * Math.max(1, millis() - began)
    if (feedback === "late") return
    if (feedback === "fine") this.#recover(state)
    // Those that had begun before the pause say the same once more.
    else if (began >= state.slowed_at) this.#slowDown(state, feedback.slow_down)
  }

  #wakeNext(destination: string, state: DestinationState) {
    for (const waiter of state.waiters) {
      const is_paused = state.paused_until > millis()
      if (!is_paused && this.#obstacle(destination, state, waiter.request)) return
      state.waiters.delete(waiter)
      waiter.resolve(is_paused ? undefined : this.#give(destination, state, waiter.request))
    }
  }

  #give(destination: string, state: DestinationState, request: PermitRequest): Permit {
    const permit: Permit = { destination, state, request, began: undefined }
    state.running.add(permit)
    this.#options.concurrency.add(permit)
    return permit
  }

  /** Why there is no permit now. */
  #obstacle(
    destination: string,
    state: DestinationState,
    request: PermitRequest,
  ): Obstacle | undefined {
    const { concurrency } = this.#options
    const { name = destination, is_urgent } = request
    const own = (reason: string) => ({ reason: `${name} ${reason}`, is_shared: false })
    if (state.paused_until > millis()) return own(`is paused: ${state.reason}`)
    const limit = Math.min(is_urgent ? 2 * state.limit : state.limit, concurrency.per_destination)
    if (state.running.size >= limit) return own(`takes at most ${limit} messages at a time`)
    if (!isDoubtful(state) || !concurrency.isShareUsed(request)) return undefined
    const why = isSlow(state) ? "is slow" : "has accepted no message yet"
    const reason = `${name} ${why}. Slow and new servers may use only a part of the delivery slots`
    return { reason, is_shared: true }
  }

  #slowDown(state: DestinationState, reason: string) {
    state.pause_ms = Math.min(LAST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * state.pause_ms))
    state.limit = Math.max(1, state.limit >> 1)
    state.calm = 0
    state.reason = reason
    state.slowed_at = millis() + 1
    state.paused_until = millis() + state.pause_ms
    state.next_time = state.paused_until
  }

  #recover(state: DestinationState) {
    state.is_proven = true
    if (state.limit >= this.#options.per_destination) return
    state.calm++
    if (state.pause_ms > 0 && state.calm < CALM_DELIVERIES) return
    state.calm = 0
    state.limit++
    if (state.limit >= this.#options.per_destination) state.pause_ms = 0
  }

  #deny(destination: string, denied: Denied): PermitDenial {
    const { state, request } = denied
    state.denied++
    if (state.denied >= BACKLOG) {
      state.denied = 0
      const backlog = { destination, project_id: request.project_id }
      this.#options.onBacklog?.(backlog, (count) => this.#later(denied, count))
    }
    return this.#later(denied)
  }

  #later({ state, obstacle }: Denied, count = 1): PermitDenial {
    const soonest = Math.max(millis() + SOONEST_MS, state.paused_until)
    const horizon = Math.max(state.paused_until, millis() + HORIZON_MS)
    const own = Math.min(Math.max(soonest, state.next_time), horizon)
    state.next_time = own + (count * paceOf(state)) / state.limit
    const { concurrency } = this.#options
    const until = obstacle.is_shared ? Math.max(own, concurrency.nextTime(count)) : own
    return { until: isoFrom(Math.ceil(until)), reason: obstacle.reason }
  }

  #stateOf(destination: string): DestinationState {
    const known = this.#states.get(destination)
    if (known) return known
    const state = newState(Math.min(FIRST_LIMIT, this.#options.per_destination))
    this.#states.set(destination, state)
    if (this.#states.size > MOST_DESTINATIONS) this.#forget()
    return state
  }

  /** The oldest half of those where nothing runs. They begin anew. */
  #forget() {
    for (const [destination, state] of this.#states) {
      if (this.#states.size <= MOST_DESTINATIONS / 2) return
      if (state.running.size === 0 && state.waiters.size === 0) this.#states.delete(destination)
    }
  }
}

export const isDenied = (answer: Permit | PermitDenial): answer is PermitDenial => "until" in answer

const newState = (limit: number): DestinationState => ({
  running: new Set(),
  waiters: new Set(),
  limit,
  is_proven: false,
  average_ms: FIRST_GUESS_MS,
  next_time: 0,
  paused_until: 0,
  slowed_at: 0,
  pause_ms: 0,
  calm: 0,
  denied: 0,
  reason: "",
})

/** Milliseconds that a delivery takes: as they did lately, or as long as one takes already. */
function paceOf({ average_ms, running }: DestinationState): number {
  let longest = average_ms
  const now = millis()
  for (const { began = now } of running) longest = Math.max(longest, now - began)
  return longest
}

const isSlow = (state: DestinationState): boolean => paceOf(state) > SLOW_MS

/** Slow, or not known to be anything else: it may hold its permits for minutes. */
const isDoubtful = (state: DestinationState): boolean => !state.is_proven || isSlow(state)

/** Of all permits: what doubtful destinations hold for one project, and at most at all. */
const HALF = 1 / 2
const MOST = 3 / 4

/** For so long after another project had mail, no destination gets every permit. */
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

  /** `concurrency`: deliveries at the same time. */
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

  /** How many permits one destination may hold. */
  get per_destination(): number {
    const is_shared = millis() - this.#changed_at < OTHERS_MS
    return is_shared ? this.#share(MOST) : Number.POSITIVE_INFINITY
  }

  /** Whether doubtful destinations hold as many as they may, for this project or for all. */
  isShareUsed({ project_id, is_urgent = false }: PermitRequest): boolean {
    let all = 0
    let own = 0
    const isOne = remembering(isDoubtful)
    for (const { state, request } of this.#permits) {
      if (!isOne(state)) continue
      all++
      if (request.project_id === project_id) own++
    }
    return all >= this.#share(MOST) || own >= this.#share(is_urgent ? MOST : HALF)
  }

  /** Slow destinations hold so much that waiting for one of their permits is of no use. */
  get hangs(): boolean {
    const isOne = remembering(isSlow)
    const slow = [...this.#permits].filter(({ state }) => isOne(state))
    return slow.length >= this.#share(HALF) / 2
  }

  /** When the next `count` denied messages may come again, in epoch milliseconds. */
  nextTime(count: number): number {
    const soonest = Math.max(millis() + SHARED_SOONEST_MS, this.#next_time)
    const until = Math.min(soonest, millis() + SHARED_HORIZON_MS)
    this.#next_time = until + count * SHARED_SPACING_MS
    return until
  }

  #share = (part: number) => Math.max(1, Math.floor(part * this.#concurrency))
}

/** Asks once for each destination, however many permits it has. */
function remembering(
  ask: (state: DestinationState) => boolean,
): (state: DestinationState) => boolean {
  const known = new Map<DestinationState, boolean>()
  return (state) => {
    const answer = known.get(state) ?? ask(state)
    known.set(state, answer)
    return answer
  }
}
