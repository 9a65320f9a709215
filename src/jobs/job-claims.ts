import { log } from "../core/log"
import { monotonic } from "../core/time"
import { engine } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { faultOf } from "../store/trouble"
import type { JobHandlers } from "./job-handler"
import * as queue from "./queue"

/** Takes jobs for a loop and gives them back, with what their handlers have to say about it. */
export class Claims {
  readonly #store: Store
  readonly #handlers: JobHandlers
  readonly #lease: queue.Lease
  readonly #known = new WeakMap<queue.ClaimedJob, unknown>()
  #held_ms = 0

  constructor(store: Store, handlers: JobHandlers, lease: queue.Lease) {
    this.#store = store
    this.#handlers = handlers
    this.#lease = lease
  }

  /** As `queue.claim`. A handler whose part fails gets its jobs without it, and fails for each alone. */
  async claim(limit: number): Promise<queue.ClaimedJob[]> {
    const known = new Map<string, unknown>()
    const learn = (tx: Tx, claimed: queue.ClaimedJob[]) => this.#learn(tx, claimed, known)
    try {
      const claimed = await queue.claim(this.#store, limit, this.#lease, learn)
      for (const job of claimed) if (known.has(job.id)) this.#known.set(job, known.get(job.id))
      return claimed
    } catch (error) {
      if (faultOf(error)) throw error
      log.error("jobs could not be claimed together with their data", { error })
      return queue.claim(this.#store, limit, this.#lease)
    }
  }

  /**
   * For how long the work that came with the last claim held the event loop, in milliseconds. On
   * Postgres, where it waits for the database and holds nobody, always 0.
   */
  get held_ms(): number {
    return this.#held_ms
  }

  /** What the handler's `onClaim` learned of the job. */
  known(job: queue.ClaimedJob): unknown {
    return this.#known.get(job)
  }

  /** Of jobs that were not begun, or are cut off; storage that refuses lets their leases run out. */
  async giveBack(jobs: queue.ClaimedJob[]) {
    if (jobs.length === 0) return
    const back = this.#store.tx(async (tx) => {
      for (const job of jobs.toSorted(byId)) {
        const handler = this.#handlers[job.name]?.handler
        if (await queue.giveBack(tx, job))
          await handler?.onGiveBack?.(tx, job.payload as never, job)
      }
    })
    await back.catch((error) =>
      log.warn("jobs could not be released; they wait until their lease ends", { error }),
    )
  }

  async #learn(tx: Tx, claimed: queue.ClaimedJob[], known: Map<string, unknown>) {
    const begun = monotonic()
    for (const { id } of claimed) known.delete(id) // of a run that was rolled back
    for (const [name, jobs] of Map.groupBy(claimed, (job) => job.name)) {
      const learned = await this.#handlers[name]?.handler.onClaim?.(tx, jobs)
      for (const [id, one] of learned ?? []) known.set(id, one)
    }
    this.#held_ms = engine === "sqlite" ? monotonic() - begun : 0
  }
}

/** Whoever locks many jobs does so in this order. */
const byId = (one: queue.ClaimedJob, other: queue.ClaimedJob) => (one.id < other.id ? -1 : 1)
