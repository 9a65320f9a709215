import { connect, isIP, type Socket } from "node:net"
import { checkServerIdentity, connect as connectTls, TLSSocket } from "node:tls"

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
  /** False accepts any certificate: that still hides the mail from a listener on the network. */
  verify?: boolean | undefined
}

/** A socket that is read in whole replies. After the first failure it is destroyed for good. */
export class SmtpConnection {
  #socket: Socket
  #reader = new ReplyReader()
  #replies: SmtpReply[] = []
  /** Replies that are still to come, of which the greeting is the first. */
  #owed = 1
  #failure: SmtpConnectionError | undefined
  #waiter: Omit<PromiseWithResolvers<void>, "promise"> | undefined
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

  /** The socket behind the TLS handshake, with the certificate that the server showed. */
  get encrypted(): TLSSocket | undefined {
    return this.#socket instanceof TLSSocket ? this.#socket : undefined
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

  /** From now on replies, and what is said of them, come without these. */
  conceal(secrets: string[]): void {
    this.#reader.secrets = secrets
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
      // Every error here belongs to the handshake. A server that has not greeted was asked for TLS at once.
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
    // Replies before the fault are delivered first: they came in order.
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

/** A reply is a few lines; a server that sends more than this is not speaking SMTP. */
const MAX_LINES = 100
const MAX_BYTES = 64 * 1024

const ENDLESS = "a reply without end"
const OUT_OF_TURN = "the server spoke out of turn"

const MAX_TEXT = 1_000

export interface SmtpReply {
  code: number
  /** RFC 3463, `5.1.1`. */
  enhanced: string | null
  /** The server's words, code included, on one line and without control characters. */
  text: string
  /** The words of each line, without the code. */
  lines: string[]
}

export const isGood = (reply: SmtpReply): boolean => reply.code >= 200 && reply.code < 300

/** Cuts the bytes of a server into replies (RFC 5321, 4.2). */
export class ReplyReader {
  /** Why nothing is read any more. What came whole before it was given out. */
  fault: string | undefined
  /** Left out of everything that is read. */
  secrets: string[] = []
  #unread = ""
  #lines: string[] = []
  /** Of the lines so far, in bytes. */
  #size = 0

  /** Whether bytes came that are not part of a whole reply yet. */
  get halfway(): boolean {
    return this.#unread !== "" || this.#lines.length > 0
  }

  /**
   * The replies that these bytes complete. What cannot be one is the `fault` from then on, and so is
   * what follows the `most` that were asked for: else a flood of them would fill the memory.
   */
  push(bytes: Buffer, most = Number.POSITIVE_INFINITY): SmtpReply[] {
    const replies: SmtpReply[] = []
    if (this.fault !== undefined) return replies
    const lines = (this.#unread + bytes.toString("latin1")).split("\n")
    this.#unread = lines.pop() ?? ""
    for (const line of lines) {
      const reply = replies.length < most ? this.#line(line) : this.#fail(OUT_OF_TURN)
      if (reply) replies.push(reply)
      if (this.fault !== undefined) return replies
    }
    if (this.#unread.length > MAX_BYTES) this.fault = ENDLESS
    else if (this.#unread !== "" && replies.length >= most) this.fault = OUT_OF_TURN
    return replies
  }

  #line(bytes: string): SmtpReply | undefined {
    this.#size += bytes.length
    if (this.#size > MAX_BYTES || this.#lines.length === MAX_LINES) return this.#fail(ENDLESS)
    const line = veiled(Buffer.from(bytes.replace(/\r$/, ""), "latin1").toString(), this.secrets)
    const [, code, mark, words] = /^([2-5]\d\d)(?:([ -])(.*))?$/s.exec(line) ?? []
    if (code === undefined) return this.#fail(`not an SMTP reply: ${clean(line).slice(0, 80)}`)
    this.#lines.push(words ?? "")
    if (mark === "-") return undefined

    const lines = this.#lines
    this.#lines = []
    this.#size = 0
    const enhanced = /^[245]\.\d{1,3}\.\d{1,3}(?= |$)/.exec(lines[0] ?? "")?.[0] ?? null
    const text = clean(`${code} ${lines.join(" ")}`)
      .trim()
      .slice(0, MAX_TEXT)
    return { code: Number(code), enhanced, text, lines }
  }

  #fail(fault: string): undefined {
    this.fault = fault
  }
}

/** As long as this, a part of a secret is taken for it; a shorter one may be any word. */
const TELLING = 12
const SHORTEST = 8

/** Some servers repeat the command that they dislike: what comes from a secret on is left out. */
function veiled(line: string, secrets: string[]): string {
  const starts = secrets
    .filter((secret) => secret.length >= SHORTEST)
    .map((one) => one.slice(0, TELLING))
  return starts.reduce((rest, start) => {
    const at = rest.indexOf(start)
    return at < 0 ? rest : `${rest.slice(0, at)}***`
  }, line)
}

const clean = (text: string) => text.replace(/[\p{Cc}\u2028\u2029]/gu, "?")
