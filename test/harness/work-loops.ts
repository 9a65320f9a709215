import { stopOf } from "../../src/fan-out/stopped"
import type { QueuePauses } from "../../src/jobs/holds"
import { type JobHandlers, jobTable } from "../../src/jobs/jobs"
import { WorkLoop } from "../../src/jobs/loop"
import { type Channels, messageTable } from "../../src/messages/pipeline"
import type { Store } from "../../src/store/store"
import { jobHandlers } from "../../src/work"

/** What the loops of a process do: messages by these channels, and jobs. */
export interface TestWork {
  channels?: Channels
  handlers: JobHandlers
}

type Input = Parameters<typeof jobHandlers>

/** The work of the server, with other channels. No mail comes in. */
export const workOf = (
  parts: Omit<Input[0], "inbound"> & { rules: object },
  channels: Channels,
  post: Input[1],
): TestWork => ({
  channels,
  handlers: jobHandlers({ ...parts, inbound: {} as never }, post),
})

export interface TestLoopOptions {
  store: Store
  work: TestWork
  concurrency: number
  most_unsettled?: number
  lease_ms: number
  alone: boolean
  isAsked?: () => boolean
  pauses?: QueuePauses
}

/** The loops of one process, as if they were one. */
export class WorkLoops {
  readonly #loops

  constructor({ work: { channels, handlers }, pauses, store, ...options }: TestLoopOptions) {
    const holdOf = (queue: string) => pauses?.holdOf(queue)
    const shared = { ...options, store, holdOf }
    const jobs = new WorkLoop({ ...shared, table: jobTable(handlers) })
    const messages =
      channels && new WorkLoop({ ...shared, table: messageTable(store, channels, stopOf) })
    this.#loops = messages ? [messages, jobs] : [jobs]
  }

  get running(): number {
    return this.#loops.reduce((sum, { running }) => sum + running, 0)
  }

  async start() {
    for (const loop of this.#loops) await loop.start()
  }

  wake() {
    for (const loop of this.#loops) loop.wake()
  }

  async stop(drain_ms: number) {
    await Promise.all(this.#loops.map((loop) => loop.stop(drain_ms)))
  }
}
