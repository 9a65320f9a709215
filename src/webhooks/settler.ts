import { log } from "../core/log"
import { nextTurn, sleep } from "../core/time"
import type { Store } from "../store/store"
import { troubleOf } from "../store/trouble"
import { type Ended, settleAll } from "./settle"

const AT_ONCE = 256
const PAUSE_MILLISECONDS = 500

/** Ten seconds of tries, then the fault is not the storage's. */
const MOST_TRIES = 20

interface Entry {
  ended: Ended
  settled: () => void
}

/** Writes the ends of attempts: those that come while a commit runs share the next one. */
export class Settler {
  readonly #store: Store
  readonly #failures: number
  #waiting: Entry[] = []
  #draining = false
  #stopping = false

  constructor(store: Store, failures: number) {
    this.#store = store
    this.#failures = failures
  }

  /** Resolves when the end is on disk, or nobody can write it. Never rejects. */
  settle(ended: Ended): Promise<void> {
    if (this.#stopping) return Promise.resolve() // its lease was given back
    return new Promise((settled) => {
      this.#waiting.push({ ended, settled })
      if (!this.#draining) void this.#drain()
    })
  }

  /** Writes nothing more but what waits already, and tries that no longer than once. */
  stop() {
    this.#stopping = true
  }

  async #drain() {
    this.#draining = true
    await nextTurn() // what ends in the same turn is written together
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, AT_ONCE)
      const error = await this.#write(some)
      // Alone, one that breaks a rule of ours does not keep the others from being written.
      if (error !== undefined) for (const one of some) await this.#insist(one)
      for (const { settled } of some) settled()
    }
    this.#draining = false
  }

  /** Returns what went wrong, if anything did. */
  async #write(entries: Entry[]): Promise<unknown> {
    const list = entries.map(({ ended }) => ended)
    try {
      await this.#store.tx((tx) => settleAll(tx, list, this.#failures))
      return undefined
    } catch (error) {
      log.error("could not record the end of webhook attempts; trying again", { error })
      return error ?? new Error("storage failed without a reason")
    }
  }

  /** What was sent must not be sent again: waits for storage. If the fault is ours, the lease ends. */
  async #insist(entry: Entry) {
    for (let tries = 1; !this.#stopping; tries++) {
      const error = await this.#write([entry])
      if (error === undefined || (tries >= MOST_TRIES && !troubleOf(error))) return
      await sleep(PAUSE_MILLISECONDS)
    }
  }
}
