import { ApiError } from "../core/errors"
import { type Workers, WorkerTimeout } from "../core/workers"
import { unavailable } from "../http/envelope"
import { DEADLINE_MS } from "./limits"
import type { RenderAnswer, RenderJob, TemplateSources } from "./render-templates-task"

/** Renderings that one task of the pool takes together. */
const MOST_TOGETHER = 32
/** Characters of their variables. */
const MOST_DATA = 262_144
/** Renderings of one project that wait. */
const MOST_WAITING = 2000
/** Sources that the threads probably have. */
const MOST_KNOWN = 1000

/** Sources under a name that no other sources have. */
export interface KeyedSources {
  key: string
  sources: TemplateSources
}

interface WaitingRender extends KeyedSources {
  data: string
  resolve(answer: RenderAnswer): void
  reject(error: unknown): void
}

/**
 * Renders templates in the threads of the pool. What a project asks for at the same time shares a task,
 * and a project has one task at a time: a template that hangs costs its own project a thread for 500 ms,
 * and the others go on. The sources cross to a thread once; then it knows them by their key.
 */
export class TemplateRenderer {
  readonly #workers: Workers
  readonly #waiting = new Map<string, WaitingRender[]>()
  readonly #known = new Set<string>()

  constructor(workers: Workers) {
    this.#workers = workers
  }

  /**
   * The rendered texts, or why there are none. `data` is the JSON of an object. Rejects with 503 when the
   * pool cannot take the work, or when too much of the project waits.
   */
  render(project_id: string, { key, sources }: KeyedSources, data: string): Promise<RenderAnswer> {
    return new Promise((resolve, reject) => {
      const entry = { key, sources, data, resolve, reject }
      const waiting = this.#waiting.get(project_id)
      if (waiting && waiting.length >= MOST_WAITING) return reject(tooMany())
      if (waiting) waiting.push(entry)
      else {
        this.#waiting.set(project_id, [entry])
        void this.#work(project_id)
      }
    })
  }

  /** Until nothing of the project waits. */
  async #work(project_id: string): Promise<void> {
    const waiting = this.#waiting.get(project_id) ?? []
    await Promise.resolve() // so that what one turn of the event loop asks for goes together
    while (waiting.length > 0) await this.#run(taken(waiting))
    this.#waiting.delete(project_id)
  }

  async #run(batch: WaitingRender[]): Promise<void> {
    const jobs = batch.map((one) => this.#jobOf(one))
    const answers = await this.#ask(jobs, batch)
    if (!answers) return
    const again: WaitingRender[] = []
    for (const [at, one] of batch.entries()) {
      const answer = answers[at]
      if (answer && !("unknown" in answer)) one.resolve(answer)
      else again.push(one)
    }
    for (const { key } of again) this.#known.delete(key)
    if (again.length > 0) await this.#run(again)
  }

  /** Undefined where each of them was told already. What spoils a task does so for itself alone. */
  async #ask(jobs: RenderJob[], batch: WaitingRender[]): Promise<RenderAnswer[] | undefined> {
    const options = { deadline_ms: DEADLINE_MS }
    try {
      return await this.#workers.run<RenderAnswer[]>("render-templates", jobs, options)
    } catch (error) {
      if (error instanceof ApiError) for (const { reject } of batch) reject(error)
      else if (batch.length > 1) for (const one of batch) await this.#run([one])
      else batch[0]?.resolve({ problem: killed(error) })
      return undefined
    }
  }

  #jobOf({ key, sources, data }: WaitingRender): RenderJob {
    if (this.#known.has(key)) return { key, data }
    if (this.#known.size >= MOST_KNOWN) this.#known.clear()
    this.#known.add(key)
    return { key, data, sources }
  }
}

/** The first ones, as many as one task should take. */
function taken(waiting: WaitingRender[]): WaitingRender[] {
  let size = 0
  const end = waiting.findIndex(({ data }, at) => {
    size += data.length
    return at > 0 && (at >= MOST_TOGETHER || size > MOST_DATA)
  })
  return waiting.splice(0, end < 0 ? waiting.length : end)
}

function killed(error: unknown) {
  const is_late = error instanceof WorkerTimeout
  const message = is_late
    ? `Rendering took longer than ${DEADLINE_MS} ms.`
    : "The thread that rendered the template died. Make the template simpler."
  const reason = is_late ? ("timeout" as const) : ("failed" as const)
  return { reason, message, line: null, column: null, field: null }
}

const tooMany = () =>
  unavailable("Too many templates of this project wait to be rendered. Send this again.", "busy", 1)
