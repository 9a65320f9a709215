import { ApiError } from "../core/errors"
import { millis } from "../core/time"
import { subscriberOf } from "../lib/ip-ranges"
import type { SharedWindows } from "./shared-windows"
import { WINDOW_SECONDS, type Window, Windows } from "./windows"

/** What an unlimited plan is told, since a header needs a number. */
export const UNLIMITED = 1_000_000

/** For routes that anybody may ask: health, callbacks, files. */
export const PUBLIC_PER_MINUTE = 6000
const FAILED_CREDENTIALS_PER_MINUTE = 300

const REQUESTS = "requests"
const FAILED = "failed_credentials"

export interface Quota {
  limit: number
  remaining: number
  /** Epoch seconds at which the window ends. */
  reset: number
}

/**
 * Requests a minute: of callers and at entrances, shared by all nodes, and of addresses, in memory.
 * They are kept apart, so that a flood of addresses makes no caller's window begin anew.
 */
export class RateLimits {
  readonly #callers = new Windows()
  readonly #entries = new Windows()
  readonly #addresses = new Windows()
  readonly #shared: SharedWindows | undefined

  /** Without `shared` this node is the only one. */
  constructor(shared?: SharedWindows) {
    this.#shared = shared
  }

  /**
   * Counts one request. Throws 429 `rate_limit_exceeded` when the window is used up. A `scope` of
   * its own is a bucket beside the caller's window, which the headers go on telling of.
   */
  take(who: string, limit: number | null, scope = REQUESTS): Promise<Quota> {
    return this.#take(this.#callers, who, limit, scope)
  }

  /** One request to a route that asks for no credential but is worth guessing at. Throws as `take`. */
  takeEntry(ip: string, limit: number): Promise<Quota> {
    return this.#take(this.#entries, `entry:${subscriberOf(ip)}`, limit, REQUESTS)
  }

  async #take(windows: Windows, who: string, limit: number | null, scope: string): Promise<Quota> {
    const window = windows.of(who)
    if (limit === null) return quotaOf(window, UNLIMITED, UNLIMITED)
    for (;;) {
      if (window.used >= limit) throw exceeded(limit, window, scope)
      if (!this.#shared || window.used < window.leased) break
      const granted = await this.#shared.lease(who, window, limit)
      if (granted === 0) throw exceeded(limit, window, scope)
    }
    window.used += 1
    const elsewhere = Math.max(0, window.given - window.leased)
    return quotaOf(window, limit, Math.max(0, limit - elsewhere - window.used))
  }

  /** One request to a route that anybody may ask. Throws as `take`. */
  takePublic(ip: string): Quota {
    const window = this.#addresses.of(`public:${subscriberOf(ip)}`)
    if (window.used >= PUBLIC_PER_MINUTE) throw exceeded(PUBLIC_PER_MINUTE, window, REQUESTS)
    window.used += 1
    return quotaOf(window, PUBLIC_PER_MINUTE, PUBLIC_PER_MINUTE - window.used)
  }

  /** The window as it is, without counting. */
  peek(who: string, limit: number | null): Quota {
    const window = this.#callers.of(who)
    if (limit === null) return quotaOf(window, UNLIMITED, UNLIMITED)
    return quotaOf(window, limit, Math.max(0, limit - window.used))
  }

  /**
   * The window of a caller whom nothing identifies: counted, never refused here. It is not the one
   * of the public routes, or strangers at the same proxy would make the node look ill.
   */
  see(ip: string): Quota {
    const window = this.#addresses.of(`stranger:${subscriberOf(ip)}`)
    window.used += 1
    return quotaOf(window, PUBLIC_PER_MINUTE, Math.max(0, PUBLIC_PER_MINUTE - window.used))
  }

  /** Credentials that failed are counted by address. Throws 429 when there were too many. */
  countFailure(ip: string) {
    const window = this.#addresses.of(`failed:${subscriberOf(ip)}`)
    if (window.used >= FAILED_CREDENTIALS_PER_MINUTE) {
      throw exceeded(FAILED_CREDENTIALS_PER_MINUTE, window, FAILED)
    }
    window.used += 1
  }
}

const quotaOf = ({ ends }: Window, limit: number, remaining: number): Quota => ({
  limit,
  remaining,
  reset: seconds(ends),
})

export const quotaHeaders = ({ limit, remaining, reset }: Quota) => {
  const left = Math.max(0, reset - seconds(millis()))
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(reset),
    ratelimit: `"requests";r=${remaining};t=${left}`,
    "ratelimit-policy": `"requests";q=${limit};w=${WINDOW_SECONDS}`,
  }
}

function exceeded(limit: number, window: Window, scope: string) {
  const retry_after = Math.max(1, Math.ceil((window.ends - millis()) / 1000))
  const details = { retry_after, limit, window_seconds: WINDOW_SECONDS, scope }
  const headers = {
    "retry-after": String(retry_after),
    ...(scope === REQUESTS || scope === FAILED ? quotaHeaders(quotaOf(window, limit, 0)) : {}),
  }
  const message = `The limit is ${limit} requests a minute. Try again in ${retry_after} s.`
  return new ApiError("rate_limit_exceeded", message, details, { headers })
}

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000)
