import type { Workers } from "../core/workers"
import type { MailToCompose } from "./mail-to-compose"

/** A thread is asked for so many at once, and no more: others wait for it meanwhile. */
const MAX_BATCH = 16

/** As many as there are threads: what comes while they work goes with the next batch. */
const MAX_UNDER_WAY = 2

/** Characters of text and html. Larger mail, and mail with files, has a thread to itself. */
const MAX_SMALL = 64 * 1024

/** A message as it leaves, and as it is kept. */
export interface ComposedMail {
  raw: Uint8Array
  packed: Uint8Array
}

/** What came of one mail of a batch. */
export type Composed = ComposedMail | { error: { name: string; message: string } }

interface Waiting {
  mail: MailToCompose
  resolve(composed: ComposedMail): void
  reject(error: Error): void
}

/**
 * Hands mail to the threads in batches, because a message between two threads costs more than a small
 * mail does. Nothing waits for a batch to fill: an idle thread gets the first mail at once.
 */
export class ComposeBatches {
  #workers: Workers
  #deadline_ms: number
  #waiting: Waiting[] = []
  #under_way = 0

  constructor(workers: Workers, deadline_ms: number) {
    this.#workers = workers
    this.#deadline_ms = deadline_ms
  }

  add(mail: MailToCompose): Promise<ComposedMail> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ mail, resolve, reject })
      // The mail of one turn of the event loop goes together.
      if (this.#waiting.length === 1) setImmediate(() => this.#flush())
    })
  }

  #flush() {
    while (this.#under_way < MAX_UNDER_WAY && this.#waiting.length > 0) {
      const share = Math.ceil(this.#waiting.length / (MAX_UNDER_WAY - this.#under_way))
      this.#under_way += 1
      void this.#send(this.#waiting.splice(0, Math.min(share, MAX_BATCH)))
    }
  }

  async #send(batch: Waiting[]) {
    try {
      const mails = batch.map(({ mail }) => mail)
      const options = { deadline_ms: this.#deadline_ms }
      const composed = await this.#workers.run<Composed[]>("compose-batch", mails, options)
      for (const [index, one] of batch.entries()) settle(one, composed[index])
    } catch (error) {
      // The thread is gone, or the bytes: the fault is of no single mail, and each comes again.
      for (const { reject } of batch) reject(error as Error)
    } finally {
      this.#under_way -= 1
      this.#flush()
    }
  }
}

/** Whether a mail is so small that the way to a thread counts. */
export const isSmall = ({ html, text, attachments }: MailToCompose): boolean =>
  attachments.length === 0 && (html?.length ?? 0) + (text?.length ?? 0) <= MAX_SMALL

function settle({ resolve, reject }: Waiting, composed: Composed | undefined) {
  if (composed && "raw" in composed) return resolve(composed)
  const { name, message } = composed?.error ?? {
    name: "Error",
    message: "the worker thread gave no answer",
  }
  reject(Object.assign(new Error(message), { name }))
}
