import { ApiError } from "./errors"
import type { Workers } from "./workers"

/** A task gets at most this many inputs at once. The others wait. */
const MAX_BATCH = 16

/** As many as there are threads: what comes while they work goes with the next batch. */
const MAX_IN_FLIGHT = 2

interface BatchOptions {
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
      const options = { deadline_ms: this.#deadline_ms }
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
