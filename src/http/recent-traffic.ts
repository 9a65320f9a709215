import { monotonic } from "../core/time"

/** A client that sends one request after another sends the next one within this time. */
const RECENT_MS = 20

/** When the last request came. Work that can wait asks before it takes the event loop. */
export class RecentTraffic {
  #last = Number.NEGATIVE_INFINITY

  /** A request has come. */
  note(): void {
    this.#last = monotonic()
  }

  /** Whether a request came within the last 20 ms. */
  isRecent(): boolean {
    return monotonic() - this.#last < RECENT_MS
  }
}
