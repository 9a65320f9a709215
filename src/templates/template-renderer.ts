import { ApiError } from "../core/errors"
import { monotonic } from "../core/time"
import { WorkerBatches } from "../core/worker-batches"
import { type Workers, WorkerTimeout } from "../core/workers"
import { unavailable } from "../http/envelope"
import { DEADLINE_MS } from "./limits"
import type { RenderAnswer, RenderJob, TemplateSources } from "./render-templates-task"

/** Renderings of one task: with one task at a time, each way to the thread should carry many. */
const MOST_TOGETHER = 64
/** Renderings of one project that wait. */
const MOST_WAITING = 2000
/** Sources that the threads probably have. */
const MOST_KNOWN = 1000

/** How long a template that took too long renders apart from the others of its project. */
const APART_MS = 60_000

/** Sources under a name that no other sources have. */
export interface KeyedSources {
  key: string
  sources: TemplateSources
}

type RenderBatches = WorkerBatches<RenderJob, RenderAnswer>

interface ProjectRenders {
  batches: RenderBatches
  /** Of templates that took too long lately: the others do not wait behind them. */
  apart: RenderBatches
  running: number
}

/**
 * Renders templates in the threads of the pool. What a project asks for at the same time shares a task,
 * and a project has one task at a time: a template that hangs costs its own project a thread for 500 ms,
 * and the others go on. After that it has a task of its own, so that it delays no other template. The
 * sources cross to a thread once; then it knows them by their key.
 */
export class TemplateRenderer {
  readonly #workers: Workers
  readonly #projects = new Map<string, ProjectRenders>()
  readonly #known = new Set<string>()
  /** Keys that took too long, and until when they render apart, by `monotonic`. */
  readonly #slow = new Map<string, number>()

  constructor(workers: Workers) {
    this.#workers = workers
  }

  /**
   * The rendered texts, or why there are none. `data` is the JSON of an object. Rejects with 503 when the
   * pool cannot take the work, or when too much of the project waits.
   */
  async render(project_id: string, keyed: KeyedSources, data: string): Promise<RenderAnswer> {
    const project = this.#projectOf(project_id)
    const batches = this.#isSlow(keyed.key) ? project.apart : project.batches
    if (batches.waiting >= MOST_WAITING) throw tooMany()
    project.running += 1
    try {
      return await this.#answer(batches, keyed, data)
    } catch (error) {
      if (error instanceof ApiError) throw error
      this.#noteSlow(keyed.key)
      return { problem: killed(error) }
    } finally {
      project.running -= 1
      if (project.running === 0) this.#projects.delete(project_id)
    }
  }

  #isSlow(key: string): boolean {
    const until = this.#slow.get(key)
    if (until === undefined) return false
    if (until > monotonic()) return true
    this.#slow.delete(key)
    return false
  }

  #noteSlow(key: string) {
    if (this.#slow.size >= MOST_KNOWN) this.#slow.clear()
    this.#slow.set(key, monotonic() + APART_MS)
  }

  async #answer(batches: RenderBatches, { key, sources }: KeyedSources, data: string) {
    const is_known = this.#known.has(key)
    if (!is_known && this.#known.size >= MOST_KNOWN) this.#known.clear()
    this.#known.add(key)
    const answer = await batches.add(is_known ? { key, data } : { key, data, sources })
    if (answer && !("unknown" in answer)) return answer
    const whole = await batches.add({ key, data, sources })
    if (!whole) throw new Error("the thread gave no answer")
    return whole
  }

  #projectOf(project_id: string): ProjectRenders {
    const known = this.#projects.get(project_id)
    if (known) return known
    const options = { most: MOST_TOGETHER, in_flight: 1, alone_after_failure: true }
    const open = (): RenderBatches =>
      new WorkerBatches(this.#workers, "render-templates", DEADLINE_MS, options)
    const project = { batches: open(), apart: open(), running: 0 }
    this.#projects.set(project_id, project)
    return project
  }
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
