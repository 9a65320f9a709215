import { millis } from "../core/time"

export const WINDOW_SECONDS = 60
const WINDOW_MILLISECONDS = WINDOW_SECONDS * 1000
const MOST_WINDOWS = 100_000

export interface Window {
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

/** Fixed windows of 60 s of the clock, one a name, in the memory of this node. */
export class Windows {
  readonly #windows = new Map<string, Window>()

  /**
   * The window that runs now. A clock that steps back a little stays in the window it was in, so
   * that nobody gets his requests twice; one that leaps back begins anew, so that nobody waits an
   * hour.
   */
  of(name: string): Window {
    const now = millis()
    const known = this.#windows.get(name)
    if (known && now < known.ends && now >= known.ends - 2 * WINDOW_MILLISECONDS) return known
    if (this.#windows.size >= MOST_WINDOWS) this.#forgetOld(now)
    const ends = (Math.floor(now / WINDOW_MILLISECONDS) + 1) * WINDOW_MILLISECONDS
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
