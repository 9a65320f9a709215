import { monotonic } from "../core/time"
import { subscriberOf } from "../lib/ip-ranges"

const MINUTE = 60_000
/** A flood of more addresses within a minute makes the oldest ones forgotten. */
const MOST_REMEMBERED = 50_000
interface ClientLimitOptions {
  per_address: number
  per_minute?: number | undefined
}

/** How many connections each client has, and how many it opened within a minute. */
export class ClientLimits {
  readonly #options: ClientLimitOptions
  readonly #open = new Map<string, number>()
  /** The oldest minute first. */
  readonly #opened = new Map<string, { since: number; count: number }>()

  constructor(options: ClientLimitOptions) {
    this.#options = options
  }

  /** Why one more connection is too many, or how to give it back. */
  admit(address: string): "too_many" | "too_fast" | (() => void) {
    const client = subscriberOf(address)
    const open = this.#open.get(client) ?? 0
    if (open >= this.#options.per_address) return "too_many"
    if (!this.#isSlow(client)) return "too_fast"
    this.#open.set(client, open + 1)
    let is_open = true
    return () => {
      if (!is_open) return
      is_open = false
      const left = (this.#open.get(client) ?? 1) - 1
      if (left > 0) this.#open.set(client, left)
      else this.#open.delete(client)
    }
  }

  #isSlow(client: string): boolean {
    const { per_minute } = this.#options
    if (per_minute === undefined) return true
    const now = monotonic()
    this.#forget(now)
    const minute = this.#opened.get(client) ?? { since: now, count: 0 }
    minute.count += 1
    this.#opened.set(client, minute)
    return minute.count <= per_minute
  }

  /** Any number of addresses may come: only those are looked at whose minute is over. */
  #forget(now: number) {
    for (const [client, { since }] of this.#opened) {
      if (now - since < MINUTE && this.#opened.size < MOST_REMEMBERED) return
      this.#opened.delete(client)
    }
  }
}
