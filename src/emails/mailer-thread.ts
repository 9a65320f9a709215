import { parentPort } from "node:worker_threads"
import { catchStrayOutput } from "../core/stray-output"
import { nextTurn } from "../core/time"
import { type ComposedMail, composeMail, composeSevenBit, type MailToMake } from "./compose-task"
import {
  type ConnectionFacts,
  type MailerAnswer,
  type MailerOrder,
  MailNotMade,
  type MailToSend,
  type PlainSendAnswer,
  type PooledServer,
  plainTransaction,
  toPlain,
} from "./mailer-orders"
import { ConnectionPool, closed, PoolBusy } from "./smtp/pool"
import { SmtpRefusal, type SmtpSession } from "./smtp/session"

/** Called once by the worker file: composes, signs and delivers what the main thread orders. */
export function serveMailer(): void {
  const port = parentPort
  if (!port) throw new Error("the mailer runs only in a thread")
  const tell = (answers: MailerAnswer[]) => port.postMessage(answers)
  catchStrayOutput((stray, message, fields) => tell([{ stray, message, fields }]))
  const thread = new MailerThread(tell)
  port.on("message", (orders: MailerOrder[]) => {
    for (const order of orders) thread.take(order)
  })
  tell([{ ready: true }])
}

class MailerThread {
  readonly #tell: (answers: MailerAnswer[]) => void
  readonly #pools = new Map<number, ConnectionPool>()
  readonly #questions = new Map<number, PromiseWithResolvers<string>>()
  #last_question = 0
  #answers: MailerAnswer[] = []

  constructor(tell: (answers: MailerAnswer[]) => void) {
    this.#tell = tell
  }

  take(order: MailerOrder): void {
    if (order.kind === "open") this.#open(order.server, order.options)
    else if (order.kind === "address") this.#hearAddress(order)
    else void this.#answer(order)
  }

  /** What ends in one turn of the event loop is told together. */
  #say(answer: MailerAnswer) {
    this.#answers.push(answer)
    if (this.#answers.length > 1) return
    setImmediate(() => {
      const answers = this.#answers
      this.#answers = []
      this.#tell(answers)
    })
  }

  async #answer(order: Extract<MailerOrder, { id: number }>) {
    const { id } = order
    try {
      this.#say({ id, value: await this.#obey(order) })
    } catch (error) {
      this.#say({ id, error: toPlain(error) })
    }
  }

  async #obey(order: Extract<MailerOrder, { id: number }>): Promise<unknown> {
    switch (order.kind) {
      case "ping":
        return undefined
      case "make":
        return made(order.mail)
      case "send":
        return send(this.#pool(order.server), order.mail)
      case "check":
        return inSession(this.#pool(order.server), true, factsOf)
      case "sender":
        return inSession(this.#pool(order.server), false, (session) =>
          session.askSender(order.address),
        )
      case "close": {
        const pool = this.#pool(order.server)
        this.#pools.delete(order.server)
        await pool.close()
        return nextTurn() // what was cut is answered first
      }
    }
  }

  #pool(server: number): ConnectionPool {
    const pool = this.#pools.get(server)
    if (!pool) throw closed()
    return pool
  }

  #open(server: number, { limits, asks_address, ...options }: PooledServer) {
    const resolveHost = asks_address ? () => this.#askAddress(server) : undefined
    this.#pools.set(server, new ConnectionPool({ ...options, resolveHost }, limits))
  }

  #askAddress(server: number): Promise<string> {
    const question = ++this.#last_question
    const asked = Promise.withResolvers<string>()
    this.#questions.set(question, asked)
    this.#say({ question, server })
    return asked.promise
  }

  #hearAddress({ question, address, error }: Extract<MailerOrder, { kind: "address" }>) {
    const asked = this.#questions.get(question)
    this.#questions.delete(question)
    if (address === undefined) asked?.reject(new Error(error))
    else asked?.resolve(address)
  }
}

/** Rejects where there are no bytes, or no connection became free in time: then there was no attempt. */
async function send(pool: ConnectionPool, wanted: MailToSend): Promise<PlainSendAnswer> {
  const { mail, signing, fresh, ...envelope } = wanted
  const is_made = mail instanceof Uint8Array
  const { raw, recipe } = is_made ? { raw: mail, recipe: undefined } : await made(mail)
  const keys = is_made ? signing : mail
  const inSevenBits = keys && (async () => composeSevenBit({ ...keys, raw }))
  const transcript: string[] = []
  let session: SmtpSession | undefined
  const answer = (came: Pick<PlainSendAnswer, "transaction" | "error">) => {
    const { tls = null, used = 0 } = session ?? {}
    return { transcript, tls, used, recipe, ...came }
  }
  try {
    session = await pool.acquire(transcript, { fresh })
    const done = await session.deliver({ ...envelope, raw, ...(inSevenBits && { inSevenBits }) })
    return answer({ transaction: plainTransaction(done), error: undefined })
  } catch (error) {
    if (error instanceof PoolBusy) throw error
    // After a refusal at MAIL both sides know where they are, and the connection serves once more.
    if (!(error instanceof SmtpRefusal) || error.reply.code === 421) session?.quit()
    return answer({ transaction: undefined, error: toPlain(error) })
  } finally {
    if (session) pool.release(session)
  }
}

/** Rejects with MailNotMade. */
const made = (mail: MailToMake): Promise<ComposedMail> =>
  composeMail(mail).catch((error: Error) => {
    throw new MailNotMade(error)
  })

const factsOf = async ({ tls, could_be_safe }: SmtpSession): Promise<ConnectionFacts> => ({
  tls,
  could_be_safe,
})

async function inSession<Result>(
  pool: ConnectionPool,
  fresh: boolean,
  use: (session: SmtpSession) => Promise<Result>,
): Promise<Result> {
  const session = await pool.acquire([], { fresh })
  try {
    return await use(session)
  } finally {
    pool.release(session)
  }
}
