import { closeSync, openSync } from "node:fs"
import { ApiError, isErrorCode } from "./errors"
import { log } from "./log"
import { afterWork, type KnownThread } from "./processor-time"
import { NICENESS, type Task, type TaskAnswer, type TaskError } from "./worker-task"

const MAX_WAITING = 1000
const MAX_FAILED_STARTS = 3
/** How long a thread may load the code of a task, before the deadline of its first input counts. */
const LOAD_MS = 30_000
/** It takes three; the rest is for what else opens files while it starts. */
const DESCRIPTORS_OF_A_START = 16

/** The task ran longer than it may; its thread is gone, and another one takes its place. */
export class WorkerTimeout extends Error {
  override readonly name = "WorkerTimeout"
  readonly task: string
  readonly deadline_ms: number

  constructor(task: string, deadline_ms: number) {
    super(`the task "${task}" took longer than ${deadline_ms} ms`)
    this.task = task
    this.deadline_ms = deadline_ms
  }
}

interface TaskOptions {
  deadline_ms: number
  /** The deadline is of processor time, where the system tells it: the task only works, and never waits. */
  only_works?: boolean
  whole?: boolean
  left?: boolean
  /** Buffers of the input that are moved to the thread, not copied: they are empty here afterwards. */
  transfer?: ArrayBuffer[]
}

export type Workers = Pick<Pool, "run" | "close">

interface Job extends TaskOptions {
  task: string
  input: unknown
  resolve(value: unknown): void
  reject(error: Error): void
}

interface Thread extends KnownThread {
  worker: Worker
  ready: boolean
  /** Tasks whose code it has. */
  loaded: Set<string>
  job: Job | undefined
  /** Ends the deadline of the job. */
  stopClock: () => void
}

interface PoolOptions {
  size: number
  /** For tests. */
  entry?: string
  /** From 0 to 19: how far the threads give way to others, as of `nice`. Only on Linux. */
  niceness?: number
}

/** Threads start when there is work for them and then stay. */
export const openWorkers = (options: PoolOptions): Workers => new Pool(options)

/**
 * The file of the threads. In the compiled binary every chunk of modules lies at the root, and an
 * extra entry keeps its path from there; in the sources it is one folder up.
 */
export function workerEntry(module_url: string = import.meta.url): string {
  const compiled = /\/(\$bunfs|~BUN)\//.test(module_url)
  return new URL(compiled ? "./src/worker.ts" : "../worker.ts", module_url).href
}

class Pool {
  private readonly size: number
  private readonly entry: string
  private readonly niceness: number
  private readonly threads = new Set<Thread>()
  private readonly waiting: Job[] = []
  private last_id = 0
  private failed_starts = 0
  private closed = false
  private readonly emptied = Promise.withResolvers<void>()

  constructor({ size, entry = workerEntry(), niceness = 0 }: PoolOptions) {
    this.size = Math.max(1, size)
    this.entry = entry
    this.niceness = niceness
  }

  /**
   * Runs one task in a thread of the pool. The deadline counts from when it starts there, not from
   * when it began to wait, and not before the thread has loaded the code of the task. Rejects with
   * what the task threw (an ApiError keeps its code), with WorkerTimeout, or with
   * `service_unavailable` when 1,000 tasks wait already. `close` waits for a task that is `whole`: one
   * that holds more than memory. One that is `left` ends by itself, behind `close`; neither that nor
   * the end of the process waits for it.
   */
  run = <T>(task: string, input: unknown, options: TaskOptions) =>
    new Promise<T>((resolve, reject) => {
      const settle = resolve as (value: unknown) => void
      this.add({ ...options, task, input, resolve: settle, reject })
    })

  private add(job: Job): void {
    if (this.closed) job.reject(closing())
    else if (this.waiting.length >= MAX_WAITING) job.reject(overrun())
    else {
      this.waiting.push(job)
      this.assign()
    }
  }

  /** Stops the threads; what runs or waits is rejected with `service_unavailable`. */
  async close(): Promise<void> {
    this.closed = true
    for (const job of this.waiting.splice(0)) job.reject(closing())
    for (const thread of [...this.threads]) {
      if (thread.job?.left) this.leave(thread)
      else if (!thread.job?.whole) {
        thread.job?.reject(closing())
        this.remove(thread)
      }
    }
    if (this.threads.size > 0) await this.emptied.promise
  }

  private assign(): void {
    for (const thread of this.threads) {
      if (thread.ready && !thread.job) this.give(thread)
    }
    const starting = [...this.threads].filter((thread) => !thread.ready).length
    const missing = Math.min(this.waiting.length - starting, this.size - this.threads.size)
    for (let count = 0; count < missing; count++) {
      if (hasDescriptors(DESCRIPTORS_OF_A_START)) this.start()
      else this.crowded()
    }
  }

  /** A thread that finds no descriptor would end the process. Threads that run take the work. */
  private crowded(): void {
    if (this.threads.size > 0) return
    for (const job of this.waiting.splice(0)) job.reject(noDescriptors())
  }

  private give(thread: Thread): void {
    const job = this.nextSent(thread)
    if (!job) {
      thread.worker.unref()
      return
    }
    thread.worker.ref()
    thread.job = job
    this.limit(thread, job, thread.loaded.has(job.task) ? job.deadline_ms : LOAD_MS)
  }

  private limit(thread: Thread, job: Job, limit_ms: number): void {
    thread.stopClock()
    const over = () => {
      job.reject(new WorkerTimeout(job.task, limit_ms))
      this.remove(thread)
      this.assign()
    }
    thread.stopClock = afterWork(job.only_works ? thread : undefined, limit_ms, over)
  }

  /** The next job that could be posted; what cannot be copied to a thread is rejected here. */
  private nextSent(thread: Thread): Job | undefined {
    for (let job = this.waiting.shift(); job; job = this.waiting.shift()) {
      const task: Task = { id: ++this.last_id, task: job.task, input: job.input }
      try {
        thread.worker.postMessage(task, job.transfer ?? [])
        return job
      } catch (error) {
        job.reject(error instanceof Error ? error : new Error(String(error)))
      }
    }
    return undefined
  }

  private start(): void {
    const thread: Thread = {
      worker: new Worker(this.entry, { argv: [`${NICENESS}${this.niceness}`] }),
      number: undefined,
      worked_ms: 0,
      ready: false,
      loaded: new Set(),
      job: undefined,
      stopClock: () => {},
    }
    this.threads.add(thread)
    thread.worker.onmessage = (event: MessageEvent<TaskAnswer>) => this.answered(thread, event.data)
    thread.worker.onerror = (event: ErrorEvent) => this.died(thread, event.message)
    thread.worker.addEventListener("close", () => this.died(thread, "it ended"))
  }

  private answered(thread: Thread, answer: TaskAnswer): void {
    if (!this.threads.has(thread)) return
    thread.worked_ms = answer.worked_ms
    if ("stray" in answer) {
      log[answer.stray](answer.message, { ...answer.fields, thread: "worker" })
      return
    }
    if ("loaded" in answer) {
      thread.loaded.add(answer.loaded)
      if (thread.job) this.limit(thread, thread.job, thread.job.deadline_ms)
      return
    }
    if ("ready" in answer) {
      thread.ready = true
      thread.number = answer.thread
      this.failed_starts = 0
    } else {
      thread.stopClock()
      const job = thread.job
      thread.job = undefined
      if (answer.ok) job?.resolve(answer.value)
      else job?.reject(revived(answer.error))
    }
    if (this.closed) this.remove(thread)
    else this.give(thread)
  }

  private died(thread: Thread, reason: string): void {
    if (!this.threads.has(thread)) return
    log.error("a worker thread died", { reason, task: thread.job?.task })
    if (!thread.ready) this.failed_starts += 1
    thread.job?.reject(new Error(`the worker thread died: ${reason}`))
    this.remove(thread)
    if (this.failed_starts >= MAX_FAILED_STARTS) {
      this.failed_starts = 0
      const error = new Error(`the worker threads cannot start: ${reason}`)
      for (const job of this.waiting.splice(0)) job.reject(error)
    }
    this.assign()
  }

  private leave(thread: Thread): void {
    const { worker, job } = thread
    this.threads.delete(thread)
    thread.stopClock()
    worker.unref()
    // Only its answer ends it: the message that its code is loaded may still be on its way.
    worker.onmessage = (event: MessageEvent<TaskAnswer>) => {
      if ("id" in event.data) worker.terminate()
    }
    job?.reject(closing())
  }

  private remove(thread: Thread): void {
    this.threads.delete(thread)
    thread.stopClock()
    thread.worker.terminate()
    if (this.closed && this.threads.size === 0) this.emptied.resolve()
  }
}

/** Whether this process can open `count` more files now. */
export function hasDescriptors(count: number): boolean {
  const opened: number[] = []
  try {
    while (opened.length < count) opened.push(openSync("/dev/null", "r"))
    return true
  } catch {
    return false
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}

export const noDescriptors = () =>
  Object.assign(new Error("no worker thread can start, because too many files are open"), {
    code: "EMFILE",
  })

const overrun = () =>
  new ApiError(
    "service_unavailable",
    "The server has too much work at the moment. Try again in a few seconds.",
  )

const closing = () => new ApiError("service_unavailable", "The server is shutting down.")

function revived(error: TaskError): Error {
  const { name, message, code, details, status, stack } = error
  const known = name === "ApiError" && isErrorCode(code)
  const copy = known ? new ApiError(code, message, details, { status }) : new Error(message)
  if (!known) Object.assign(copy, { name }, code === undefined ? {} : { code })
  if (stack) copy.stack = stack
  return copy
}

/** A task gets at most this many inputs at once. The others wait. */
const MAX_BATCH = 16

/** As many as there are threads: what comes while they work goes with the next batch. */
const MAX_IN_FLIGHT = 2

interface BatchOptions extends Pick<TaskOptions, "only_works"> {
  most?: number
  in_flight?: number
  /** Where a task of several inputs failed, each of them is rejected with `SharedFailure`. */
  tells_shared_failures?: boolean
}

/** The task failed as a whole, and any of its inputs may be the reason. */
export class SharedFailure extends Error {
  override readonly name = "SharedFailure"
}

interface WaitingInput<Input, Output> {
  input: Input
  resolve(output: Output | undefined): void
  reject(error: unknown): void
}

/**
 * Hands small inputs to the threads in batches, because a message between two threads costs more than
 * a small input does. Nothing waits for a batch to fill: an idle thread gets the first input at once.
 */
export class WorkerBatches<Input, Output> {
  readonly #workers: Workers
  readonly #task: string
  readonly #deadline_ms: number
  readonly #most: number
  readonly #most_in_flight: number
  readonly #tells_shared_failures: boolean
  readonly #only_works: boolean
  readonly #waiting: WaitingInput<Input, Output>[] = []
  #in_flight = 0

  /** The task takes a list of inputs, and answers with one output for each, in their order. */
  constructor(workers: Workers, task: string, deadline_ms: number, options: BatchOptions = {}) {
    this.#workers = workers
    this.#task = task
    this.#deadline_ms = deadline_ms
    this.#most = options.most ?? MAX_BATCH
    this.#most_in_flight = options.in_flight ?? MAX_IN_FLIGHT
    this.#tells_shared_failures = options.tells_shared_failures ?? false
    this.#only_works = options.only_works ?? false
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /**
   * Resolves with the output of the input. Where the task failed as a whole it rejects for each of the
   * batch, with the error of `Workers.run`: the fault is of no single input.
   */
  add(input: Input): Promise<Output | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject })
      // The inputs of one turn of the event loop go together.
      if (this.#waiting.length === 1) setImmediate(() => this.#flush())
    })
  }

  #flush() {
    while (this.#in_flight < this.#most_in_flight && this.#waiting.length > 0) {
      const share = Math.ceil(this.#waiting.length / (this.#most_in_flight - this.#in_flight))
      this.#in_flight += 1
      void this.#send(this.#waiting.splice(0, Math.min(share, this.#most))).finally(() => {
        this.#in_flight -= 1
        this.#flush()
      })
    }
  }

  async #send(batch: WaitingInput<Input, Output>[]): Promise<void> {
    try {
      const inputs = batch.map(({ input }) => input)
      const options = { deadline_ms: this.#deadline_ms, only_works: this.#only_works }
      const outputs = await this.#workers.run<Output[]>(this.#task, inputs, options)
      for (const [index, { resolve }] of batch.entries()) resolve(outputs[index])
    } catch (error) {
      // An ApiError says that the pool takes no work at all.
      const is_shared = batch.length > 1 && !(error instanceof ApiError)
      const told =
        is_shared && this.#tells_shared_failures
          ? new SharedFailure("a task of several inputs failed", { cause: error })
          : error
      for (const { reject } of batch) reject(told)
    }
  }
}

/** One set of batches for each pool of threads. */
export function batchesPerPool<Input, Output>(task: string, deadline_ms: number) {
  const pools = new WeakMap<Workers, WorkerBatches<Input, Output>>()
  return (workers: Workers): WorkerBatches<Input, Output> => {
    const known = pools.get(workers)
    if (known) return known
    const made = new WorkerBatches<Input, Output>(workers, task, deadline_ms)
    pools.set(workers, made)
    return made
  }
}
