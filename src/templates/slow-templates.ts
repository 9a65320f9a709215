import { monotonic } from "../core/time"
import { openWorkers } from "../core/workers"
import { FairQueue } from "../lib/fair-queue"
import { KILL_MS } from "./limits"
import type { RenderAnswer, RenderJob } from "./render-templates-task"

/** How long something is slow after it took too long. */
const SLOW_MS = 60_000

/** Of the thread, as of `nice`: a tenth of a processor where others want it, and all of an idle one. */
const NICENESS = 10

const MOST_REMEMBERED = 1000

interface WaitingRender {
  job: RenderJob
  resolve(answer: RenderAnswer): void
  reject(error: unknown): void
}

/**
 * What took too long lately, and renders apart from everything else. All projects together have one thread
 * for it, beside the pool, which gives way to the other threads. Each rendering is a task of its own,
 * and projects take turns: a template that hangs delays neither sends nor the slow templates of others.
 */
export class SlowTemplates {
  readonly #workers = openWorkers({ size: 1, niceness: NICENESS })
  /** Names of templates and projects, and until when they are slow, by `monotonic`. */
  readonly #slow = new Map<string, number>()
  readonly #waiting = new FairQueue<WaitingRender>()
  #is_running = false

  has(name: string): boolean {
    const until = this.#slow.get(name)
    if (until === undefined) return false
    if (until > monotonic()) return true
    this.#slow.delete(name)
    return false
  }

  note(name: string): void {
    if (this.#slow.size >= MOST_REMEMBERED) this.#slow.clear()
    this.#slow.set(name, monotonic() + SLOW_MS)
  }

  /** Renders the job after those that wait. It has the sources. Rejects as `Workers.run`. */
  render(project_id: string, job: RenderJob): Promise<RenderAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(project_id, job.key, { job, resolve, reject })
      if (!this.#is_running) void this.#run()
    })
  }

  async #run() {
    this.#is_running = true
    for (let next = this.#waiting.next(); next; next = this.#waiting.next()) {
      const { job, resolve, reject } = next
      const options = { deadline_ms: KILL_MS }
      const ran = this.#workers.run<RenderAnswer[]>("render-templates", [job], options)
      await ran.then(([answer]) => resolve(answer as RenderAnswer), reject)
    }
    this.#is_running = false
  }

  /** What runs or waits is rejected with `service_unavailable`. */
  close = (): Promise<void> => this.#workers.close()
}
