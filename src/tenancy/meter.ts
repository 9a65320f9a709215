import { log } from "../core/log"
import type { Caller } from "../identity/caller"
import { today } from "../plans/periods"
import type { Store } from "../store/store"
import { add, type UsageUnits } from "./usage"

const FLUSH_MILLISECONDS = 5000

/**
 * Counts requests in memory and writes them now and then: a number for people to look at, which
 * no limit depends on and which is not worth a write a request.
 */
export class Meter {
  readonly #store: Store
  #counts = new Map<string, UsageUnits>()

  constructor(store: Store) {
    this.#store = store
  }

  count({ account_id, project_id }: Caller) {
    if (!project_id) return
    const day = today()
    const name = `${project_id} ${day}`
    const known = this.#counts.get(name)
    if (known) known.value += 1
    else this.#counts.set(name, { account_id, project_id, day, metric: "api_requests", value: 1 })
  }

  /** Writes what was counted since the last time. */
  async flush() {
    const counted = [...this.#counts.values()]
    if (counted.length === 0) return
    this.#counts = new Map()
    try {
      await this.#store.tx((tx) => add(tx, counted))
    } catch (error) {
      log.warn("some requests were not counted", { error })
    }
  }

  /** Flushes every few seconds. The returned function stops that, with a last flush. */
  start(): () => Promise<void> {
    const timer = setInterval(() => void this.flush(), FLUSH_MILLISECONDS)
    return () => {
      clearInterval(timer)
      return this.flush()
    }
  }
}
