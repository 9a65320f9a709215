import { log } from "../core/log"
import { sleep } from "../core/time"
import type { Store } from "../store/store"
import { type ClaimedJob, completeAll } from "./queue"

const PAUSE_MILLISECONDS = 500
const BATCH_LIMIT = 500

/** How many may wait for their end to be on disk: a crash would run as many again. */
const MOST_WAITING = 1000

/**
 * Ends jobs that have nothing to write but their own end, many in one transaction. Each is fenced
 * by owner and attempt. Storage that refuses is asked again, for as long as the
 * loop lives: what was done must not be done again.
 */
export class Endings {
  readonly #store: Store
  readonly #onRoom: () => void
  #waiting: ClaimedJob[] = []
  #writing: ClaimedJob[] = []
  #work: Promise<void> | undefined
  #closed = false

  constructor(store: Store, onRoom: () => void) {
    this.#store = store
    this.#onRoom = onRoom
  }

  add(job: ClaimedJob) {
    this.#waiting.push(job)
    this.#work ??= this.#drain()
  }

  /** These are still leased, and the lease has to be kept. */
  get held(): ClaimedJob[] {
    return [...this.#writing, ...this.#waiting]
  }

  get isFull(): boolean {
    return this.#writing.length + this.#waiting.length >= MOST_WAITING
  }

  /** Resolves when every end that was added is on disk, or `close` was called. */
  async written() {
    await this.#work
  }

  /** No further tries: what is not on disk by now stays leased until that runs out. */
  close() {
    this.#closed = true
  }

  async #drain() {
    while (this.#waiting.length > 0 && !this.#closed) {
      await new Promise<void>((resolve) => setImmediate(resolve)) // for more to come
      this.#writing = this.#waiting.splice(0, BATCH_LIMIT)
      await this.#write(this.#writing)
      this.#writing = []
      this.#onRoom()
    }
    this.#work = undefined
  }

  async #write(batch: ClaimedJob[]) {
    for (let failing = false; !this.#closed; ) {
      try {
        await this.#store.tx((tx) => completeAll(tx, batch))
        if (failing) log.info("results of jobs can be recorded again")
        return
      } catch (error) {
        if (!failing) log.error("results of jobs could not be recorded; trying again", { error })
        failing = true
        await sleep(PAUSE_MILLISECONDS)
      }
    }
  }
}
