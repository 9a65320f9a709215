import { monotonic } from "../core/time"

/** The runtime keeps 64 connections open (it has no setting for it); some are left to others. */
const AT_ONCE = 60

/** A receiver that answers later than this is slow, and keeps no other request from beginning. */
const YOUNG_MILLISECONDS = 5

/**
 * Lets requests begin in such numbers that those which are answered fast share the connections that
 * stay open. More at one moment would each open one of their own, only to close it again.
 */
export class Gate {
  /** When each began, the oldest first. */
  readonly #young = new Set<{ at: number }>()
  readonly #waiting: ((leave: () => void) => void)[] = []
  readonly #young_ms: number
  #timer: Timer | undefined

  /** `young_ms`: for so long, in milliseconds, a request counts. */
  constructor(young_ms = YOUNG_MILLISECONDS) {
    this.#young_ms = young_ms
  }

  /** Resolves when a request may begin, with what is to be called at its end. */
  async enter(): Promise<() => void> {
    if (this.#waiting.length === 0 && this.#hasRoom()) return this.#begin()
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
    while (this.#waiting.length > 0 && this.#hasRoom()) this.#waiting.shift()?.(this.#begin())
    if (this.#waiting.length > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #hasRoom(): boolean {
    if (this.#young.size < AT_ONCE) return true
    const grown = monotonic() - this.#young_ms
    for (const one of this.#young) {
      if (one.at > grown) break
      this.#young.delete(one)
    }
    return this.#young.size < AT_ONCE
  }
}
