import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { millis, today } from "../core/time"
import { subscriberOf } from "../lib/ip-ranges"
import { Batcher } from "../store/batcher"
import type { Store } from "../store/store"
import { WriteBehind } from "../store/write-behind"
import { BURST_MS, countHits, isPrefetch, type MessageHits } from "./count-hits"

/** Hits wait so long: only then it is known whether they belong to a burst. */
const HOLD_MILLISECONDS = BURST_MS + 500

/** Messages and moments of one transaction together: other writers do not wait long for it. */
const AT_ONCE = 60

/** Different hits (message, link, visitor) that wait. What comes beyond that is answered, not counted. */
const MOST_WAITING = 20_000

/** Of each of these, so many moments are kept; further repetitions are only counted. */
const MOST_MOMENTS = 50

const MOST_USER_AGENT = 300
const VISITOR_BYTES = 8

interface TrackedRequest {
  type: "open" | "click"
  message_id: string
  url: string | null
  request: Request
  ip: string
}

/**
 * Hits of pixels and links. A request only leaves a note in memory; some seconds later the notes are
 * counted together. The address of a visitor is kept nowhere, only a hash of it that changes every day.
 */
export class Hits {
  readonly #secrets: Secrets
  readonly #behind: WriteBehind<MessageHits>

  constructor(options: { store: Store; secrets: Secrets; hasRoom: () => boolean }) {
    const { store, secrets, hasRoom } = options
    this.#secrets = secrets
    const batcher = new Batcher({ store, most: AT_ONCE, write: countHits })
    this.#behind = new WriteBehind({
      // Those of one message spoil no others.
      write: (list) => Promise.all(list.map((one) => this.#count(batcher, one))),
      ...{
        limit: AT_ONCE,
        costOf,
        most: MOST_WAITING,
        sizeOf,
        ripe_ms: HOLD_MILLISECONDS,
        hasRoom,
      },
      lost: "Some openings and clicks were not counted, because too many came at once or the storage refused them.",
    })
  }

  /** Notes a hit of a token that was ours. It never fails. */
  add({ type, message_id, url, request, ip }: TrackedRequest) {
    const agent = request.headers.get("user-agent")?.slice(0, MOST_USER_AGENT).toWellFormed()
    const user_agent = agent || null
    const visitor = this.#visitorOf(ip, user_agent)
    const is_prefetch = isPrefetch(request)
    const key = `${type}\n${visitor}\n${is_prefetch}\n${url}`
    const message = this.#behind.get(message_id)
    const known = message?.hits.get(key)
    if (known) {
      known.times += 1
      if (known.moments.length < MOST_MOMENTS) known.moments.push(millis())
    } else if (this.#behind.admit()) {
      const { hits } = message ?? this.#behind.put(message_id, { message_id, hits: new Map() })
      const moments = [millis()]
      hits.set(key, { type, url, visitor, user_agent, is_prefetch, times: 1, moments })
    }
  }

  #visitorOf(ip: string, user_agent: string | null): string {
    const text = `${today()}\n${subscriberOf(ip)}\n${user_agent ?? ""}`
    return this.#secrets.mac("tracking visitor", text).toString("base64url", 0, VISITOR_BYTES)
  }

  async #count(batcher: Batcher<MessageHits, undefined>, one: MessageHits) {
    try {
      await batcher.add(one)
    } catch (error) {
      this.#behind.lose(one.hits.size)
      log.debug("hits of a message were not counted", { message_id: one.message_id, error })
    }
  }

  /** Counts what has waited long enough. */
  writeRipe = (): Promise<void> => this.#behind.writeRipe()

  /** Resolves when everything noted so far is counted, or given up. */
  flush = (): Promise<void> => this.#behind.flush()
}

const sizeOf = ({ hits }: MessageHits) => hits.size

const costOf = ({ hits }: MessageHits) =>
  [...hits.values()].reduce((sum, { moments }) => sum + moments.length, 1)
