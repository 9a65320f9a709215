import { connect, isIP, type Socket } from "node:net"
import { checkServerIdentity, connect as connectTls, type TLSSocket } from "node:tls"
import { ReplyReader, type SmtpReply } from "./reply"

/** Small enough that a slow but living link moves one within the silence time-out. */
const CHUNK_BYTES = 64 * 1024

/** How long a server may take over our QUIT before the socket is torn down. */
const FAREWELL_MS = 1_000

/** The connection failed us, as opposed to a refusal, which is a reply. Another time it may work. */
export class SmtpConnectionError extends Error {
  readonly kind: "connection" | "timeout" | "tls" | "protocol"

  constructor(kind: SmtpConnectionError["kind"], message: string) {
    super(message)
    this.kind = kind
  }
}

export interface TlsNames {
  host: string
  servername?: string | undefined
  ca?: string | undefined
  /** False accepts any certificate: that still hides the mail from everybody who only listens. */
  verify?: boolean | undefined
}

interface Waiter {
  resolve(): void
  reject(error: SmtpConnectionError): void
}

/** A socket that is read in whole replies. After the first failure it is destroyed for good. */
export class SmtpConnection {
  #socket: Socket
  #reader = new ReplyReader()
  #replies: SmtpReply[] = []
  /** Replies that are still to come, of which the greeting is the first. */
  #owed = 1
  #failure: SmtpConnectionError | undefined
  #waiter: Waiter | undefined
  #deafen: () => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#listen()
  }

  /** Rejects with SmtpConnectionError only. */
  static async open(port: number, host: string, ms: number): Promise<SmtpConnection> {
    const wire = new SmtpConnection(connect({ port, host }).setNoDelay(true))
    await wire.#until("connect", `connecting to ${host}:${port}`, ms)
    return wire
  }

  get alive(): boolean {
    return this.#failure === undefined
  }

  /** The server said something without a command. */
  get unasked(): boolean {
    return this.#replies.length > 0 || this.#reader.halfway
  }

  get localAddress(): string {
    return this.#socket.localAddress ?? "127.0.0.1"
  }

  /** The next reply. Replies that came before a failure are still given out. */
  async read(waitingFor: string, ms: number): Promise<SmtpReply> {
    if (this.#replies.length === 0) await this.#wait(waitingFor, ms)
    const reply = this.#replies.shift()
    if (!reply) throw this.#fail("protocol", `no reply ${waitingFor}`)
    return reply
  }

  /** One reply is owed for each line. A server that says more loses the connection at once. */
  write(lines: string[]): void {
    this.#owed += lines.length
    if (this.#failure) throw this.#failure
    this.#socket.write(`${lines.join("\r\n")}\r\n`)
  }

  /**
   * Writes all of it, each chunk within `ms` of the one before. False: the server answered before
   * the last chunk was out, so its answer cannot be about the whole.
   */
  async send(bytes: Uint8Array, ms: number): Promise<boolean> {
    this.#owed++
    for (let from = 0; from < bytes.length; from += CHUNK_BYTES) {
      if (this.#failure) throw this.#failure
      if (this.unasked) return false
      const last = from + CHUNK_BYTES >= bytes.length
      const is_drained = this.#socket.write(bytes.subarray(from, from + CHUNK_BYTES))
      if (!is_drained && !last) await this.#until("drain", "for the server to take the message", ms)
    }
    return true
  }

  /** Turns the connection into TLS 1.2 or later, with a certificate that is good for the name. */
  async secure({ host, servername, ca, verify = true }: TlsNames, ms: number): Promise<string> {
    if (this.#failure) throw this.#failure
    // What came before the handshake was never protected: an attacker may have put it there.
    if (this.unasked) throw this.#fail("protocol", "the server spoke before the TLS handshake")
    const name = servername ?? host
    const plain = this.#socket
    this.#deafen()
    const socket = connectTls({
      socket: plain,
      host: name,
      ...(isIP(name) === 0 && { servername: name }),
      ...(ca !== undefined && { ca }),
      minVersion: "TLSv1.2",
      rejectUnauthorized: verify,
    })
    this.#socket = socket
    this.#listen("tls")
    await this.#until("secureConnect", "for the TLS handshake", ms).catch((error: Error) => {
      // Whatever went wrong, it was the handshake's. Who has not greeted was asked for TLS at once.
      throw new SmtpConnectionError("tls", tlsWords(error.message, name, this.#owed > 0))
    })
    return verify ? this.#checkCertificate(socket, name) : (socket.getProtocol() ?? "TLS")
  }

  /** Bun and Node differ in what they check on an upgraded socket, so it is checked here again. */
  #checkCertificate(socket: TLSSocket, name: string): string {
    const wrong = socket.authorized
      ? checkServerIdentity(name, socket.getPeerCertificate())
      : (socket.authorizationError ?? "certificate not accepted")
    const words = `TLS: ${wrong instanceof Error ? wrong.message : wrong}`
    if (wrong) throw this.#fail("tls", tlsWords(words, name, this.#owed > 0))
    return socket.getProtocol() ?? "TLS"
  }

  close(): void {
    this.#fail("connection", "closed by us")
  }

  /** Says goodbye without waiting for the answer, of which nothing is read. */
  quit(): void {
    if (!this.alive) return
    const socket = this.#socket
    this.#failure = new SmtpConnectionError("connection", "closed by us")
    this.#deafen()
    socket.once("data", () => socket.destroy()).end("QUIT\r\n")
    setTimeout(() => socket.destroy(), FAREWELL_MS).unref()
  }

  #listen(kind: "connection" | "tls" = "connection") {
    const socket = this.#socket
    const closed = () => this.#fail("connection", "the server closed the connection")
    const receive = (bytes: Buffer) => this.#receive(bytes)
    socket.on("data", receive).on("end", closed).on("close", closed)
    // Stays for good: an error without a listener ends the process.
    socket.on("error", (error) => this.#fail(kind, `${kind}: ${error.message || error.name}`))
    this.#deafen = () => socket.off("data", receive).off("end", closed).off("close", closed)
  }

  #receive(bytes: Buffer) {
    const replies = this.#reader.push(bytes, this.#owed)
    this.#owed -= replies.length
    this.#replies.push(...replies)
    // Before the fault: what a server said in order counts, whatever it says after that.
    if (this.#replies.length > 0) this.#waiter?.resolve()
    if (this.#reader.fault !== undefined) this.#fail("protocol", this.#reader.fault)
  }

  #fail(kind: SmtpConnectionError["kind"], message: string): SmtpConnectionError {
    if (!this.#failure) {
      this.#failure = new SmtpConnectionError(kind, message)
      this.#waiter?.reject(this.#failure)
      this.#socket.destroy()
    }
    return this.#failure
  }

  async #until(event: "connect" | "secureConnect" | "drain", what: string, ms: number) {
    const socket = this.#socket
    const woken = () => this.#waiter?.resolve()
    socket.once(event, woken)
    try {
      await this.#wait(what, ms)
    } finally {
      socket.off(event, woken)
    }
  }

  #wait(what: string, ms: number): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const late = () => this.#fail("timeout", `timed out after ${ms / 1000} s ${what}`)
    const timer = setTimeout(late, ms)
    this.#waiter = { resolve, reject }
    return promise.finally(() => {
      clearTimeout(timer)
      this.#waiter = undefined
    })
  }
}

/** What OpenSSL says of a certificate that leads to no authority it knows. */
const UNTRUSTED =
  /self[- ]signed certificate|unable to (?:get|verify)|certificate not (?:trusted|accepted)/i

const NOT_TLS = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/

/** The end of the handshake was ours: no authority that is trusted here signed the certificate. */
export const isUntrusted = (words: string): boolean => UNTRUSTED.test(words)

/** What helps where a relay's certificate is one of the house. */
export const TRUST_ADVICE =
  "Use a certificate of a known authority, or start Belfry with NODE_EXTRA_CA_CERTS=<PEM file of your authority>."

/** Why a handshake failed, in words that name the server; `at_once` without STARTTLS before it. */
function tlsWords(words: string, name: string, at_once: boolean): string {
  if (NOT_TLS.test(words)) {
    return at_once
      ? "TLS: the server does not begin with TLS on this port. Set tls to starttls"
      : "TLS: the server did not answer with TLS after STARTTLS"
  }
  if (!isUntrusted(words)) return words
  const why = words.replace(/^tls: /i, "")
  return `TLS: no authority that is trusted here signed the certificate of ${name} (${why})`
}
