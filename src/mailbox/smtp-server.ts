import type { AddressInfo, Socket } from "node:net"
import { eq } from "drizzle-orm"
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from "smtp-server"
import { hostAndPort, type Settings } from "../core/config"
import { listening } from "../core/destination"
import { isUuid, newId } from "../core/ids"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { now, sleep } from "../core/time"
import { projects } from "../identity/tables"
import { comparable, parseMailbox } from "../lib/address"
import { headerFields, headerOf, isClean } from "../lib/mail-text"
import { messages } from "../messages/tables"
import type { Store } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { keep, type NewMailboxMail, sealRaw } from "./mailbox"
import { DEFERRED, deferOnce, plan, refusalOf, roleOf, type SimulatedRefusal } from "./simulator"

const MAX_CLIENTS = 100
/** The largest that may be submitted, and room for what is added to it: signatures and a trace. */
const MAX_MESSAGE_BYTES = 15_728_640 + 64 * 1024

/** Of all messages that are being received at this moment. */
const MAX_BUFFERED_BYTES = 128 * 1024 * 1024

const SLOW_MS = 20_000

interface MailboxOptions {
  store: Store
  secrets: Secrets
  listen: { host: string; port: number }
  /** Where mail goes that is not one of our messages. */
  fallback_project?: (() => string | undefined | Promise<string | undefined>) | undefined
  /** Called once a message to `complain@` is stored. It may run again for a repetition. */
  complained(message_id: string): Promise<void>
  /** How long `slow@` takes, in milliseconds. */
  slow_ms?: number
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
  const isFirst = deferOnce()
  const receive = receiver(options, stopping.signal, isFirst)
  const server = new SMTPServer({
    name: "mailbox.test",
    banner: "Belfry mailbox",
    size: MAX_MESSAGE_BYTES,
    maxClients: MAX_CLIENTS,
    authOptional: true,
    disabledCommands: ["AUTH", "STARTTLS"],
    disableReverseLookup: true,
    hideDSN: false, // for ENVID, by which a repetition is told before the message is seen
    onRcptTo: ({ address }, { envelope }, done) => {
      const { envid } = envelope.dsn ?? {}
      const deferred = roleOf(address) === "defer" && envid && isFirst(`${envid} ${address}`)
      done(refuse(deferred ? DEFERRED : refusalOf(address)))
    },
    onData: (stream, session, done) => {
      receive(stream, session).then(
        (reply) => (typeof reply === "string" ? accept(done, reply) : done(refuse(reply))),
        (error) => {
          log.error("the embedded mailbox could not store a mail", {
            error: (error as Error).message,
          })
          done(refuse({ code: 451, text: "4.3.0 The mail could not be stored" }))
        },
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

/** Answers with the words behind the 250, or with a refusal. */
function receiver(
  options: MailboxOptions,
  stopping: AbortSignal,
  isFirst: (message: string) => boolean,
) {
  const { store, secrets, complained, slow_ms = SLOW_MS } = options
  const buffer = { bytes: 0 }

  return async (stream: SMTPServerDataStream, session: SMTPServerSession) => {
    const raw = await collect(stream, buffer)
    if (!raw) return { code: 452, text: "4.3.1 Too much mail at once, try again" }
    if (stream.sizeExceeded) return { code: 552, text: "5.3.4 The message is too large" }
    if (!isClean(raw)) return { code: 550, text: "5.5.2 Bare CR, LF or NUL in the message" }

    const recipients = session.envelope.rcptTo.map(({ address }) => address)
    const roles = recipients.map(roleOf)
    const sender = session.envelope.mailFrom
    const mail = describe(raw, recipients, sender ? sender.address : "")
    // Without ENVID no message is told from another before it is seen, so all recipients are deferred.
    const blind = !session.envelope.dsn?.envid
    if (blind && roles.includes("defer") && isFirst(mail.message_id)) return DEFERRED
    if (roles.includes("slow")) await sleep(slow_ms, stopping)
    if (stopping.aborted) return { code: 421, text: "4.3.2 The server is stopping" }

    // Of submitted mail the Message-ID is its author's, and several messages may have the same.
    const owner = await ownerOf(options, session.envelope.dsn?.envid || mail.message_id)
    if (!owner) return { code: 550, text: "5.7.1 No project here takes this mail" }
    const { message_id: _, ...rest } = mail
    const { hidden, ...of } = owner
    const id = newId()
    const kept = hidden ? sealRaw(secrets, { id, raw }) : raw
    const row: NewMailboxMail = { id, ...of, ...rest, raw: kept, created_at: now() }
    await store.tx((tx) => keep(tx, row))
    if (roles.includes("complain") && row.email_id) await complained(row.email_id)
    return `2.6.0 Kept as ${row.id}`
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

function describe(raw: Buffer, recipients: string[], mail_from: string) {
  const fields = headerFields(raw)
  const [, id = ""] = /^<([^@<>]*)@[^<>]*>$/.exec(headerOf(fields, "message-id") ?? "") ?? []
  const from = parseMailbox(headerOf(fields, "from") ?? "")?.email ?? mail_from
  return {
    message_id: id,
    mail_from,
    recipients,
    to_address: comparable(recipients[0] ?? ""),
    from_address: comparable(from),
    subject: (headerOf(fields, "subject") ?? "").replaceAll("\0", ""), // Postgres keeps none
    raw,
    size: raw.length,
  }
}

/** By the id of the message; for mail of strangers the project of the last resort. */
async function ownerOf({ store, fallback_project }: MailboxOptions, message_id: string) {
  if (isUuid(message_id)) {
    const { id: email_id, project_id, account_id } = messages
    const columns = { email_id, project_id, account_id, hidden: projects.hidden }
    const [found] = await store.read
      .select(columns)
      .from(messages)
      .innerJoin(projects, eq(projects.id, project_id))
      .where(eq(email_id, message_id))
    if (found) return found
  }
  const project_id = await fallback_project?.()
  if (project_id === undefined) return undefined
  const { account_id } = projects
  const [project] = await store.read
    .select({ account_id })
    .from(projects)
    .where(eq(projects.id, project_id))
  return project && { ...project, project_id, email_id: null, hidden: false }
}

interface Storage {
  store: Store
  secrets: Secrets
}

/** Starts the embedded mailbox where it is wanted; `undo` learns how to stop it. */
export async function startMailbox(
  settings: Settings,
  { store, secrets }: Storage,
  undo: (() => unknown)[],
) {
  if (!settings["mailbox.enabled"]) return undefined
  let fallback: string | undefined
  const server: MailboxServer = await openMailbox({
    store,
    secrets,
    listen: hostAndPort(settings["mailbox.listen"]),
    fallback_project: async () => {
      fallback ??= (await firstProject(store.read))[0]?.project_id // there may be none yet
      return fallback
    },
    complained: (message_id) => plan(store, message_id),
  })
  undo.push(() => server.close())
  return server
}
