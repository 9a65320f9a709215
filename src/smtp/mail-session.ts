import type { Certificate } from "../core/certificate"
import { newRequestId } from "../core/ids"

/** One connection of a mail server: what its handlers may know and keep. */
export interface MailSession<Identity = unknown> {
  /** For log lines. A reply that refuses has an id of its own. */
  id: string
  /** Of the client; behind a trusted proxy the one that the proxy names. */
  address: string
  /** Empty before HELO or EHLO, and again after STARTTLS. */
  helo: string
  tls: { version: string; cipher: string } | null
  /** What `authenticate` answered. */
  identity: Identity | undefined
}

/** A reply that refuses: `<code> <enhanced> <text>`; `close` ends the session behind it. */
export class SmtpReplyError extends Error {
  readonly code: number
  readonly enhanced: string
  readonly close: boolean

  constructor(code: number, enhanced: string, text: string, options: { close?: boolean } = {}) {
    super(text)
    this.name = "SmtpReplyError"
    this.code = code
    this.enhanced = enhanced
    this.close = options.close ?? false
  }
}

const MAX_MESSAGE = 400

/**
 * The text of a refusal in the form of contract 22: `<api_code>: <message> (<request_id>)`. It is one line
 * of printable ASCII, since a message may quote what the client sent.
 */
export function refusalText(api_code: string, message: string, id = newRequestId()): string {
  const plain = message.replace(/\s+/g, " ").replace(/[^ -~]/gu, "?")
  return `${api_code}: ${plain.slice(0, MAX_MESSAGE)} (${id})`
}

export const smtpRefusal = (code: number, enhanced: string, api_code: string, message: string) =>
  new SmtpReplyError(code, enhanced, refusalText(api_code, message))

export interface ReceivedMail {
  /** As the client sent it, without the dots of SMTP. CRLF line ends only, no NUL. */
  raw: Uint8Array
  /** Empty for the null sender. */
  from: string
  to: string[]
  smtputf8: boolean
  eight_bit: boolean
  received_at: string
}

export interface SmtpLimits {
  /** Of one message, in bytes. */
  size: number
  recipients: number
  connections: number
  /** Connections from one IPv4 address, or one /64 of IPv6. */
  per_address: number
  /** New connections in a minute from one address. */
  per_minute?: number
}

export interface SmtpDeadlines {
  /** From the connection to the first command, with PROXY header and TLS handshake. */
  greeting: number
  /** From a reply to the end of the next command. */
  command: number
  /** Without a byte of the message. */
  data_idle: number
  data: number
}

export interface MailServerOptions<Identity = unknown> {
  kind: "submission" | "inbound"
  /** The name in the greeting and in the answer to EHLO. */
  host: string
  /** Port 0 takes a free one. */
  listen: { host: string; port: number }
  /** A second port that begins with TLS. */
  implicit?: { host: string; port: number }
  certificate: Certificate
  limits: SmtpLimits
  /** Networks of the proxies that begin each connection with a PROXY header. */
  trusted_proxies: () => string[]
  /** Throws SmtpReplyError. Without it the server offers no login. */
  authenticate?: (
    login: { username: string; password: string },
    session: MailSession<Identity>,
  ) => Promise<Identity>
  onSender?: (
    sender: { address: string; size: number | undefined },
    session: MailSession<Identity>,
  ) => Promise<void>
  onRecipient: (address: string, session: MailSession<Identity>) => Promise<void>
  /** Answers with the text behind the 250, such as `2.0.0 Ok: queued as …`. */
  onMail: (mail: ReceivedMail, session: MailSession<Identity>) => Promise<string>
  /** Asked before each connection, sender and message; 421 also ends the session. */
  isReady: () => SmtpReplyError | undefined
  /** For tests; the defaults are those of contract 22. */
  deadlines?: Partial<SmtpDeadlines>
  /** For all messages that are being received together, in bytes. */
  memory?: number
}
