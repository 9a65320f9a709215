import { isIP } from "node:net"
import { checkServerIdentity } from "node:tls"
import type { Socket, SocketHandler } from "bun"
import { deadline } from "../../core/deadline"
import { codeOf } from "../../core/faults"

/** Small enough that a slow but living link moves one within the silence time-out. */
const CHUNK_BYTES = 64 * 1024

/** How long a server may take over our QUIT before the socket is torn down. */
const FAREWELL_MS = 1_000

const TLS_1_2 = 0x0303 // as OpenSSL counts versions

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

/** What one step waits for. There is one wait at a time. */
interface Wait {
  event: "connect" | "handshake" | "drain" | "reply"
  resolve: () => void
  reject: (error: SmtpConnectionError) => void
  dropDeadline: () => void
}

/** A socket that is read in whole replies. After the first failure it is closed for good. */
export class SmtpConnection {
  #socket: Socket<SmtpConnection> | undefined
  /** The socket behind the TLS handshake, with the certificate that the server showed. */
  encrypted: Socket<unknown> | undefined
  #reader = new ReplyReader()
  #replies: SmtpReply[] = []
  /** Replies that are still to come, of which the greeting is the first. */
  #owed = 1
  #failure: SmtpConnectionError | undefined
  #wait: Wait | undefined
  /** What the kernel had no room for. It follows as soon as there is some. */
  #unsent: Buffer | undefined

  private constructor() {}

  static readonly #PLAIN: SocketHandler<SmtpConnection> = {
    open: (socket) => socket.data.#opened(socket),
    data: (socket, bytes) => socket.data.#receive(bytes),
    drain: (socket) => socket.data.#flush(),
    end: (socket) => socket.data.#closed(),
    close: (socket, error) => socket.data.#closed(error),
    error: (socket, error) => socket.data.#broken(error.message),
  }

  static readonly #TLS: SocketHandler<SmtpConnection> = {
    ...SmtpConnection.#PLAIN,
    open: () => {},
    // The certificate is not looked at here. Where there is a cipher, the handshake is done.
    handshake: (socket, _, error) => {
      if (socket.getCipher()?.name) socket.data.#wake("handshake")
      else if (codeOf(error) === "ECONNRESET") socket.data.#closed()
      else socket.data.#broken(error?.message ?? "no handshake")
    },
  }

  /** Rejects with SmtpConnectionError only. */
  static async open(port: number, host: string, ms: number): Promise<SmtpConnection> {
    const wire = new SmtpConnection()
    const options = { hostname: host, port, data: wire, socket: SmtpConnection.#PLAIN }
    Bun.connect(options).catch(({ syscall, code, message }: NodeJS.ErrnoException) =>
      wire.#broken(syscall === "connect" ? `connect ${code} ${host}:${port}` : message),
    )
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
    return this.#socket?.localAddress ?? "127.0.0.1"
  }

  /** The next reply. Replies that came before a failure are still given out. */
  async read(waitingFor: string, ms: number): Promise<SmtpReply> {
    if (this.#replies.length === 0) await this.#until("reply", waitingFor, ms)
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
    this.#put(`${lines.join("\r\n")}\r\n`)
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
      this.#put(bytes.subarray(from, from + CHUNK_BYTES))
      if (!this.#unsent) continue
      await this.#until("drain", "for the server to take the message", ms)
      if (this.#unsent) return false
    }
    return true
  }

  /** Turns the connection into TLS 1.2 or later, with a certificate that is good for the name. */
  async secure({ host, servername, ca, verify = true }: TlsNames, ms: number): Promise<string> {
    if (this.#failure || !this.#socket) throw this.#failure
    // What came before the handshake was never protected: an attacker may have put it there.
    if (this.unasked) throw this.#fail("protocol", "the server spoke before the TLS handshake")
    const name = servername ?? host
    this.#socket.reload({ socket: { drain: () => {} } }) // it would give out the encrypted bytes, too
    const [, socket] = this.#socket.upgradeTLS<SmtpConnection>({
      data: this,
      socket: SmtpConnection.#TLS,
      tls: {
        serverName: isIP(name) === 0 ? name : "", // never an address (RFC 6066, 3)
        ...(ca !== undefined && { ca }),
        minVersion: TLS_1_2,
        rejectUnauthorized: false, // it is checked below, in words of ours
      } as Bun.TLSOptions,
    })
    this.#socket = socket
    this.encrypted = socket
    await this.#until("handshake", "for the TLS handshake", ms).catch((error: Error) => {
      // Every error here belongs to the handshake. A server that has not greeted was asked for TLS at once.
      throw new SmtpConnectionError("tls", tlsWords(error.message, name, this.#owed > 0))
    })
    if (verify) this.#checkCertificate(socket, name)
    return socket.getTLSVersion()
  }

  /** The runtime checks only names that it sends to the server, so every name is checked here. */
  #checkCertificate(socket: Socket<SmtpConnection>, name: string) {
    const wrong = socket.authorized
      ? checkServerIdentity(name, socket.getPeerCertificate())
      : (socket.getAuthorizationError() ?? new Error("certificate not accepted"))
    if (wrong) throw this.#fail("tls", tlsWords(`tls: ${wrong.message}`, name, this.#owed > 0))
  }

  close(): void {
    this.#fail("connection", "closed by us")
  }

  /** Says goodbye without waiting for the answer, of which nothing is read. */
  quit(): void {
    if (!this.alive) return
    this.#failure = new SmtpConnectionError("connection", "closed by us")
    this.#put("QUIT\r\n")
    deadline(FAREWELL_MS, () => this.#socket?.close())
  }

  #opened(socket: Socket<SmtpConnection>) {
    this.#socket = socket
    if (this.#failure) return void socket.close() // it came after the time-out
    socket.setNoDelay(true)
    this.#wake("connect")
  }

  #closed(error?: NodeJS.ErrnoException) {
    if (error) this.#broken(`${error.syscall} ${error.code}`)
    else this.#fail("connection", "the server closed the connection")
  }

  #broken(words: string) {
    const kind = this.encrypted ? "tls" : "connection"
    this.#fail(kind, `${kind}: ${words}`)
  }

  #receive(bytes: Buffer) {
    if (this.#failure) return void this.#socket?.close()
    const replies = this.#reader.push(bytes, this.#owed)
    this.#owed -= replies.length
    this.#replies.push(...replies)
    // Replies before the fault are delivered first: they came in order.
    if (this.#replies.length > 0) this.#wake("reply")
    if (this.#reader.fault !== undefined) this.#fail("protocol", this.#reader.fault)
  }

  /** Gives it to the kernel, and keeps a copy of what that has no room for. */
  #put(given: string | Uint8Array) {
    const taken = this.#unsent ? 0 : Math.max(this.#socket?.write(given) ?? 0, 0) // negative: closed
    if (taken === Buffer.byteLength(given)) return
    const rest = Buffer.from(given as string).subarray(taken)
    this.#unsent = this.#unsent ? Buffer.concat([this.#unsent, rest]) : rest
  }

  #flush() {
    const unsent = this.#unsent
    this.#unsent = undefined
    if (unsent) this.#put(unsent)
    if (!this.#unsent) this.#wake("drain")
  }

  #fail(kind: SmtpConnectionError["kind"], message: string): SmtpConnectionError {
    if (!this.#failure) {
      this.#failure = new SmtpConnectionError(kind, message)
      const wait = this.#take()
      this.#socket?.close()
      wait?.reject(this.#failure)
    }
    return this.#failure
  }

  /** A reply also ends the wait for room: a server that answers early takes no more. */
  #wake(event: Wait["event"]) {
    const awaited = this.#wait?.event
    if (awaited === event || (awaited === "drain" && event === "reply")) this.#take()?.resolve()
  }

  #take(): Wait | undefined {
    const wait = this.#wait
    this.#wait = undefined
    wait?.dropDeadline()
    return wait
  }

  #until(event: Wait["event"], what: string, ms: number): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      const late = () => this.#fail("timeout", `timed out after ${ms / 1000} s ${what}`)
      this.#wait = { event, resolve, reject, dropDeadline: deadline(ms, late) }
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
    const bare = bytes.endsWith("\r") ? bytes.slice(0, -1) : bytes
    const decoded = PRINTABLE.test(bare) ? bare : Buffer.from(bare, "latin1").toString()
    const line = veiled(decoded, this.secrets)
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

/** As nearly every line is: nothing in it has to be decoded, or cleaned. */
const PRINTABLE = /^[ -~]*$/

/** As long as this, a part of a secret is taken for it; a shorter one may be any word. */
const TELLING = 12
const SHORTEST = 8

/** Some servers repeat the command that they dislike: what comes from a secret on is left out. */
function veiled(line: string, secrets: string[]): string {
  if (secrets.length === 0) return line
  const starts = secrets
    .filter((secret) => secret.length >= SHORTEST)
    .map((one) => one.slice(0, TELLING))
  return starts.reduce((rest, start) => {
    const at = rest.indexOf(start)
    return at < 0 ? rest : `${rest.slice(0, at)}***`
  }, line)
}

const clean = (text: string) =>
  PRINTABLE.test(text) ? text : text.replace(/[\p{Cc}\u2028\u2029]/gu, "?")
