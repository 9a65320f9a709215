import { monotonic } from "../core/time"

/** The runtime keeps 64 connections open (it has no setting for it). Some are left to other requests. */
const AT_ONCE = 60

/** A receiver that answers later than this is slow, and does not delay other requests. */
const YOUNG_MILLISECONDS = 5

/**
 * Limits how many requests begin at one moment, so that those which are answered fast share the
 * connections that stay open. Each request beyond would open a connection, only to close it again.
 */
export class ConnectionThrottle {
  /** The beginning of each young request, the oldest first. */
  readonly #young = new Set<{ at: number }>()
  readonly #waiting: ((release: () => void) => void)[] = []
  readonly #young_ms: number
  #timer: Timer | undefined

  /** `young_ms`: for so long, in milliseconds, a request counts. */
  constructor(young_ms = YOUNG_MILLISECONDS) {
    this.#young_ms = young_ms
  }

  /** Resolves when a request may begin, with the function to call at its end. */
  async acquire(): Promise<() => void> {
    if (this.#waiting.length === 0 && this.#isOpen()) return this.#begin()
    this.#timer ??= setInterval(() => this.#admit(), this.#young_ms)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #begin(): () => void {
    const one = { at: monotonic() }
    this.#young.add(one)
    return () => {
      this.#young.delete(one)
      this.#admit()
    }
  }

  #admit() {
    while (this.#waiting.length > 0 && this.#isOpen()) this.#waiting.shift()?.(this.#begin())
    if (this.#waiting.length > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #isOpen(): boolean {
    if (this.#young.size < AT_ONCE) return true
    const grown = monotonic() - this.#young_ms
    for (const one of this.#young) {
      if (one.at > grown) break
      this.#young.delete(one)
    }
    return this.#young.size < AT_ONCE
  }
}
