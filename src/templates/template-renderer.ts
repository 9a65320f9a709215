import { ApiError } from "../core/errors"
import { monotonic } from "../core/time"
import { FairQueue } from "../core/work-turns"
import { openWorkers, SharedFailure, WorkerBatches, type Workers } from "../core/workers"
import { unavailable } from "../http/envelope"
import { KILL_MS } from "./limits"
import type { RenderAnswer, RenderJob, TemplateSources } from "./render-templates-task"
import { threadProblem } from "./transform"

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
class SlowTemplates {
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
      const options = { deadline_ms: KILL_MS, only_works: true }
      const ran = this.#workers.run<RenderAnswer[]>("render-templates", [job], options)
      await ran.then(([answer]) => resolve(answer as RenderAnswer), reject)
    }
    this.#is_running = false
  }

  /** What runs or waits is rejected with `service_unavailable`. */
  close = (): Promise<void> => this.#workers.close()
}

/** Renderings of one task: with one task at a time, each way to the thread should carry many. */
const MOST_TOGETHER = 64
/** Renderings of one project that wait. */
const MOST_WAITING = 2000
/** Sources that a thread has rendered. */
const MOST_KNOWN = 1000

/** Sources under a name that no other sources have. */
export interface KeyedSources {
  key: string
  sources: TemplateSources
}

type RenderBatches = WorkerBatches<RenderJob, RenderAnswer>

interface ProjectRenders {
  /** Of sources that a thread has rendered in time. */
  batches: RenderBatches
  /** Of sources that may yet hang: nothing that is known to be quick waits in their task. */
  firsts: RenderBatches
  /** Renderings that wait or run apart. */
  apart: number
  running: number
}

/**
 * Renders templates in the threads of the pool. What a project asks for at the same time shares a task,
 * and a project has one task at a time, and one of templates that no thread has rendered yet. A template
 * that hangs costs its project one thread for 500 ms. For a minute it renders apart then, as one does that
 * takes more than 50 ms of processor time (`SlowTemplates`). So does every template of the project that no
 * thread has rendered yet. The sources cross to a thread once; then it knows them by their key.
 */
export class TemplateRenderer {
  readonly #workers: Workers
  readonly #projects = new Map<string, ProjectRenders>()
  /** Keys of sources that a thread has rendered in time. */
  readonly #known = new Set<string>()
  readonly #slow = new SlowTemplates()

  constructor(workers: Workers) {
    this.#workers = workers
  }

  /**
   * The rendered texts, or why there are none. `data` is the JSON of an object. Rejects with 503 when the
   * pool cannot take the work, or when too much of the project waits.
   */
  async render(project_id: string, keyed: KeyedSources, data: string): Promise<RenderAnswer> {
    const project = this.#projectOf(project_id)
    const { batches, firsts, apart } = project
    if (batches.waiting + firsts.waiting + apart >= MOST_WAITING) throw tooMany()
    project.running += 1
    try {
      const is_apart = this.#isSuspect(project_id, keyed.key)
      const answer = is_apart ? undefined : await this.#renderTogether(project_id, keyed, data)
      return answer ?? (await this.#renderApart(project_id, keyed, data))
    } finally {
      project.running -= 1
      if (project.running === 0) this.#projects.delete(project_id)
    }
  }

  /** Stops the thread of slow templates; the pool stays open. */
  close = (): Promise<void> => this.#slow.close()

  #isSuspect(project_id: string, key: string): boolean {
    return this.#slow.has(key) || (this.#slow.has(project_id) && !this.#known.has(key))
  }

  /** Undefined where the task took too long, and another template of the task may be the reason. */
  async #renderTogether(project_id: string, { key, sources }: KeyedSources, data: string) {
    const project = this.#projectOf(project_id)
    const is_known = this.#known.has(key)
    const batches = is_known ? project.batches : project.firsts
    try {
      const answer = await batches.add(is_known ? { key, data } : { key, data, sources })
      const whole =
        answer && "unknown" in answer ? await batches.add({ key, data, sources }) : answer
      if (!whole) throw new Error("the thread gave no answer")
      return this.#kept(project_id, key, whole)
    } catch (error) {
      if (error instanceof ApiError) throw error
      this.#slow.note(project_id)
      return error instanceof SharedFailure ? undefined : this.#tookTooLong(key, error)
    }
  }

  async #renderApart(project_id: string, { key, sources }: KeyedSources, data: string) {
    const project = this.#projectOf(project_id)
    project.apart += 1
    try {
      const answer = await this.#slow.render(project_id, { key, data, sources })
      return this.#kept(project_id, key, answer)
    } catch (error) {
      if (error instanceof ApiError) throw error
      this.#slow.note(project_id)
      return this.#tookTooLong(key, error)
    } finally {
      project.apart -= 1
    }
  }

  /** One that took much of its time delays what shares its thread, so it goes apart. */
  #kept(project_id: string, key: string, whole: RenderAnswer): RenderAnswer {
    const is_late = "problem" in whole && whole.problem.reason === "timeout"
    if (is_late) this.#known.delete(key)
    else if (!this.#known.has(key)) {
      if (this.#known.size >= MOST_KNOWN) this.#known.clear()
      this.#known.add(key)
    }
    if (!whole.took_long && !is_late) return whole
    for (const name of [project_id, key]) this.#slow.note(name)
    const { took_long: _, ...answer } = whole
    return answer
  }

  #tookTooLong(key: string, error: unknown): RenderAnswer {
    this.#slow.note(key)
    this.#known.delete(key)
    return { problem: { ...threadProblem(error), field: null } }
  }

  #projectOf(project_id: string): ProjectRenders {
    const known = this.#projects.get(project_id)
    if (known) return known
    const project = { batches: this.#batches(), firsts: this.#batches(), apart: 0, running: 0 }
    this.#projects.set(project_id, project)
    return project
  }

  #batches(): RenderBatches {
    const options = {
      most: MOST_TOGETHER,
      in_flight: 1,
      tells_shared_failures: true,
      only_works: true,
    }
    return new WorkerBatches(this.#workers, "render-templates", KILL_MS, options)
  }
}

const tooMany = () =>
  unavailable("Too many templates of this project wait to be rendered. Send this again.", "busy", 1)
