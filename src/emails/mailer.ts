import { log } from "../core/log"
import { hasDescriptors, noDescriptors, workerEntry } from "../core/workers"
import type { ComposedMail, MailToMake } from "./compose-task"
import {
  fromPlain,
  MAILER,
  type MailerAnswer,
  MailerDied,
  type MailerOrder,
  type PooledServer,
} from "./mailer-orders"

/** Every so often the mailer is asked for a sign of life while it has orders. */
const LOOK_MS = 5_000

/**
 * The thread composes small mail only, so it hangs where it leaves four questions unanswered. Time alone says
 * nothing: a process that was stopped for a minute had its thread stopped, too.
 */
const MOST_UNHEARD = 4
const SILENT = `it was silent for ${(MOST_UNHEARD * LOOK_MS) / 1000} s`

/** It takes three; the rest is for what else opens files while it starts. */
const DESCRIPTORS_OF_A_START = 16

type Unnumbered<Order> = Order extends { id: number } ? Omit<Order, "id"> : never

/** An order that is answered, without its number. */
export type AnsweredOrder = Unnumbered<MailerOrder>

/** A server whose connections the mailer has. */
interface KnownServer {
  options: PooledServer
  resolveHost: (() => Promise<string>) | undefined
}

type OpenOrder = Omit<PromiseWithResolvers<never>, "promise">

/** A thread that lives, and what it has heard. */
interface LiveThread {
  worker: Worker
  /** It hears nothing before it has loaded its code. */
  is_ready: boolean
  servers: Set<number>
  /** Looks since it was heard. */
  unheard: number
}

/**
 * The thread that composes and signs mail and owns the connections to mail servers. Orders of one turn of
 * the event loop go together, and so do answers: a hop between threads costs more than a small mail does.
 * The thread starts with the first order. Where it dies, every order that it had rejects, and the next one
 * starts another: what it had in hand may or may not have left.
 */
export class Mailer {
  #thread: LiveThread | undefined
  #watch: Timer | undefined
  #last_id = 0
  #last_server = 0
  #waiting: MailerOrder[] = []
  readonly #open = new Map<number, OpenOrder>()
  readonly #servers = new Map<number, KnownServer>()

  /** Orders without an answer. */
  get open(): number {
    return this.#open.size
  }

  /** A number for the server, under which orders name it until it is closed. */
  addServer(options: PooledServer, resolveHost: (() => Promise<string>) | undefined): number {
    this.#servers.set(++this.#last_server, { options, resolveHost })
    return this.#last_server
  }

  /** Ends the connections to the server. Messages on their way come out as `retry`. */
  async closeServer(server: number): Promise<void> {
    this.#servers.delete(server)
    if (this.#thread?.servers.delete(server))
      await this.order({ kind: "close", server }).catch(() => {})
  }

  /** The bytes of a mail. Rejects with MailNotMade. */
  make = (mail: MailToMake): Promise<ComposedMail> => this.order({ kind: "make", mail })

  /** Rejects with what the thread threw, or with MailerDied. */
  order<Answer>(order: AnsweredOrder): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const id = ++this.#last_id
      this.#open.set(id, { resolve: resolve as OpenOrder["resolve"], reject })
      this.#waiting.push({ ...order, id } as MailerOrder)
      if (this.#waiting.length === 1) setImmediate(() => this.#flush())
    })
  }

  /** Ends the thread with all that it has in hand. */
  end(reason: string): void {
    const thread = this.#thread
    if (!thread) return
    this.#thread = undefined
    clearTimeout(this.#watch)
    log.error("the mailer thread died", { reason, orders: this.#open.size })
    thread.worker.terminate()
    // The reason may quote code of ours, and these words reach the message that is tried again.
    const error = new MailerDied("the mailer thread died")
    this.#waiting = []
    for (const { reject } of this.#open.values()) reject(error)
    this.#open.clear()
  }

  #flush() {
    const thread = this.#thread ?? this.#start()
    if (thread?.is_ready === false) return
    const orders = this.#waiting
    this.#waiting = []
    if (!thread) {
      for (const order of orders) if ("id" in order) this.#settle(order.id)?.reject(noDescriptors())
      return
    }
    const told = orders.flatMap((order) => this.#introduced(thread, order))
    thread.worker.ref()
    thread.worker.postMessage(told)
  }

  /** The order, behind the server that it names where the thread does not know that yet. */
  #introduced({ servers }: LiveThread, order: MailerOrder): MailerOrder[] {
    const server = "server" in order ? order.server : undefined
    const known = server === undefined ? undefined : this.#servers.get(server)
    if (server === undefined || !known || servers.has(server)) return [order]
    servers.add(server)
    return [{ kind: "open", server, options: known.options }, order]
  }

  /** Undefined where it would find no descriptor, which would end the process. */
  #start(): LiveThread | undefined {
    if (!hasDescriptors(DESCRIPTORS_OF_A_START)) return undefined
    const worker = new Worker(workerEntry(), { argv: [MAILER] })
    const thread: LiveThread = {
      worker,
      is_ready: false,
      servers: new Set(),
      unheard: 0,
    }
    const died = (reason: string) => {
      if (this.#thread === thread) this.end(reason)
    }
    worker.onmessage = ({ data }: MessageEvent<MailerAnswer[]>) => this.#hear(thread, data)
    worker.onerror = ({ message }: ErrorEvent) => died(message)
    worker.addEventListener("close", () => died("it ended"))
    this.#thread = thread
    this.#watchOver(thread)
    return thread
  }

  #watchOver(thread: LiveThread) {
    this.#watch = setTimeout(() => {
      if (this.#open.size === 0) thread.unheard = 0
      else if (thread.unheard++ === MOST_UNHEARD) return this.end(SILENT)
      else this.order({ kind: "ping" }).catch(() => {}) // its end is told by then
      this.#watchOver(thread)
    }, LOOK_MS)
    this.#watch.unref()
  }

  #hear(thread: LiveThread, answers: MailerAnswer[]) {
    thread.unheard = 0
    for (const answer of answers) {
      if ("stray" in answer)
        log[answer.stray](answer.message, { ...answer.fields, thread: "mailer" })
      else if ("ready" in answer) this.#begin(thread)
      else if ("question" in answer) void this.#resolve(thread, answer)
      else if ("error" in answer) this.#settle(answer.id)?.reject(fromPlain(answer.error))
      else this.#settle(answer.id)?.resolve(answer.value as never)
    }
    if (this.#open.size === 0) thread.worker.unref()
  }

  #begin(thread: LiveThread) {
    thread.is_ready = true
    if (this.#waiting.length > 0) this.#flush()
  }

  #settle(id: number): OpenOrder | undefined {
    const open = this.#open.get(id)
    this.#open.delete(id)
    return open
  }

  async #resolve(
    { worker }: LiveThread,
    { question, server }: { question: number; server: number },
  ) {
    const tell = (address: string | undefined, error: string) =>
      worker.postMessage([{ kind: "address", question, address, error } satisfies MailerOrder])
    try {
      tell(await this.#servers.get(server)?.resolveHost?.(), "the provider was closed")
    } catch (error) {
      tell(undefined, (error as Error).message)
    }
  }
}

/** One for the process: it starts with the first mail. */
export const mailer = new Mailer()
