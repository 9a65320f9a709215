import { monotonic } from "../core/time"

/** Whoever posts one request after another comes again within this time. */
const RECENT_MS = 20

/** When the last request came: what can wait asks before it takes the event loop for itself. */
export class RecentTraffic {
  #last = Number.NEGATIVE_INFINITY

  /** A request has come. */
  note(): void {
    this.#last = monotonic()
  }

  /** Whether somebody asked within the last 20 ms. One that waits for news does not count for long. */
  isRecent(): boolean {
    return monotonic() - this.#last < RECENT_MS
  }
}
