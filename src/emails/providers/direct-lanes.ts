import { isoFrom, millis } from "../../core/time"
import type { Hold } from "../../store/holding"

/** After the first sign of trouble; it doubles up to the last with each further one. */
const FIRST_PAUSE_MS = 30_000
const LAST_PAUSE_MS = 900_000

/** Nobody comes back sooner, or is told to come later. */
const SOONEST_MS = 250
const HORIZON_MS = 600_000

/** A delivery that takes longer makes its domain a slow one. */
const SLOW_MS = 1_000
const FIRST_GUESS_MS = 50

const FIRST_LIMIT = 2

/** At a quick domain so many, for each that may ever be let in, stand in line for so long. */
const LINE = 2
const LINE_MS = 1_000

/** So many that found no room since the last time are a crowd, to be sent away together. */
const CROWD = 100

/** So many deliveries without trouble raise the limit of a domain that had some. */
const PATIENCE = 10

const MOST_LANES = 10_000

/** What a delivery says about the domain, beside what it says about the message. */
export type Report = "fine" | "nothing" | { trouble: string }

/** Taken in a lane. */
export interface Place {
  domain: string
  /** Epoch milliseconds; undefined while the message is still made ready. */
  began: number | undefined
}

interface Lane {
  running: Set<Place>
  /** Who waits for a place to become free: with nothing he is told to come later. */
  line: Set<(place: Place | undefined) => void>
  limit: number
  average_ms: number
  /** The next time that nobody waits for yet. */
  next_turn: number
  paused_until: number
  slowed_at: number
  pause_ms: number
  calm: number
  /** Sent away since the last crowd. */
  sent_away: number
  reason: string
}

export interface LaneOptions {
  /** Deliveries at once to one domain. */
  per_domain: number
  /** Called when many found no room, with what gives the next ones their times together. */
  onCrowd?:
    | ((domain: string, turn: (count: number) => Hold & { until: string }) => void)
    | undefined
  /** Deliveries at once in all, of which slow domains together get half. */
  concurrency: number
}

/**
 * How much each domain is given at once. A new domain begins with two at a time and gains one with
 * each success; one that asks for less gets half and a pause, and earns it back slowly. Who finds no
 * room is given a time of his own, spaced as fast as the domain has been, so that a long queue is not
 * looked at over and over.
 */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  readonly #options: LaneOptions

  constructor(options: LaneOptions) {
    this.#options = options
  }

  /** Domains that are remembered. */
  get size(): number {
    return this.#lanes.size
  }

  /** Takes a place, to be given back to `leave`, or tells when to come again. */
  enter(domain: string, is_urgent = false): Place | Hold {
    const lane = this.#lane(domain)
    const obstacle = this.#obstacle(domain, lane, is_urgent)
    return obstacle === undefined ? take(domain, lane) : this.#sendAway(domain, lane, obstacle)
  }

  /** As `enter`, but where the domain is quick it waits a second in a short line for a place. */
  async enterInLine(domain: string, is_urgent: boolean): Promise<Place | Hold> {
    const lane = this.#lane(domain)
    const obstacle = this.#obstacle(domain, lane, is_urgent)
    const is_short =
      lane.line.size < LINE * this.#options.per_domain && lane.paused_until <= millis()
    if (obstacle === undefined || !is_short || isSlow(lane)) return this.enter(domain, is_urgent)
    const { promise, resolve } = Promise.withResolvers<Place | undefined>()
    lane.line.add(resolve)
    const timer = setTimeout(resolve, LINE_MS, undefined)
    const place = await promise
    clearTimeout(timer)
    lane.line.delete(resolve)
    const reason = this.#obstacle(domain, lane, is_urgent) ?? obstacle
    return place ?? this.#sendAway(domain, lane, reason)
  }

  leave(place: Place, report: Report): void {
    const { domain, began = millis() } = place
    const lane = this.#lane(domain)
    lane.running.delete(place)
    if (report !== "nothing") this.#learn(lane, began, report)
    this.#callNext(domain, lane)
  }

  #learn(lane: Lane, began: number, report: Exclude<Report, "nothing">) {
    lane.average_ms = 0.8 * lane.average_ms + 0.2 * Math.max(1, millis() - began)
    if (report === "fine") this.#recover(lane)
    // Those that had begun before the pause tell the same trouble once more.
    else if (began >= lane.slowed_at) this.#slow(lane, report.trouble)
  }

  #callNext(domain: string, lane: Lane) {
    for (const call of lane.line) {
      const is_paused = lane.paused_until > millis()
      if (!is_paused && this.#obstacle(domain, lane, false) !== undefined) return
      lane.line.delete(call)
      call(is_paused ? undefined : take(domain, lane))
    }
  }

  /** Why nobody may enter now. */
  #obstacle(domain: string, lane: Lane, is_urgent: boolean): string | undefined {
    if (lane.paused_until > millis()) return `${domain} is paused: ${lane.reason}`
    const room = is_urgent ? 2 * lane.limit : lane.limit
    if (lane.running.size >= room) return `${domain} is given ${lane.limit} messages at a time`
    const is_crowd = isSlow(lane) && this.#slowRunning() >= this.#options.concurrency / 2
    if (is_urgent || !is_crowd) return undefined
    return `${domain} is slow, and slow domains may not take every place`
  }

  #slow(lane: Lane, reason: string) {
    lane.pause_ms = Math.min(LAST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * lane.pause_ms))
    lane.limit = Math.max(1, lane.limit >> 1)
    lane.calm = 0
    lane.reason = reason
    lane.slowed_at = millis() + 1
    lane.paused_until = millis() + lane.pause_ms
    lane.next_turn = lane.paused_until
  }

  #recover(lane: Lane) {
    if (lane.limit >= this.#options.per_domain) return
    lane.calm++
    if (lane.pause_ms > 0 && lane.calm < PATIENCE) return
    lane.calm = 0
    lane.limit++
    if (lane.limit >= this.#options.per_domain) lane.pause_ms = 0
  }

  #sendAway(domain: string, lane: Lane, reason: string): Hold {
    lane.sent_away++
    if (lane.sent_away >= CROWD) {
      lane.sent_away = 0
      this.#options.onCrowd?.(domain, (count) => this.#later(lane, reason, count))
    }
    return this.#later(lane, reason)
  }

  #later(lane: Lane, reason: string, count = 1): Hold & { until: string } {
    const soonest = Math.max(millis() + SOONEST_MS, lane.paused_until)
    const horizon = Math.max(lane.paused_until, millis() + HORIZON_MS)
    const until = Math.min(Math.max(soonest, lane.next_turn), horizon)
    lane.next_turn = until + (count * lane.average_ms) / lane.limit
    return { until: isoFrom(Math.ceil(until)), reason }
  }

  #slowRunning(): number {
    let count = 0
    for (const lane of this.#lanes.values()) if (isSlow(lane)) count += lane.running.size
    return count
  }

  #lane(domain: string): Lane {
    const known = this.#lanes.get(domain)
    if (known) return known
    const lane: Lane = {
      running: new Set(),
      line: new Set(),
      limit: Math.min(FIRST_LIMIT, this.#options.per_domain),
      average_ms: FIRST_GUESS_MS,
      next_turn: 0,
      paused_until: 0,
      slowed_at: 0,
      pause_ms: 0,
      calm: 0,
      sent_away: 0,
      reason: "",
    }
    this.#lanes.set(domain, lane)
    if (this.#lanes.size > MOST_LANES) this.#forget()
    return lane
  }

  /** The oldest half of those where nothing runs: they begin anew. */
  #forget() {
    for (const [domain, lane] of this.#lanes) {
      if (this.#lanes.size <= MOST_LANES / 2) return
      if (lane.running.size === 0 && lane.line.size === 0) this.#lanes.delete(domain)
    }
  }
}

function take(domain: string, lane: Lane): Place {
  const place: Place = { domain, began: undefined }
  lane.running.add(place)
  return place
}

function isSlow({ average_ms, running }: Lane): boolean {
  if (average_ms > SLOW_MS) return true
  for (const { began } of running)
    if (began !== undefined && millis() - began > SLOW_MS) return true
  return false
}

export const isHold = (entered: Place | Hold): entered is Hold => "until" in entered
