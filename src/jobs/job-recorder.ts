import { log } from "../core/log"
import { sleep } from "../core/time"
import { engine } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { faultOf } from "../store/trouble"
import {
  type Ended,
  endAll,
  finish,
  type JobHandlers,
  unrecordable,
  type Verdict,
} from "./job-handler"
import type { ClaimedJob } from "./queue"

const PAUSE_MILLISECONDS = 500

/** Ten seconds of tries, then the fault is not the storage's. */
const MOST_TRIES = 20

/** Trouble may be one row's: a page that cannot be read, bytes too many for what is left of the disk. */
const MOST_TRIES_TOGETHER = 4

const MOST_TOGETHER = 100

/** On Postgres one lane fills while the other waits for its commit; SQLite has one writer. */
const LANES = engine === "postgres" ? 2 : 1

interface Waiting extends Ended {
  /** Told whether its end is over: written, or given up. Otherwise it has to stand for itself. */
  over: (is_over: boolean) => void
}

/**
 * Writes what came of jobs. Ends for `onDone` share transactions: what comes while one is under way
 * enters the next, and everything else has one of its own. Storage that refuses is asked again: what
 * was done must not be done again.
 */
export class Recorder {
  readonly #store: Store
  readonly #handlers: JobHandlers
  #waiting: Waiting[] = []
  #lanes = 0
  /** A transaction was asked for and has not begun: it takes whoever comes until then. */
  #is_open = false
  #is_closed = false

  constructor(store: Store, handlers: JobHandlers) {
    this.#store = store
    this.#handlers = handlers
  }

  /** Resolves when the verdict is on disk, or nobody tries to write it any more. Never rejects. */
  async record(job: ClaimedJob, verdict: Verdict<unknown>): Promise<void> {
    const shares = "end" in verdict && (await this.#together(job, verdict.end))
    if (!shares) await this.#alone(job, verdict)
    verdict.settled?.()
  }

  /** What storage refuses from now on is given up: its lease runs out, or is given back. */
  close() {
    this.#is_closed = true
  }

  #together(job: ClaimedJob, end: unknown): Promise<boolean> {
    return new Promise((over) => {
      this.#waiting.push({ job, end, over })
      void this.#write()
    })
  }

  async #write() {
    if (this.#is_open || this.#lanes >= LANES) return
    this.#lanes += 1
    while (this.#waiting.length > 0 && !this.#is_open) await this.#writeSome()
    this.#lanes -= 1
  }

  /** One transaction for those who wait when it begins. One who spoils it does so for himself alone. */
  async #writeSome() {
    this.#is_open = true
    let some: Waiting[] | undefined
    const taken = () => {
      if (some) return some // the closure runs again, for the same ones
      this.#is_open = false
      some = this.#waiting.splice(0, MOST_TOGETHER)
      return some
    }
    const is_over = await this.#insist((tx) => endAll(tx, (name) => this.#handlers[name], taken()))
    for (const { over } of taken()) over(is_over)
  }

  /** False when it failed for a reason that is not the storage's, or too often. */
  async #insist(write: (tx: Tx) => Promise<void>): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#store.tx(write)
        return true
      } catch (error) {
        log.error("results of jobs could not be recorded together; trying again", { error })
        if (!faultOf(error)) return false
        if (this.#is_closed) return true
        if (tries === MOST_TRIES_TOGETHER) return false
        await sleep(PAUSE_MILLISECONDS)
      }
    }
  }

  async #alone(job: ClaimedJob, reached: Verdict<unknown>) {
    let line = this.#handlers[job.name]
    let verdict = reached
    for (let tries = 1; ; tries++) {
      try {
        await this.#store.tx((tx) => finish(tx, line, job, verdict))
        return
      } catch (error) {
        // What was done must not be done again: hold the slot until storage takes the result.
        log.error("the result of a job could not be recorded; trying again", {
          job_id: job.id,
          error,
        })
        if (this.#is_closed) return
        if (tries % MOST_TRIES === 0 && !faultOf(error)) {
          if (tries > MOST_TRIES) line = undefined // its last word breaks a rule, too
          verdict = unrecordable
        }
        await sleep(PAUSE_MILLISECONDS)
      }
    }
  }
}
