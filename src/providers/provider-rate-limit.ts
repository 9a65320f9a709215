import { monotonic } from "../core/time"
import { DeferredError } from "../jobs/work-item"

/** The longest time for which a message is deferred: meanwhile others may have given up. */
const FARTHEST_SECONDS = 600

/** Keeps the rate that a project set for a provider, in messages a second. */
export class ProviderRateLimit {
  readonly #per_second: number
  readonly #read: () => number
  #left: number
  #filled_at: number
  #promised = 0

  /** `read` gives milliseconds since some moment. */
  constructor(per_second: number, read: () => number = monotonic) {
    this.#per_second = per_second
    this.#read = read
    this.#left = this.#most
    this.#filled_at = read()
  }

  /**
   * Takes one. Throws DeferredError with a turn of its own where this second's are used up; an
   * urgent message takes one of the next second, before the waiting messages.
   */
  take(is_urgent = false): void {
    const now = this.#read()
    const earned = ((now - this.#filled_at) / 1000) * this.#per_second
    this.#left = Math.min(this.#most, this.#left + earned)
    this.#filled_at = now
    if (this.#left >= (is_urgent ? 1 - this.#most : 1)) {
      this.#left -= 1
      return
    }
    const next = Math.max(this.#promised, now) + 1000 / this.#per_second
    this.#promised = Math.min(next, now + FARTHEST_SECONDS * 1000)
    const text = `This provider gets at most ${this.#per_second} messages a second.`
    throw new DeferredError(text, (this.#promised - now) / 1000)
  }

  /** A slow one still sends one at a time. */
  get #most() {
    return Math.max(1, this.#per_second)
  }
}
