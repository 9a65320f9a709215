import type { AddressInfo, Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import { SMTPServer, type SMTPServerSession } from "smtp-server"
import type { KeyPair } from "../core/certificate"
import { listening } from "../core/destination"
import { newRequestId } from "../core/ids"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import { isWithin } from "../lib/ip-ranges"
import { readProxyHeader } from "../lib/proxy-protocol"
import { draining, MailConnection, worded } from "./mail-connection"
import type { MailServerState, OpenSocket } from "./mail-server-state"
import { refusalText } from "./mail-session"

/** How long a refused client may take to read why. */
const LINGER_MILLISECONDS = 1000
const UNAUTHENTICATED_COMMANDS = 20
/** For the library's own timer: ours come first. */
const LIBRARY_TIMEOUT = 3_600_000
/** Of the library's commands, those that are jokes or that only a proxy of its own kind uses. */
const DISABLED = ["WIZ", "SHELL", "KILL", "LHLO", "XCLIENT", "XFORWARD"]

/** One port of a server: plain with STARTTLS, or TLS from the first byte. */
export class MailPort {
  readonly library: Library
  readonly #state: MailServerState
  readonly #listen: { host: string; port: number }
  readonly #is_implicit: boolean
  #forget = () => {}

  constructor(
    state: MailServerState,
    listen: { host: string; port: number },
    is_implicit: boolean,
  ) {
    this.#state = state
    this.#listen = listen
    this.#is_implicit = is_implicit
    this.library = new Library(state, is_implicit)
    const { server } = this.library
    server.removeAllListeners("connection") // the library would accept without our limits
    server.on("connection", (socket: Socket) => this.#accept(socket))
    this.library.on("error", (error: Error) => this.#failed(error))
  }

  get port(): number {
    return (this.library.server.address() as AddressInfo | null)?.port ?? 0
  }

  open(): Promise<void> {
    const { host, port } = this.#listen
    const { server } = this.library
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once("error", reject)
    server.listen({ port, ...(host !== "" && { host }) }, () => {
      server.off("error", reject)
      this.#forget = listening(host === "" ? "0.0.0.0" : host, this.port)
      resolve()
    })
    return promise
  }

  /** New handshakes get this certificate; sessions keep theirs. */
  renew(pair: KeyPair | undefined) {
    if (pair) this.library.updateSecureContext(pair)
  }

  /** Accepts no more. Resolves when the last connection is closed. */
  async shut(): Promise<void> {
    this.#forget()
    const { server } = this.library
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }

  #failed(error: Error) {
    const { options, tally } = this.#state
    if ("meta" in error) tally.failed_handshakes += 1
    log.debug("mail server connection", { server: options.kind, error: error.message })
  }

  #accept(socket: Socket) {
    const state = this.#state
    const peer = socket.remoteAddress
    socket.on("error", () => {}) // before a session listens, an error means only that it is gone
    if (peer === undefined) return void socket.destroy()
    const refusal = this.#refusal()
    if (refusal) return this.#turnAway(socket, peer, refusal)
    const open: OpenSocket = {
      socket,
      greeting_ends_at: monotonic() + state.deadlines.greeting,
      destroy: () => socket.destroy(),
      free: () => {},
    }
    state.sockets.add(open)
    socket.once("close", () => state.gone(open))
    if (!isWithin(peer, state.options.trusted_proxies())) return this.#admit(open, peer, undefined)
    readHeader(socket).then(
      (client) => this.#admit(open, client ?? peer, client && peer),
      (error: Error) => this.#turnAway(socket, peer, { reason: error.message }),
    )
  }

  /** What keeps every new client away now. */
  #refusal(): Refusal | undefined {
    const { options, sockets, isDraining } = this.#state
    if (isDraining()) return { reason: "draining", reply: draining() }
    if (sockets.size >= options.limits.connections) {
      return { reason: "too many connections", reply: `4.3.2 ${busy()}` }
    }
    const not_ready = options.isReady()
    if (not_ready?.code !== 421) return undefined
    return { reason: not_ready.message, reply: worded(not_ready) }
  }

  #turnAway(socket: Socket, address: string, { reason, reply }: Refusal) {
    this.#state.refusedConnection(address, reason)
    if (reply === undefined || this.#is_implicit) return void socket.destroy()
    socket.end(`421 ${reply}\r\n`)
    socket.resume()
    setTimeout(() => socket.destroy(), LINGER_MILLISECONDS).unref()
  }

  #admit(open: OpenSocket, address: string, proxy: string | undefined) {
    const admitted = this.#state.clients.admit(address)
    if (typeof admitted === "string") {
      const reason = admitted === "too_many" ? "too many of one address" : "too many in a minute"
      return this.#turnAway(open.socket, address, { reason, reply: `4.7.0 ${tooMany()}` })
    }
    open.free = admitted
    if (open.socket.destroyed) return this.#state.gone(open)
    if (!this.#is_implicit) return this.#begin(open, open.socket, address, proxy)
    // Without a certificate the library would use its own, whose key everybody knows.
    if (!this.#state.options.certificate.current()) return void open.socket.destroy()
    this.library._pendingSockets.set(open.socket, open.socket)
    open.destroy = () => this.library._pendingSockets.get(open.socket)?.destroy()
    this.library._upgrade(open.socket, (error, secure) => {
      this.library._pendingSockets.delete(open.socket)
      open.destroy = () => open.socket.destroy()
      if (!error && secure) return this.#begin(open, secure, address, proxy)
      open.socket.destroy()
      this.library._onError(error ?? new Error("The handshake failed"))
    })
  }

  #begin(open: OpenSocket, socket: Socket | TLSSocket, address: string, proxy: string | undefined) {
    const from = { id: newRequestId(), address, proxy, opened_at: monotonic() }
    const connection = new MailConnection(this.library, socket, from, this.#state)
    open.connection = connection
    open.destroy = () => connection._socket.destroy()
    this.library.begin(connection)
    connection.onGone = () => this.#state.gone(open)
  }
}

/** `reply` stands behind the 421. Without it the connection is closed in silence. */
interface Refusal {
  reason: string
  reply?: string
}

const busy = () => refusalText("service_unavailable", "Too many connections. Try again later")

const tooMany = () => refusalText("rate_limit_exceeded", "Too many connections from your address")

/** The client that the proxy names, or undefined where the proxy speaks for itself. */
function readHeader(socket: Socket): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>()
  let bytes = Buffer.alloc(0)
  const ended = () => reject(new Error("The connection ended before its PROXY header"))
  const read = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    const header = readProxyHeader(bytes)
    if (header.state === "more") return
    socket.off("data", read).off("close", ended)
    if (header.state === "bad") return reject(new Error(header.reason))
    socket.pause()
    if (bytes.length > header.length) socket.unshift(bytes.subarray(header.length))
    resolve(header.client?.address)
  }
  socket.on("data", read)
  socket.once("close", ended)
  return promise
}

/** The library's server, with our connections and our answers. */
class Library extends SMTPServer {
  readonly #context: MailServerState
  readonly #connections = new WeakMap<SMTPServerSession, MailConnection>()

  constructor(context: MailServerState, is_implicit: boolean) {
    const { kind, host, certificate, limits, authenticate } = context.options
    const pair = certificate.current()
    super({
      ...pair,
      minVersion: "TLSv1.2",
      secure: is_implicit,
      name: host,
      heloResponse: "%s",
      size: limits.size,
      maxRecipients: limits.recipients,
      hideENHANCEDSTATUSCODES: false,
      hideDSN: kind !== "mailbox", // by ENVID it tells a repetition before it sees the message
      disableReverseLookup: true,
      logger: false,
      socketTimeout: LIBRARY_TIMEOUT,
      authMethods: ["PLAIN", "LOGIN"],
      authOptional: authenticate === undefined,
      maxAllowedUnauthenticatedCommands: UNAUTHENTICATED_COMMANDS,
      disabledCommands: authenticate === undefined ? [...DISABLED, "AUTH"] : DISABLED,
    })
    this.#context = context
  }

  begin(connection: MailConnection) {
    this.#connections.set(connection.session, connection)
    this.connections.add(connection)
    connection.on("error", (error) => this._onError(error))
    connection.init()
  }

  #of(session: SMTPServerSession): MailConnection {
    const connection = this.#connections.get(session)
    if (!connection) throw new Error("The session has no connection")
    return connection
  }

  override onSecure(...[socket, session, done]: Parameters<SMTPServer["onSecure"]>) {
    this.#of(session).secured(socket)
    done()
  }

  override onAuth(...[login, session, done]: Parameters<SMTPServer["onAuth"]>) {
    const connection = this.#of(session)
    const { authenticate } = this.#context.options
    const { username = "", password = "" } = login as { username?: string; password?: string }
    const work = async () => {
      const { mail_session } = connection
      mail_session.identity = await authenticate?.({ username, password }, mail_session)
    }
    connection.runHandler(work, (refusal) => {
      if (refusal) this.#context.tally.failed_logins += 1
      if (refusal) done(refusal)
      else done(null, { user: username || "-" })
    })
  }

  override onMailFrom(...[sender, session, done]: Parameters<SMTPServer["onMailFrom"]>) {
    const connection = this.#of(session)
    const declared = sender.args ? Number((sender.args as { SIZE?: string }).SIZE) : Number.NaN
    const size = Number.isFinite(declared) ? declared : undefined
    const work = async () => {
      connection.requireRoom(size)
      const { onSender } = this.#context.options
      const { envid } = session.envelope.dsn ?? {}
      await onSender?.({ address: sender.address, size, envid }, connection.mail_session)
    }
    connection.runHandler(work, (refusal) => done(refusal ?? null))
  }

  override onRcptTo(...[{ address }, session, done]: Parameters<SMTPServer["onRcptTo"]>) {
    const connection = this.#of(session)
    const { options, tally } = this.#context
    const work = () => options.onRecipient(address, connection.mail_session)
    connection.runHandler(work, (refusal) => {
      if (refusal) tally.refused_recipients += 1
      else tally.accepted_recipients += 1
      done(refusal ?? null)
    })
  }
}
