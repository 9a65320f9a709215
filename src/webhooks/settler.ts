import { log } from "../core/log"
import { monotonic, nextTurn, sleep } from "../core/time"
import type { Store } from "../store/store"
import { faultOf } from "../store/trouble"
import type { EndedAttempt } from "./ended"
import { letGo } from "./in-hand"
import { settleAll } from "./settle-deliveries"

const AT_ONCE = 512

/**
 * What ends sooner after the last commit waits for the next: each blocks this thread for an fsync.
 * Where that takes longer, they are as far apart as one takes.
 */
const APART_MILLISECONDS = 8
const PAUSE_MILLISECONDS = 500

/** Ten seconds of tries, then the fault is not the storage's. */
const MOST_TRIES = 20

interface Entry {
  ended: EndedAttempt
  settled: (written: boolean) => void
}

/** Writes the ends of attempts: those that come while a commit runs share the next one. */
export class Settler {
  readonly #store: Store
  readonly #failures: number
  #waiting: Entry[] = []
  #draining = false
  #drained: Promise<void> = Promise.resolve()
  #next_at = 0
  #stopping = false

  constructor(store: Store, failures: number) {
    this.#store = store
    this.#failures = failures
  }

  /** Resolves when the end is on disk; false: nobody can write it. Never rejects. */
  settle(ended: EndedAttempt): Promise<boolean> {
    if (this.#stopping) return Promise.resolve(false) // its claim was given back
    return new Promise((settled) => {
      this.#waiting.push({ ended, settled })
      if (!this.#draining) this.#drained = this.#drain()
    })
  }

  /** Takes nothing more; resolves when what waits already was tried, each no longer than once. */
  async stop(): Promise<void> {
    this.#stopping = true
    await this.#drained
  }

  async #drain() {
    this.#draining = true
    await nextTurn() // what ends in the same turn is written together
    while (this.#waiting.length > 0) {
      const early = this.#next_at - monotonic()
      if (early > 0 && this.#waiting.length < AT_ONCE && !this.#stopping) await sleep(early)
      const some = this.#waiting.splice(0, AT_ONCE)
      const begun = monotonic()
      const error = await this.#write(some)
      const ended = monotonic()
      this.#next_at = ended + Math.max(APART_MILLISECONDS, ended - begun)
      // Alone, one that breaks a rule of ours does not keep the others from being written.
      for (const one of some) one.settled(error === undefined || (await this.#insist(one)))
    }
    this.#draining = false
  }

  /** Returns what went wrong, if anything did. */
  async #write(entries: Entry[]): Promise<unknown> {
    const list = entries.map(({ ended }) => ended)
    try {
      await this.#store.tx((tx) => settleAll(tx, list, this.#failures))
      letGo(list.map(({ claimed }) => claimed))
      return undefined
    } catch (error) {
      log.error("could not record the end of webhook attempts; trying again", { error })
      return error ?? new Error("storage failed without a reason")
    }
  }

  /** What was sent must not be sent again: waits for storage. If the fault is ours, the lease ends. */
  async #insist(entry: Entry): Promise<boolean> {
    for (let tries = 1; !this.#stopping; tries++) {
      const error = await this.#write([entry])
      if (error === undefined) return true
      if (tries >= MOST_TRIES && !faultOf(error)) return false
      await sleep(PAUSE_MILLISECONDS)
    }
    return false
  }
}
