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
  /** As the client sent it, mended on other ports than submission, without the dots of SMTP. CRLF line ends only, no NUL. */
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

/** In milliseconds. */
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
  /** `mailbox` is the one that catches mail on this machine. */
  kind: "submission" | "inbound" | "mailbox"
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
    sender: { address: string; size: number | undefined; envid?: string | null | undefined },
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

/** RFC 5321 4.5.3.1.5: 512 bytes with code, enhanced code and line end. */
const MOST_LINE_BYTES = 480
/** An enhanced status code at the start of a text (RFC 3463). */
export const ENHANCED = /^[245]\.\d{1,3}\.\d{1,3} /

interface Position {
  kind: MailServerOptions["kind"]
  secure: boolean
  /** Whether STARTTLS would work. */
  has_tls: boolean
}

/**
 * The reply that a client gets for what the library, or a handler, wants to say: the code, and its
 * lines. A text that begins with an enhanced code is ours and stays; the library's own refusals get
 * the codes of contract 22. A long text becomes several lines.
 */
export function inWords(
  code: number,
  data: string | string[] | null | undefined,
  context: string | false | undefined,
  place: Position,
): [code: number, lines: string[]] {
  if (Array.isArray(data)) return [code, offered(data, place)]
  const text = data ?? ""
  if (ENHANCED.test(text)) return [code, folded(text)]
  if (code < 400) return [code, [text]]
  const refusal = reworded(code, text, context || "", place)
  return [refusal.code, folded(`${refusal.enhanced} ${refusal.message}`)]
}

/** Of EHLO: a login is offered only where TLS protects it, and TLS only where there is one. */
const offered = (lines: string[], { secure, has_tls }: Position) =>
  lines.filter((line) => (line === "STARTTLS" ? has_tls : secure || !line.startsWith("AUTH ")))

function reworded(
  code: number,
  text: string,
  context: string,
  { kind, secure }: Position,
): SmtpReplyError {
  if (code === 530) return smtpRefusal(530, "5.7.0", "unauthorized", secure ? LOG_IN : START_TLS)
  if (code === 538) return smtpRefusal(538, "5.7.11", "unauthorized", START_TLS)
  if (context === "TOO_MANY_RECIPIENTS") {
    return smtpRefusal(452, "4.5.3", "validation_error", "The mail has too many recipients")
  }
  if (context === "MESSAGE_TOO_BIG") {
    return smtpRefusal(552, "5.3.4", "payload_too_large", "The message is larger than SIZE")
  }
  if (context === "MAILBOX_SYNTAX_ERROR" && kind === "inbound") {
    return smtpRefusal(550, "5.7.1", "forbidden", "This server relays no mail")
  }
  if (context === "MAILBOX_SYNTAX_ERROR" || context === "SENDER_SYNTAX_ERROR") {
    return smtpRefusal(501, "5.1.3", "validation_error", "This is no address")
  }
  if (code === 451) return smtpRefusal(451, "4.3.0", "internal_error", "Try again later")
  const api_code = code === 421 ? "rate_limit_exceeded" : "validation_error"
  const enhanced = STANDARD[code] ?? `${Math.floor(code / 100)}.5.0`
  return smtpRefusal(code, enhanced, api_code, text.replace(/^Error: /, ""))
}

const LOG_IN = "Log in with AUTH first; the password is an API key"
const START_TLS = "Begin TLS with STARTTLS first"

/** RFC 3463 and RFC 5248 for what the library refuses by itself. */
const STANDARD: Record<number, string> = {
  421: "4.7.0",
  500: "5.5.2",
  501: "5.5.4",
  502: "5.5.1",
  503: "5.5.1",
  504: "5.5.4",
  535: "5.7.8",
  550: "5.7.1",
  554: "5.6.0",
}

/** Each line begins with the enhanced code. Texts outside ASCII need an extension that few have. */
function folded(text: string): string[] {
  const ascii = text.replace(/[^\x20-\x7e]/g, "?")
  if (ascii.length <= MOST_LINE_BYTES) return [ascii]
  const [enhanced = ""] = ENHANCED.exec(ascii) ?? []
  const lines: string[] = []
  let line = enhanced.trimEnd()
  for (const word of ascii.slice(enhanced.length).split(" ")) {
    if (line.length + 1 + word.length > MOST_LINE_BYTES) {
      lines.push(line)
      line = enhanced.trimEnd()
    }
    line += ` ${word.slice(0, MOST_LINE_BYTES)}`
  }
  return [...lines, line]
}
