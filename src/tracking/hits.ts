import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { millis, monotonic, nextTurn, sleep, today } from "../core/time"
import { subscriberOf } from "../lib/ip-ranges"
import { Batcher } from "../store/batcher"
import type { Store } from "../store/store"
import { BURST_MS, isPrefetch } from "./actor"
import { countHits, type MessageHits } from "./count-hits"

/** Hits wait so long: only then it is known whether they belong to a burst. */
const HOLD_MILLISECONDS = BURST_MS + 500

/** Messages and moments of one transaction: other writers do not wait long for it. */
const AT_ONCE = 25
const MOMENTS_AT_ONCE = 60

/** Counting rests this many times as long as it worked, so that a flood leaves most of the time to others. */
const REST = 3
const MOST_REST_MS = 200

/** Different hits (message, link, visitor) that wait. What comes beyond that is answered, not counted. */
const MOST_WAITING = 20_000

/** Of each of these, so many moments are kept; further repetitions are only counted. */
const MOST_MOMENTS = 50

const MOST_USER_AGENT = 300
const WARN_MILLISECONDS = 60_000
const VISITOR_BYTES = 8

/** What a request for a pixel or link was about. */
export interface TrackedRequest {
  type: "open" | "click"
  message_id: string
  url: string | null
  request: Request
  ip: string
}

interface HitsOptions {
  store: Store
  secrets: Secrets
  /** Whether the disk has room for what is not essential. */
  hasRoom: () => boolean
}

interface WaitingMessage {
  noted: number
  hits: MessageHits["hits"]
}

/**
 * Hits of pixels and links. A request only leaves a note in memory; some seconds later the notes are
 * counted together. What the storage cannot take is dropped: no request waits for it, and none fails.
 * The address of a visitor is kept nowhere, only a hash of it that changes every day.
 */
export class Hits {
  readonly #options: HitsOptions
  readonly #batcher: Batcher<MessageHits, undefined>
  #waiting = new Map<string, WaitingMessage>()
  #size = 0
  #dropped = 0
  #warned_at = Number.NEGATIVE_INFINITY
  #writing: Promise<void> | undefined
  /** Somebody waits until everything is counted. */
  #is_ending = false

  constructor(options: HitsOptions) {
    this.#options = options
    this.#batcher = new Batcher({ store: options.store, most: AT_ONCE, write: countHits })
  }

  /** Notes a hit of a token that was ours. It never fails. */
  add({ type, message_id, url, request, ip }: TrackedRequest) {
    const agent = request.headers.get("user-agent")?.slice(0, MOST_USER_AGENT).toWellFormed()
    const user_agent = agent || null
    const visitor = this.#visitorOf(ip, user_agent)
    const is_prefetch = isPrefetch(request)
    const message = this.#messageOf(message_id)
    const key = `${type}\n${visitor}\n${is_prefetch}\n${url}`
    const known = message?.hits.get(key)
    if (known) {
      known.times += 1
      if (known.moments.length < MOST_MOMENTS) known.moments.push(millis())
    } else if (!message || this.#size >= MOST_WAITING) this.#dropped += 1
    else {
      this.#size += 1
      const moments = [millis()]
      message.hits.set(key, { type, url, visitor, user_agent, is_prefetch, times: 1, moments })
    }
  }

  #messageOf(message_id: string): WaitingMessage | undefined {
    const known = this.#waiting.get(message_id)
    if (known || this.#size >= MOST_WAITING) return known
    const fresh: WaitingMessage = { noted: monotonic(), hits: new Map() }
    this.#waiting.set(message_id, fresh)
    return fresh
  }

  #visitorOf(ip: string, user_agent: string | null): string {
    const text = `${today()}\n${subscriberOf(ip)}\n${user_agent ?? ""}`
    return this.#options.secrets
      .mac("tracking visitor", text)
      .toString("base64url", 0, VISITOR_BYTES)
  }

  /** Counts what has waited long enough. */
  flushRipe = (): Promise<void> => this.#flush(HOLD_MILLISECONDS)

  /** Resolves when everything noted so far is counted, or given up. */
  async flush(): Promise<void> {
    this.#is_ending = true
    while (this.#writing) await this.#writing // it began before the last of these were noted
    await this.#flush(0)
    this.#is_ending = false
  }

  #flush(age_ms: number): Promise<void> {
    this.#writing ??= this.#write(age_ms).finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #write(age_ms: number) {
    const due = this.#take(age_ms)
    for (const some of portions(due)) {
      const begun = monotonic()
      if (!this.#options.hasRoom()) this.#dropped += sizeOf(some)
      else await Promise.all(some.map((one) => this.#count(one)))
      const worked = monotonic() - begun
      if (this.#is_ending) await nextTurn()
      else await sleep(Math.min(REST * worked, MOST_REST_MS))
    }
    this.#warn()
  }

  #take(age_ms: number): MessageHits[] {
    const before = monotonic() - age_ms
    const due: MessageHits[] = []
    for (const [message_id, { noted, hits }] of this.#waiting) {
      if (noted > before) break // the oldest come first
      this.#waiting.delete(message_id)
      this.#size -= hits.size
      due.push({ message_id, hits })
    }
    return due
  }

  async #count(one: MessageHits) {
    try {
      await this.#batcher.add(one)
    } catch (error) {
      this.#dropped += one.hits.size
      log.debug("hits of a message were not counted", { message_id: one.message_id, error })
    }
  }

  #warn() {
    if (this.#dropped === 0 || monotonic() - this.#warned_at < WARN_MILLISECONDS) return
    const text =
      "Some openings and clicks were not counted, because too many came at once or the storage refused them."
    log.warn(text, { dropped: this.#dropped })
    this.#warned_at = monotonic()
    this.#dropped = 0
  }
}

/** Parts of the list that are written in one transaction each. */
function* portions(list: MessageHits[]): Generator<MessageHits[]> {
  let some: MessageHits[] = []
  let moments = 0
  for (const one of list) {
    some.push(one)
    for (const hit of one.hits.values()) moments += hit.moments.length
    if (some.length < AT_ONCE && moments < MOMENTS_AT_ONCE) continue
    yield some
    some = []
    moments = 0
  }
  if (some.length > 0) yield some
}

const sizeOf = (list: MessageHits[]) => list.reduce((sum, { hits }) => sum + hits.size, 0)
