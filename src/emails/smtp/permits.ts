import { isoFrom, millis } from "../../core/time"
import type { Hold } from "../../jobs/holds"
import {
  isDoubtful,
  isSlow,
  type Lane,
  newLane,
  type Place,
  paceOf,
  type Wish,
} from "../providers/lane"
import type { Places } from "../providers/places"

export type { Place } from "../providers/lane"

/** After the first sign of trouble; it doubles up to the last with each further one. */
const FIRST_PAUSE_MS = 30_000
const LAST_PAUSE_MS = 900_000

/** Nobody comes back sooner, or is told to come later. */
const SOONEST_MS = 250
const HORIZON_MS = 600_000

const FIRST_LIMIT = 2

/** At a quick domain so many, for each that may ever be let in, stand in line for so long. */
const LINE = 2
const LINE_MS = 1_000

/** So many that found no room since the last time are a crowd, to be sent away together. */
const CROWD = 100

/** So many deliveries without trouble raise the limit of a domain that had some. */
const PATIENCE = 10

const MOST_LANES = 10_000

/** What a delivery says about the domain, beside what it says about the message: `late`, how long it took. */
export type Report = "fine" | "late" | "nothing" | { trouble: string }

export interface LaneOptions {
  /** Deliveries at once to one domain. */
  per_domain: number
  /** Called when many found no room, with what gives the next ones their times together. */
  onCrowd?: ((crowd: Crowd, turn: (count: number) => Hold & { until: string }) => void) | undefined
  /** Of all lanes together: who is slow, or not known yet, may not take every one. */
  places: Places
}

/** Those who found no room at one domain, and the project of the last of them. */
export interface Crowd {
  domain: string
  project_id: string | undefined
}

interface SentAway {
  lane: Lane
  wish: Wish
  obstacle: Obstacle
}

interface Obstacle {
  reason: string
  /** Others are in the way, and not the domain itself. */
  is_crowd: boolean
}

/**
 * How much each domain is given at once. A new domain begins with two at a time and gains one with
 * each success; one that asks for less gets half and a pause, and earns it back slowly. Who finds no
 * room is given a time of his own, spaced as fast as the domain has been, so that a long queue is not
 * looked at over and over.
 */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  /** Where somebody stands in line. */
  readonly #lined = new Map<string, Lane>()
  readonly #options: LaneOptions

  constructor(options: LaneOptions) {
    this.#options = options
  }

  /** Domains that are remembered. */
  get size(): number {
    return this.#lanes.size
  }

  /** Takes a place, to be given back to `leave`, or tells when to come again. */
  enter(domain: string, wish: Wish = {}): Place | Hold {
    const lane = this.#lane(domain)
    const obstacle = this.#obstacle(domain, lane, wish)
    if (obstacle) return this.#sendAway(domain, { lane, wish, obstacle })
    return this.#take(domain, lane, wish)
  }

  /** As `enter`, but where the domain is quick it waits a second in a short line for a place. */
  async enterInLine(domain: string, wish: Wish = {}): Promise<Place | Hold> {
    const lane = this.#lane(domain)
    const obstacle = this.#obstacle(domain, lane, wish)
    if (!obstacle || !this.#isWorthWaiting(lane, obstacle)) return this.enter(domain, wish)
    const { promise, resolve } = Promise.withResolvers<Place | undefined>()
    const waiter = { wish, call: resolve }
    lane.line.add(waiter)
    this.#lined.set(domain, lane)
    const timer = setTimeout(resolve, LINE_MS, undefined)
    const place = await promise
    clearTimeout(timer)
    lane.line.delete(waiter)
    if (lane.line.size === 0) this.#lined.delete(domain)
    return place ?? this.enter(domain, wish)
  }

  #isWorthWaiting(lane: Lane, { is_crowd }: Obstacle): boolean {
    if (isSlow(lane) || lane.paused_until > millis()) return false
    if (is_crowd && this.#options.places.is_stuck) return false
    return lane.line.size < LINE * this.#options.per_domain
  }

  leave(place: Place, report: Report): void {
    const { domain, began = millis() } = place
    const { lane } = place
    lane.running.delete(place)
    this.#options.places.leave(place)
    if (report !== "nothing") this.#learn(lane, began, report)
    this.#callNext(domain, lane)
    // Those of other domains may have waited for a smaller crowd.
    for (const [other, lined] of this.#lined) this.#callNext(other, lined)
  }

  #learn(lane: Lane, began: number, report: Exclude<Report, "nothing">) {
    lane.average_ms = 0.8 * lane.average_ms + 0.2 * Math.max(1, millis() - began)
    if (report === "late") return
    if (report === "fine") this.#recover(lane)
    // Those that had begun before the pause tell the same trouble once more.
    else if (began >= lane.slowed_at) this.#slow(lane, report.trouble)
  }

  #callNext(domain: string, lane: Lane) {
    for (const waiter of lane.line) {
      const is_paused = lane.paused_until > millis()
      if (!is_paused && this.#obstacle(domain, lane, waiter.wish)) return
      lane.line.delete(waiter)
      waiter.call(is_paused ? undefined : this.#take(domain, lane, waiter.wish))
    }
  }

  #take(domain: string, lane: Lane, wish: Wish): Place {
    const place: Place = { domain, lane, wish, began: undefined }
    lane.running.add(place)
    this.#options.places.take(place)
    return place
  }

  /** Why nobody may enter now. */
  #obstacle(domain: string, lane: Lane, wish: Wish): Obstacle | undefined {
    const { places } = this.#options
    const { name = domain, is_urgent } = wish
    const own = (reason: string) => ({ reason: `${name} ${reason}`, is_crowd: false })
    if (lane.paused_until > millis()) return own(`is paused: ${lane.reason}`)
    const limit = Math.min(is_urgent ? 2 * lane.limit : lane.limit, places.limit)
    if (lane.running.size >= limit) return own(`takes at most ${limit} messages at a time`)
    if (!isDoubtful(lane) || !places.isCrowded(wish)) return undefined
    const why = isSlow(lane) ? "is slow" : "has accepted no message yet"
    const reason = `${name} ${why}. Slow and new servers may use only a part of the delivery slots`
    return { reason, is_crowd: true }
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
    lane.is_proven = true
    if (lane.limit >= this.#options.per_domain) return
    lane.calm++
    if (lane.pause_ms > 0 && lane.calm < PATIENCE) return
    lane.calm = 0
    lane.limit++
    if (lane.limit >= this.#options.per_domain) lane.pause_ms = 0
  }

  #sendAway(domain: string, away: SentAway): Hold {
    const { lane, wish } = away
    lane.sent_away++
    if (lane.sent_away >= CROWD) {
      lane.sent_away = 0
      const crowd = { domain, project_id: wish.project_id }
      this.#options.onCrowd?.(crowd, (count) => this.#later(away, count))
    }
    return this.#later(away)
  }

  #later({ lane, obstacle }: SentAway, count = 1): Hold & { until: string } {
    const soonest = Math.max(millis() + SOONEST_MS, lane.paused_until)
    const horizon = Math.max(lane.paused_until, millis() + HORIZON_MS)
    const own = Math.min(Math.max(soonest, lane.next_turn), horizon)
    lane.next_turn = own + (count * paceOf(lane)) / lane.limit
    const until = obstacle.is_crowd ? Math.max(own, this.#options.places.turn(count)) : own
    return { until: isoFrom(Math.ceil(until)), reason: obstacle.reason }
  }

  #lane(domain: string): Lane {
    const known = this.#lanes.get(domain)
    if (known) return known
    const lane = newLane(Math.min(FIRST_LIMIT, this.#options.per_domain))
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

export const isHold = (entered: Place | Hold): entered is Hold => "until" in entered
