import { type SmtpReplyError, smtpRefusal } from "./mail-session"

/** RFC 5321 4.5.3.1.5: 512 bytes with code, enhanced code and line end. */
const MOST_LINE_BYTES = 480
/** An enhanced status code at the start of a text (RFC 3463). */
export const ENHANCED = /^[245]\.\d{1,3}\.\d{1,3} /

interface Position {
  kind: "submission" | "inbound"
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
