import type { AddressInfo, Socket } from "node:net"
import { eq } from "drizzle-orm"
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from "smtp-server"
import type { Blobs } from "../core/blobs"
import { hostAndPort, type Settings } from "../core/config"
import { listening } from "../core/destination"
import { isUuid, newId } from "../core/ids"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { nextTurn, now, sleep } from "../core/time"
import { projects } from "../identity/tables"
import { comparable, parseMailbox } from "../lib/address"
import { fieldOf, headerFields, isCleanInTurns } from "../lib/mail-text"
import { isFile, readTree } from "../lib/mail-tree"
import { Semaphore } from "../lib/semaphore"
import { keptForm } from "../messages/contents"
import { messages } from "../messages/tables"
import type { Store } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { keep, type NewMailboxMail, sealRaw } from "./mailbox"
import {
  chaosOf,
  DEFERRED,
  deferOnce,
  type Mishap,
  mishapOf,
  plan,
  refusalOf,
  roleOf,
  type SimulatedRefusal,
} from "./simulator"

const MAX_CLIENTS = 100
/** A client waits in silence while an answer is delayed. */
const SILENT_MS = 120_000

interface MailboxOptions extends MailReceiverOptions {
  listen: { host: string; port: number }
}

interface MailboxServer {
  port: number
  isListening(): boolean
  close(): Promise<void>
}

/**
 * The embedded sink: a real SMTP server that keeps what it gets, and answers 250 only once the
 * mail is on disk. Rejects where the port is taken. It listens without login and without TLS, so
 * it belongs on loopback.
 */
export async function openMailbox(options: MailboxOptions): Promise<MailboxServer> {
  const stopping = new AbortController()
  const receiver = new MailReceiver(options, stopping.signal)
  const server = new SMTPServer({
    name: "mailbox.test",
    banner: "Belfry mailbox",
    size: MAX_MESSAGE_BYTES,
    maxClients: MAX_CLIENTS,
    authOptional: true,
    disabledCommands: ["AUTH", "STARTTLS"],
    disableReverseLookup: true,
    hideDSN: false, // for ENVID, by which a repetition is told before the message is seen
    socketTimeout: SILENT_MS,
    onRcptTo: ({ address }, session, done) => {
      receiver.refusalFor(address, session).then((refusal) => done(refuse(refusal)), broken(done))
    },
    onData: (stream, session, done) => {
      receiver
        .receive(stream, session)
        .then(
          (reply) => (typeof reply === "string" ? accept(done, reply) : done(refuse(reply))),
          broken(done),
        )
    },
  })
  const sockets = new Set<Socket>()
  server.server.on("connection", (socket: Socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  await bind(server, options.listen)
  const { port } = server.server.address() as AddressInfo
  const forget = listening(options.listen.host, port)
  let closed: Promise<void> | undefined
  server.on("error", (error) => log.debug("mailbox connection", { error: error.message }))
  return {
    port,
    isListening: () => server.server.listening,
    close() {
      stopping.abort()
      forget()
      closed ??= new Promise<void>((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      return closed
    },
  }
}

function bind(server: SMTPServer, { host, port }: { host: string; port: number }) {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once("error", reject)
  server.listen(port, host, () => {
    server.off("error", reject)
    resolve()
  })
  return promise
}

type Done = (error?: Error | null, reply?: string) => void

/** The declared callback lacks the reply that the library reads. */
const accept = (done: (error?: Error | null) => void, reply: string) => (done as Done)(null, reply)

const refuse = (refusal: SimulatedRefusal | undefined) =>
  refusal && Object.assign(new Error(refusal.text), { responseCode: refusal.code })

/** What the server says when something broke that is no matter of the mail. */
const broken = (done: Done) => (error: unknown) => {
  log.error("the embedded mailbox could not store a mail", { error: (error as Error).message })
  done(refuse({ code: 451, text: "4.3.0 The mail could not be stored" }))
}

interface MailboxGround {
  store: Store
  secrets: Secrets
  blobs: Blobs
  mode: "up" | "serve"
}

/** The share of a node's deliveries that mails may hold by waiting on purpose, where several projects share it. */
const WAITING_SHARE = 4

/** Starts the embedded mailbox where it is wanted; `undo` learns how to stop it. */
export async function startMailbox(
  settings: Settings,
  { store, secrets, blobs, mode }: MailboxGround,
  undo: (() => unknown)[],
) {
  if (!settings["mailbox.enabled"]) return undefined
  const share = Math.max(1, Math.floor(settings["delivery.concurrency"] / WAITING_SHARE))
  let fallback: string | undefined
  const server: MailboxServer = await openMailbox({
    store,
    secrets,
    blobs,
    listen: hostAndPort(settings["mailbox.listen"]),
    fallback_project: async () => {
      fallback ??= (await firstProject(store.read))[0]?.project_id // there may be none yet
      return fallback
    },
    complained: (message_id) => plan(store, message_id),
    most_waiting: mode === "serve" ? share : undefined,
  })
  undo.push(() => server.close())
  return server
}

/** The largest that may be submitted, and room for what is added to it: signatures and a trace. */
const MAX_MESSAGE_BYTES = 15_728_640 + 64 * 1024

/** Of all messages that are being received at this moment. */
const MAX_BUFFERED_BYTES = 128 * 1024 * 1024

const SLOW_MS = 20_000

interface MailReceiverOptions {
  store: Store
  secrets: Secrets
  blobs: Blobs
  /** Where mail goes that is not one of our messages. */
  fallback_project?: (() => string | undefined | Promise<string | undefined>) | undefined
  /** Called once a message to `complain@` is stored. It may run again for a repetition. */
  complained(message_id: string): Promise<void>
  /** How long `slow@` takes, in milliseconds. */
  slow_ms?: number
  /** Mails that wait on purpose at the same time. Further ones are answered at once. Absent: all wait. */
  most_waiting?: number | undefined
}

/** Whose mail it is, and what goes wrong there on purpose. */
type MailOwner = NonNullable<Awaited<ReturnType<typeof ownerOf>>>

/** The message that a session is about. With ENVID it is known before it is seen. */
class AnnouncedMessage {
  readonly id: string
  readonly #find: () => Promise<MailOwner | undefined>
  #owner: Promise<MailOwner | undefined> | undefined
  #delay: Promise<void> | undefined

  constructor(id: string, find: () => Promise<MailOwner | undefined>) {
    this.id = id
    this.#find = find
  }

  /** Asked for once. */
  owner(): Promise<MailOwner | undefined> {
    this.#owner ??= this.#find()
    return this.#owner
  }

  /** The delay that the project wants, once: before the first answer that decides something. */
  delay({ settings }: MailOwner, wait: (ms: number) => Promise<void>): Promise<void> {
    this.#delay ??= wait(chaosOf(settings).delay_ms)
    return this.#delay
  }
}

/** Decides what becomes of a mail that comes to the embedded mailbox, and keeps it. */
class MailReceiver {
  readonly #options: MailReceiverOptions
  readonly #stopping: AbortSignal
  readonly #isFirst = deferOnce()
  readonly #buffer = { bytes: 0 }
  readonly #announced = new WeakMap<SMTPServerSession, AnnouncedMessage>()
  readonly #waiting: Semaphore

  constructor(options: MailReceiverOptions, stopping: AbortSignal) {
    this.#options = options
    this.#stopping = stopping
    this.#waiting = new Semaphore(options.most_waiting ?? Number.POSITIVE_INFINITY)
  }

  /** The answer to RCPT: a refusal, or undefined for a recipient that is accepted. */
  async refusalFor(
    address: string,
    session: SMTPServerSession,
  ): Promise<SimulatedRefusal | undefined> {
    const message = this.#messageOf(session)
    const role = roleOf(address)
    if (role) {
      const deferred = role === "defer" && message && this.#isFirst(`${message.id} ${address}`)
      return deferred ? DEFERRED : refusalOf(role)
    }
    const owner = await message?.owner()
    if (!message || !owner) return undefined
    const mishap = mishapOf(chaosOf(owner.settings), message.id, comparable(address))
    const refusal = this.#met(mishap, `${message.id} ${address}`)
    if (refusal) await message.delay(owner, this.#wait)
    return refusal
  }

  /** Answers with the words behind the 250, or with a refusal. */
  async receive(
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
  ): Promise<string | SimulatedRefusal> {
    const raw = await collect(stream, this.#buffer)
    if (!raw) return { code: 452, text: "4.3.1 Too much mail at once, try again" }
    if (stream.sizeExceeded) return { code: 552, text: "5.3.4 The message is too large" }
    if (!(await isCleanInTurns(raw, nextTurn)))
      return { code: 550, text: "5.5.2 Bare CR, LF or NUL in the message" }

    const recipients = session.envelope.rcptTo.map(({ address }) => address)
    const roles = recipients.map(roleOf)
    const sender = session.envelope.mailFrom
    const mail = describe(raw, recipients, sender ? sender.address : "")
    const announced = this.#messageOf(session)
    // Without ENVID no message is told from another before it is seen, so all recipients are deferred.
    if (!announced && roles.includes("defer") && this.#isFirst(mail.message_id)) return DEFERRED
    if (roles.includes("slow")) await this.#wait(this.#options.slow_ms ?? SLOW_MS)

    // Of submitted mail the Message-ID is its author's, and several messages may have the same.
    const message = announced ?? this.#messageNamed(mail.message_id)
    const owner = await message.owner()
    if (!owner) return { code: 550, text: "5.7.1 No project here takes this mail" }
    await message.delay(owner, this.#wait)
    if (this.#stopping.aborted) return { code: 421, text: "4.3.2 The server is stopping" }
    const refusal = announced ? undefined : this.#refusalOfAll(owner, mail)
    if (refusal) return refusal

    const row = await this.#keep(mail, owner)
    const { complained } = this.#options
    if (roles.includes("complain") && row.email_id) await complained(row.email_id)
    return `2.6.0 Kept as ${row.id}`
  }

  /** Each mail that waits holds a delivery of the whole node, so that all of them would stop the others. */
  #wait = async (ms: number): Promise<void> => {
    const leave = ms > 0 ? this.#waiting.tryAcquire() : undefined
    if (!leave) return
    try {
      await sleep(ms, this.#stopping)
    } finally {
      leave()
    }
  }

  #messageOf(session: SMTPServerSession): AnnouncedMessage | undefined {
    const { envid } = session.envelope.dsn ?? {}
    if (!envid) return undefined
    const known = this.#announced.get(session)
    if (known?.id === envid) return known
    const message = this.#messageNamed(envid)
    this.#announced.set(session, message)
    return message
  }

  #messageNamed = (id: string) => new AnnouncedMessage(id, () => ownerOf(this.#options, id))

  #met(mishap: Mishap | undefined, key: string): SimulatedRefusal | undefined {
    if (mishap === "defer") return this.#isFirst(key) ? DEFERRED : undefined
    return refusalOf(mishap)
  }

  /** Of a mail without ENVID: what its first recipient meets counts for all. */
  #refusalOfAll({ settings }: MailOwner, { message_id, to_address }: DescribedMail) {
    const id = message_id || newId()
    return this.#met(mishapOf(chaosOf(settings), id, to_address), id)
  }

  async #keep({ message_id: _, raw, ...mail }: DescribedMail, owner: MailOwner) {
    const { store, secrets, blobs } = this.#options
    const { hidden, envelope, settings: __, ...of } = owner
    const attachments = envelope ? envelope.attachments.length : countFiles(raw)
    const id = newId()
    const kept = hidden ? sealRaw(secrets, { id, raw }) : await keptForm(raw, blobs)
    const row: NewMailboxMail = { id, ...of, ...mail, attachments, raw: kept, created_at: now() }
    const is_large = raw.length > MOST_COUNTED_BYTES
    await store.tx((tx) => keep(tx, row), is_large ? of.project_id : undefined)
    return row
  }
}

/** The whole message, or undefined when the memory for it is used up: then it is read and dropped. */
async function collect(stream: SMTPServerDataStream, buffer: { bytes: number }) {
  const chunks: Buffer[] = []
  let size = 0
  let full = false
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      full ||= buffer.bytes + chunk.length > MAX_BUFFERED_BYTES
      if (full || size > MAX_MESSAGE_BYTES) continue
      chunks.push(chunk)
      size += chunk.length
      buffer.bytes += chunk.length
    }
    return full ? undefined : Buffer.concat(chunks)
  } finally {
    buffer.bytes -= size
  }
}

type DescribedMail = ReturnType<typeof describe>

function describe(raw: Buffer, recipients: string[], mail_from: string) {
  const fields = headerFields(raw)
  const [, id = ""] = /^<([^@<>]*)@[^<>]*>$/.exec(fieldOf(fields, "message-id") ?? "") ?? []
  const from = parseMailbox(fieldOf(fields, "from") ?? "")?.email ?? mail_from
  return {
    message_id: id,
    mail_from,
    recipients,
    to_address: comparable(recipients[0] ?? ""),
    from_address: comparable(from),
    subject: (fieldOf(fields, "subject") ?? "").replaceAll("\0", ""), // Postgres keeps none
    raw,
    size: raw.length,
  }
}

/** Reading the parts of larger mail would hold up everything else, and its row waits behind short transactions. */
const MOST_COUNTED_BYTES = 256 * 1024

/** Of mail that is no message of ours; null where it is too large to be read here. */
const countFiles = (raw: Buffer): number | null =>
  raw.length > MOST_COUNTED_BYTES ? null : readTree(raw).leaves.filter(isFile).length

/** By the id of the message; for mail of strangers the project of the last resort. */
async function ownerOf({ store, fallback_project }: MailReceiverOptions, message_id: string) {
  if (isUuid(message_id)) {
    const { id: email_id, project_id, account_id, envelope } = messages
    const { hidden, settings } = projects
    const columns = { email_id, project_id, account_id, envelope, hidden, settings }
    const [found] = await store.read
      .select(columns)
      .from(messages)
      .innerJoin(projects, eq(projects.id, project_id))
      .where(eq(email_id, message_id))
    if (found) return found
  }
  const project_id = await fallback_project?.()
  if (project_id === undefined) return undefined
  const { account_id, settings } = projects
  const [project] = await store.read
    .select({ account_id, settings })
    .from(projects)
    .where(eq(projects.id, project_id))
  return project && { ...project, project_id, email_id: null, envelope: null, hidden: false }
}
