import type { AddressInfo, Socket } from "node:net"
import { SMTPServer } from "smtp-server"
import type { Blobs } from "../core/blobs"
import { hostAndPort, type Settings } from "../core/config"
import { listening } from "../core/destination"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import type { Store } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { MAX_MESSAGE_BYTES, MailReceiver, type MailReceiverOptions } from "./mail-receiver"
import { plan, type SimulatedRefusal } from "./simulator"

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
