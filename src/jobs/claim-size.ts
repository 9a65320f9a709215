import { monotonic } from "../core/time"

/** A claim grows while one is used up faster than this, and shrinks when it lasts longer. */
const SHORT_MILLISECONDS = 50
const LONG_MILLISECONDS = 200
const CLAIM_LIMIT = 160

/** It shrinks, too, when reading it holds the event loop for longer: everybody else waits meanwhile. */
const HOLD_MILLISECONDS = 2

/** How many rows a loop claims at once: by how long the last full claim lasted, and what it cost. */
export class ClaimSize {
  readonly least: number
  #size: number
  #claimed_at = 0
  #held_ms = 0

  constructor(concurrency: number) {
    this.least = Math.min(CLAIM_LIMIT, concurrency)
    this.#size = this.least
  }

  get is_used_up_fast(): boolean {
    return monotonic() - this.#claimed_at < SHORT_MILLISECONDS
  }

  get lasts_long(): boolean {
    return monotonic() - this.#claimed_at > LONG_MILLISECONDS
  }

  next(): number {
    if (this.lasts_long || this.#held_ms > HOLD_MILLISECONDS) {
      this.#size = Math.max(this.least, this.#size >> 1)
    } else if (this.is_used_up_fast && this.#held_ms < HOLD_MILLISECONDS / 2) {
      this.#size = Math.min(CLAIM_LIMIT, this.#size * 2)
    }
    return this.#size
  }

  /** Only a full claim says something about the next one. `held_ms`: of the event loop. */
  note(is_full: boolean, held_ms: number) {
    this.#held_ms = held_ms
    this.#claimed_at = is_full ? monotonic() : 0
  }
}
