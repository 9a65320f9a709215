import { ApiError } from "../core/errors"
import { millis } from "../core/time"

const WINDOW_SECONDS = 60
const WINDOW_MILLISECONDS = WINDOW_SECONDS * 1000
const MOST_WINDOWS = 100_000

/** What an unlimited plan is told, since a header needs a number. */
export const UNLIMITED = 1_000_000

/** For routes that anybody may ask: health, callbacks, files. */
export const PUBLIC_PER_MINUTE = 6000
const FAILED_CREDENTIALS_PER_MINUTE = 300

export interface Quota {
  limit: number
  remaining: number
  /** Epoch seconds at which the window ends. */
  reset: number
}

interface Window {
  ends: number
  used: number
}

/** Fixed windows of 60 s, one a credential, in the memory of this node. */
export class RateLimits {
  readonly #windows = new Map<string, Window>()

  /** Counts one request. Throws 429 `rate_limit_exceeded` when the window is used up. */
  take(who: string, limit: number): Quota {
    const window = this.#window(who)
    if (limit === UNLIMITED) return { limit, remaining: limit, reset: seconds(window.ends) }
    if (window.used >= limit) throw exceeded(limit, window, "requests")
    window.used += 1
    return { limit, remaining: limit - window.used, reset: seconds(window.ends) }
  }

  /** The window as it is, without counting. */
  peek(who: string, limit: number): Quota {
    const { used, ends } = this.#window(who)
    const remaining = limit === UNLIMITED ? limit : Math.max(0, limit - used)
    return { limit, remaining, reset: seconds(ends) }
  }

  /**
   * The window of a caller whom nothing identifies: counted, never refused here. It is not the one
   * of the public routes, or strangers at the same proxy would make the node look ill.
   */
  see(ip: string): Quota {
    const window = this.#window(`stranger:${ip}`)
    window.used += 1
    const remaining = Math.max(0, PUBLIC_PER_MINUTE - window.used)
    return { limit: PUBLIC_PER_MINUTE, remaining, reset: seconds(window.ends) }
  }

  /** Credentials that failed are counted by address. Throws 429 when there were too many. */
  countFailure(ip: string) {
    const window = this.#window(`failed:${ip}`)
    if (window.used >= FAILED_CREDENTIALS_PER_MINUTE) {
      throw exceeded(FAILED_CREDENTIALS_PER_MINUTE, window, "failed_credentials")
    }
    window.used += 1
  }

  #window(who: string): Window {
    const now = millis()
    const known = this.#windows.get(who)
    if (known && now < known.ends && now >= known.ends - WINDOW_MILLISECONDS) return known
    if (this.#windows.size >= MOST_WINDOWS) this.#forgetOld(now)
    const ends = (Math.floor(now / WINDOW_MILLISECONDS) + 1) * WINDOW_MILLISECONDS
    const fresh = { ends, used: 0 }
    this.#windows.set(who, fresh)
    return fresh
  }

  /** Windows that are over first; under a flood of addresses, all: memory is bounded. */
  #forgetOld(now: number) {
    for (const [who, { ends }] of this.#windows) if (ends <= now) this.#windows.delete(who)
    if (this.#windows.size >= MOST_WINDOWS) this.#windows.clear()
  }
}

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

function exceeded(limit: number, { ends }: Window, scope: string) {
  const retry_after = Math.max(1, Math.ceil((ends - millis()) / 1000))
  const details = { retry_after, limit, window_seconds: WINDOW_SECONDS, scope }
  const headers = {
    "retry-after": String(retry_after),
    ...quotaHeaders({ limit, remaining: 0, reset: seconds(ends) }),
  }
  const message = `More than ${limit} requests a minute. Try again in ${retry_after} s.`
  return new ApiError("rate_limit_exceeded", message, details, { headers })
}

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000)
