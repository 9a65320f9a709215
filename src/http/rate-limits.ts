import { and, eq, lt } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { isoFrom, millis } from "../core/time"
import { subscriberOf } from "../lib/ip-ranges"
import { forUpdate } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { rateWindows } from "./tables"

/** Begins the names of windows of which each address has one of its own. */
export const BY_ADDRESS = "address:"

/** What an unlimited plan is told, since a header needs a number. */
export const UNLIMITED = 1_000_000

/** For routes without a credential: health, callbacks, files. */
const PUBLIC_PER_MINUTE = 6000
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
  readonly #callers = new RateWindows()
  readonly #entries = new RateWindows()
  readonly #addresses = new RateWindows()
  readonly #shared: Store | undefined

  /** With the database of several nodes each leases a part of a limit. Without one this node is alone. */
  constructor(shared?: Store) {
    this.#shared = shared
  }

  /**
   * Counts one request. Throws 429 `rate_limit_exceeded` when the window is used up. A `scope` of
   * its own is a bucket beside the caller's window, which the headers go on telling of.
   */
  take(name: string, limit: number | null, scope = REQUESTS): Quota | Promise<Quota> {
    return this.#take(this.#windowsOf(name), name, limit, scope)
  }

  /** One request to a route that asks for no credential but is worth guessing at. Throws as `take`. */
  async takeEntry(ip: string, limit: number): Promise<Quota> {
    return this.#take(this.#entries, `entry:${subscriberOf(ip)}`, limit, REQUESTS)
  }

  #take(
    windows: RateWindows,
    name: string,
    limit: number | null,
    scope: string,
  ): Quota | Promise<Quota> {
    const window = windows.of(name)
    if (limit === null) return quotaOf(window, limit)
    if (!this.#shared) return counted(window, limit, scope)
    return this.#takeShared(this.#shared, window, { name, limit, scope })
  }

  async #takeShared(
    shared: Store,
    window: RateWindow,
    { name, limit, scope }: { name: string; limit: number; scope: string },
  ): Promise<Quota> {
    while (window.used < limit && window.used >= window.leased) {
      window.leasing ??= lease(shared, name, window, limit).finally(() => {
        window.leasing = undefined
      })
      if ((await window.leasing) === 0) throw exceeded(limit, window, scope)
    }
    return counted(window, limit, scope)
  }

  /**
   * One request to a route without a credential. Each route has a window of its own, so that the pixels
   * that a proxy loads never close unsubscribe links, callbacks or health checks to it. Throws as `take`.
   */
  takePublic(ip: string, route: string): Quota {
    const window = this.#addresses.of(`public:${route} ${subscriberOf(ip)}`)
    countIn(window, PUBLIC_PER_MINUTE, REQUESTS)
    return quotaOf(window, PUBLIC_PER_MINUTE)
  }

  /** The window as it is, without counting. */
  peek(name: string, limit: number | null): Quota {
    return quotaOf(this.#windowsOf(name).of(name), limit)
  }

  #windowsOf(name: string): RateWindows {
    return name.startsWith(BY_ADDRESS) ? this.#entries : this.#callers
  }

  /**
   * The window of a caller without a valid credential: counted, never refused here. It is not the
   * window of the public routes, or such callers behind one proxy would make health checks fail.
   */
  see(ip: string): Quota {
    const window = this.#addresses.of(`anonymous:${subscriberOf(ip)}`)
    window.used += 1
    return quotaOf(window, PUBLIC_PER_MINUTE)
  }

  /** Credentials that failed are counted by address. Throws 429 when there were too many. */
  countFailure(ip: string) {
    const window = this.#addresses.of(`failed:${subscriberOf(ip)}`)
    countIn(window, FAILED_CREDENTIALS_PER_MINUTE, FAILED)
  }
}

function counted(window: RateWindow, limit: number, scope: string): Quota {
  countIn(window, limit, scope)
  return quotaOf(window, limit, Math.max(0, window.given - window.leased))
}

function countIn(window: RateWindow, limit: number, scope: string) {
  if (window.used >= limit) throw exceeded(limit, window, scope)
  window.used += 1
}

/** `elsewhere` is what other nodes may use. */
function quotaOf({ ends, used }: RateWindow, limit: number | null, elsewhere = 0): Quota {
  const reset = seconds(ends)
  if (limit === null) return { limit: UNLIMITED, remaining: UNLIMITED, reset }
  return { limit, remaining: Math.max(0, limit - elsewhere - used), reset }
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

function exceeded(limit: number, window: RateWindow, scope: string) {
  const retry_after = Math.max(1, Math.ceil((window.ends - millis()) / 1000))
  const details = { retry_after, limit, window_seconds: WINDOW_SECONDS, scope }
  const headers =
    scope === REQUESTS || scope === FAILED
      ? quotaHeaders({ limit, remaining: 0, reset: seconds(window.ends) })
      : {}
  const message = `The limit is ${limit} requests a minute. Try again in ${retry_after} s.`
  return new ApiError("rate_limit_exceeded", message, details, { headers })
}

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000)

/** A tenth above the limit may be given out, because idle nodes do not use their part. */
const SPARE = 10

/** The part of the rest that one node takes at a time: large at first, single at the end. */
const PART = 4

const KEPT_MILLISECONDS = 120_000

/**
 * How many more requests this node may let in; 0 when the window is used up. Each node counts what it leased in
 * its own memory. Together they never pass the limit by more than a tenth.
 */
async function lease(store: Store, name: string, window: RateWindow, limit: number) {
  const ceiling = limit + Math.floor(limit / SPARE)
  try {
    const ends = isoFrom(window.ends)
    const { granted, given } = await store.tx((tx) => take(tx, { name, ends, ceiling }))
    window.leased += granted
    window.given = given
    return granted
  } catch (error) {
    log.debug("the shared request counter of all nodes could not be updated", { error })
    window.leased += 1 // the request itself will tell what is wrong with the storage
    return 1
  }
}

async function take(
  tx: Tx,
  { name, ends, ceiling }: { name: string; ends: string; ceiling: number },
) {
  const mine = and(eq(rateWindows.name, name), eq(rateWindows.ends, ends))
  await tx.insert(rateWindows).values({ name, ends, given: 0 }).onConflictDoNothing()
  const [row] = await forUpdate(tx.select().from(rateWindows).where(mine))
  const rest = Math.max(0, ceiling - (row?.given ?? 0))
  const granted = Math.min(rest, Math.max(1, Math.floor(rest / PART)))
  const given = (row?.given ?? 0) + granted
  if (granted > 0) await tx.update(rateWindows).set({ given }).where(mine)
  return { granted, given }
}

/** Forgets the windows that are over. */
export const purgeWindows = (store: Store) =>
  store.tx((tx) =>
    tx.delete(rateWindows).where(lt(rateWindows.ends, isoFrom(millis() - KEPT_MILLISECONDS))),
  )

const WINDOW_SECONDS = 60
const WINDOW_MILLISECONDS = WINDOW_SECONDS * 1000
const MOST_WINDOWS = 100_000

interface RateWindow {
  /** Epoch milliseconds. */
  ends: number
  /** By this node. */
  used: number
  /** What this node may use, where several nodes share a limit. */
  leased: number
  /** What all nodes were given, as far as this one knows. */
  given: number
  leasing?: Promise<number> | undefined
}

/** Fixed windows of the clock (default: 60 s), one a name, in the memory of this node. */
export class RateWindows {
  readonly #windows = new Map<string, RateWindow>()
  readonly #milliseconds: number

  constructor(milliseconds = WINDOW_MILLISECONDS) {
    this.#milliseconds = milliseconds
  }

  /**
   * The current window. After a small step back of the clock it is the same window, so that its
   * requests are not granted twice. After a large step a new one begins, so that no caller waits long.
   */
  of(name: string): RateWindow {
    const now = millis()
    const known = this.#windows.get(name)
    const length = this.#milliseconds
    if (known && now < known.ends && now >= known.ends - 2 * length) return known
    if (this.#windows.size >= MOST_WINDOWS) this.#forgetOld(now)
    const ends = (Math.floor(now / length) + 1) * length
    const fresh = { ends, used: 0, leased: 0, given: 0 }
    this.#windows.set(name, fresh)
    return fresh
  }

  /** Windows that are over first; under a flood of addresses, all: memory is bounded. */
  #forgetOld(now: number) {
    for (const [name, { ends }] of this.#windows) if (ends <= now) this.#windows.delete(name)
    if (this.#windows.size >= MOST_WINDOWS) this.#windows.clear()
  }
}
