import { connect as connectPlain, isIP, type Socket } from "node:net"
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls"
import { exits, Failure } from "./errors"
import { millis } from "./time"

export interface WireOptions {
  host: string
  port: number
  /** For each reply, in milliseconds. */
  timeout: number
  /** Beside the well-known authorities, in PEM. */
  ca: string | undefined
}

/** The certificate that a server showed, and whether it can be trusted. */
export type ShownCertificate = {
  subject: string
  issuer: string
  names: string
  valid_from: string
  valid_to: string
  fingerprint: string
  trusted: boolean
  reason: string | null
}

const MOST_REPLY_BYTES = 65_536

/** One connection to a mail server, as a client that reads replies. */
export class SmtpWire {
  #socket: Socket | TLSSocket | undefined
  #unread = ""
  #ended: Error | undefined
  #wake = () => {}
  readonly #options: WireOptions

  constructor(options: WireOptions) {
    this.#options = options
  }

  /** Connects, with TLS from the first byte where it is wanted. */
  async open(is_implicit: boolean): Promise<void> {
    const { host, port } = this.#options
    const socket = is_implicit
      ? connectTls({ host, port, ...this.#tls() })
      : connectPlain({ host, port })
    await this.#ready(socket, is_implicit ? "secureConnect" : "connect")
    this.#listen(socket)
  }

  /** The TLS handshake behind STARTTLS. */
  async secure(): Promise<void> {
    const raw = this.#socket as Socket
    raw.removeAllListeners("data")
    this.#unread = ""
    const socket = connectTls({ socket: raw, ...this.#tls() })
    await this.#ready(socket, "secureConnect")
    this.#listen(socket)
  }

  /** Judged here and not by the socket, so that a person sees what is wrong with it. */
  get session(): { version: string; cipher: string; certificate: ShownCertificate } | undefined {
    const socket = this.#socket
    if (!socket || !("getPeerCertificate" in socket)) return undefined
    const shown = socket.getPeerCertificate()
    const reason = socket.authorized ? null : String(socket.authorizationError ?? "not trusted")
    return {
      version: socket.getProtocol() ?? "",
      cipher: socket.getCipher().name,
      certificate: {
        subject: nameOf(shown.subject),
        issuer: nameOf(shown.issuer),
        names: shown.subjectaltname ?? "",
        valid_from: shown.valid_from,
        valid_to: shown.valid_to,
        fingerprint: shown.fingerprint256,
        trusted: socket.authorized,
        reason,
      },
    }
  }

  write(text: string): void {
    this.#socket?.write(text)
  }

  /** The lines of the next reply. Throws where the server ends the connection or is silent. */
  async reply(): Promise<string[]> {
    const since = millis()
    for (;;) {
      const [whole] = /^(?:\d{3}-.*\r?\n)*\d{3}(?: .*)?\r?\n/.exec(this.#unread) ?? []
      if (whole !== undefined) {
        this.#unread = this.#unread.slice(whole.length)
        return whole.trimEnd().split(/\r?\n/)
      }
      if (this.#ended) throw this.#ended
      if (this.#unread.length > MOST_REPLY_BYTES) throw this.#failure("The reply does not end.")
      const left = this.#options.timeout - (millis() - since)
      if (left <= 0) throw this.#failure("The server does not answer.")
      await this.#more(left)
    }
  }

  close(): void {
    this.#socket?.destroy()
  }

  #tls(): ConnectionOptions {
    const { host, ca } = this.#options
    return {
      rejectUnauthorized: false,
      minVersion: "TLSv1.2",
      ...(isIP(host) === 0 && { servername: host }),
      ...(ca !== undefined && { ca }),
    }
  }

  #ready(socket: Socket | TLSSocket, event: "connect" | "secureConnect"): Promise<void> {
    this.#socket = socket
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const fail = (error?: Error) => reject(this.#failure(reasonOf(error)))
    const timer = setTimeout(() => fail(new Error("it took too long")), this.#options.timeout)
    socket.once(event, resolve)
    socket.once("error", fail)
    socket.once("close", () => fail(new Error("the server closed the connection")))
    return promise.finally(() => clearTimeout(timer))
  }

  #listen(socket: Socket | TLSSocket) {
    socket.on("data", (chunk: Buffer) => {
      this.#unread += chunk.toString("utf8")
      this.#wake()
    })
    const ended = () => {
      this.#ended ??= this.#failure("The server ended the connection.")
      this.#wake()
    }
    socket.on("error", ended).on("close", ended)
  }

  #more(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #failure(reason: string): Failure {
    const { host, port } = this.#options
    const server = `${host}:${port}`
    return new Failure(exits.unreachable, "unreachable", `${server}: ${reason}`, {
      details: { server },
      hint: "check host and port; 465 begins with TLS, 587 with STARTTLS",
    })
  }
}

const reasonOf = (error: Error | undefined) =>
  error ? `The connection failed: ${error.message}.` : "The connection failed."

const nameOf = (name: unknown): string =>
  Object.entries((name ?? {}) as Record<string, unknown>)
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(", ")
