import type { MailToMake } from "../compose-task"
import { type AnsweredOrder, type Mailer, mailer as shared } from "../mailer"
import {
  type ConnectionFacts,
  MailerDied,
  type PlainSendAnswer,
  type SendAnswer,
  sendAnswer,
} from "../mailer-orders"
import type { UnmadeMail, UnsentMail } from "../providers/provider"
import { Remembered } from "../providers/remembered"
import type { PoolLimits } from "./pool"
import type { SmtpServer, Timeouts } from "./session"
import { SmtpConnectionError, type SmtpReply } from "./wire"

/** One server that gets mail, over warm connections of the mailer's thread. */
export class SmtpClient {
  readonly #mailer: Mailer
  readonly #server: number
  #open = 0

  constructor(
    { resolveHost, ...options }: SmtpServer,
    limits: PoolLimits,
    mailer: Mailer = shared,
  ) {
    const asks_address = resolveHost !== undefined
    this.#mailer = mailer
    this.#server = mailer.addServer({ ...options, limits, asks_address }, resolveHost)
  }

  get isBusy(): boolean {
    return this.#open > 0
  }

  /**
   * One transaction. Rejects with PoolBusy or MailNotMade: then there was no attempt. Where the thread died that is
   * the error of the answer, and the mail may have left.
   */
  async send(mail: UnsentMail, fresh: boolean): Promise<SendAnswer> {
    const { message_id, from, to, smtputf8, wants_reports = false, raw, signing } = mail
    const envelope = { message_id, from, to, smtputf8, wants_reports, signing, fresh }
    const made = raw instanceof Uint8Array ? undefined : raw
    const order = { ...envelope, mail: raw instanceof Uint8Array ? raw : mailOf(raw) }
    try {
      const answer = sendAnswer(await this.#order<PlainSendAnswer>({ kind: "send", mail: order }))
      if (made) made.recipe ??= answer.recipe
      return answer
    } catch (error) {
      const is_attempt = error instanceof MailerDied || error instanceof SmtpConnectionError
      if (is_attempt) return { ...NO_ANSWER, error }
      throw error
    }
  }

  /** What a new connection came to. Rejects with SmtpConnectionError, SmtpRefusal or PoolBusy. */
  check = (): Promise<ConnectionFacts> => this.#order({ kind: "check" })

  /** What the server says of an envelope sender, before it knows a recipient. Rejects as `check`. */
  askSender = (address: string): Promise<SmtpReply> => this.#order({ kind: "sender", address })

  /** Idle connections end at once, busy ones are cut: their messages come out as `retry`. */
  close = (): Promise<void> => this.#mailer.closeServer(this.#server)

  async #order<Answer>(order: OwnOrder): Promise<Answer> {
    this.#open += 1
    try {
      return await this.#mailer.order({ ...order, server: this.#server } as AnsweredOrder)
    } finally {
      this.#open -= 1
    }
  }
}

/** Once made it gets the same signatures again: they cost most. */
const mailOf = ({ mail, recipe }: UnmadeMail): MailToMake => (recipe ? { ...mail, recipe } : mail)

const NO_ANSWER = {
  ...{ transcript: [], tls: null, used: 0, recipe: undefined, transaction: undefined },
}

type WithoutServer<Order> = Order extends { server: number } ? Omit<Order, "server"> : never
type OwnOrder = WithoutServer<AnsweredOrder>

/** Shorter than RFC 5321, 4.5.3.2 asks for, which would let a host hold a permit for an hour. */
const HOST_TIMEOUTS: Timeouts = {
  connect: 15_000,
  greeting: 30_000,
  reply: 30_000,
  accepted: 120_000,
}

/** Many domains are seen once an hour: their connections must not pile up. */
const IDLE_MS = 10_000
const WAIT_MS = 60_000

/** Clients beyond this are closed, the one used longest ago first, where nothing runs. */
const MOST_HOSTS = 2_000

/** For how long a host whose TLS does not work gets mail without TLS at once. */
const TLS_FAILED_MS = 600_000

export interface HostOptions {
  port: number
  ehlo_name?: string | undefined
  /** PEM of the authority to trust instead of the system's, where certificates count. */
  ca?: string | undefined
  timeouts?: Partial<Timeouts> | undefined
  max_connections: number
}

/** Of one host: `proven` demands a certificate that is good for its name (MTA-STS). */
type TlsDemand = "proven" | "opportunistic" | "none"

/** Clients of many mail hosts, kept apart by address, name and what TLS has to be. */
export class MailHosts {
  readonly #options: HostOptions
  readonly #clients = new Map<string, SmtpClient>()
  #closed = false
  readonly #tls_failed = new Remembered<true>(TLS_FAILED_MS, MOST_HOSTS)

  constructor(options: HostOptions) {
    this.#options = options
  }

  client(name: string, address: string, tls: TlsDemand): SmtpClient {
    const key = `${tls} ${address} ${name}`
    const client = this.#clients.get(key) ?? this.#open(name, address, tls)
    this.#clients.delete(key)
    this.#clients.set(key, client) // the last used is the last to go
    if (this.#clients.size > MOST_HOSTS) this.#closeOldest()
    return client
  }

  /** For some time the host gets mail without TLS, unless its policy demands TLS. */
  rememberTlsFailure(address: string): void {
    void this.#tls_failed.get(address, async () => true)
  }

  hasTlsFailed(address: string): boolean {
    return this.#tls_failed.has(address)
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#clients.values()].map((client) => client.close()))
  }

  #open(name: string, address: string, tls: TlsDemand): SmtpClient {
    const { port, ehlo_name, ca, timeouts, max_connections } = this.#options
    const server: SmtpServer = {
      host: address,
      servername: name,
      port,
      ehlo_name,
      tls: tls === "proven" ? "starttls" : tls,
      timeouts: { ...HOST_TIMEOUTS, ...timeouts },
      ...(tls === "proven" && { ca }),
    }
    const client = new SmtpClient(server, { max_connections, idle: IDLE_MS, queue: WAIT_MS })
    if (this.#closed) void client.close()
    return client
  }

  #closeOldest() {
    for (const [key, client] of this.#clients) {
      if (client.isBusy) continue
      this.#clients.delete(key)
      return void client.close()
    }
  }
}
