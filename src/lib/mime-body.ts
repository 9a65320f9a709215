/** RFC 5322, 2.1.1: octets of a line, without its end. */
const MAX_LINE = 998

/** RFC 2045, 6.7 and 6.8. */
const ENCODED_LINE = 76

/** Quoted-printable is smaller below this share of escaped bytes; base64 is a third larger. */
const MAX_ESCAPED = 0.17

/** Above this, quoted-printable costs time that nobody gains by. */
const LARGE = 20_000

/** Room for the "=" of a soft line end, and for a "From " at the beginning that must be escaped. */
const PIECE = ENCODED_LINE - 3

const NL = "\r\n"

/** Neither printable nor white space inside a line; "=" is what escapes begin with. */
const UNSAFE = /[^\t\r\n -<>-~]+/g

export interface EncodedBody {
  encoding: "7bit" | "quoted-printable" | "base64"
  /** ASCII. Says what was given and nothing more: a line end that a format wants is not part of it. */
  text: string
}

/**
 * A text part whose line ends are CRLF only (`canonical`), in the plainest form that arrives as it is.
 * A line that begins with "From " is escaped, because mailboxes of one file put a ">" before it, which
 * would break a signature.
 */
export function encodedBody(text: string): EncodedBody {
  if (isPlain(text)) return { encoding: "7bit", text }
  const bytes = Buffer.from(text)
  const tight = bytes.length > LARGE || escapes(bytes) > bytes.length * MAX_ESCAPED
  if (tight) return { encoding: "base64", text: base64Lines(bytes) }
  return { encoding: "quoted-printable", text: quotedPrintable(text) }
}

function isPlain(text: string): boolean {
  if (Buffer.byteLength(text) !== text.length || text.includes("\0")) return false
  if (text.startsWith("From ") || text.includes("\nFrom ")) return false
  let from = 0
  while (text.length - from > MAX_LINE) {
    const end = text.indexOf(NL, from)
    if (end === -1 || end - from > MAX_LINE) return false
    from = end + 2
  }
  return true
}

function escapes(bytes: Uint8Array): number {
  let count = 0
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] ?? 0 // by index: an iterator takes fifteen times as long
    if (byte > 126 || byte === EQUALS) count += 1
  }
  return count
}

function base64Lines(bytes: Buffer): string {
  const text = bytes.toString("base64")
  const lines: string[] = []
  for (let from = 0; from < text.length; from += ENCODED_LINE) {
    lines.push(text.slice(from, from + ENCODED_LINE))
  }
  return lines.join(NL)
}

/** RFC 2045, 6.7. CRLF stays a line end; what a line ends with is never white space. */
function quotedPrintable(text: string): string {
  const known = new Map<string, string>()
  const escaped = text.replace(UNSAFE, (run) => {
    const written = known.get(run) ?? escapeOf(run)
    known.set(run, written)
    return written
  })
  return escaped.split(NL).flatMap(softLines).join(NL)
}

const escapeOf = (run: string) =>
  Buffer.from(run).toString("hex").toUpperCase().replace(/../g, "=$&")

function softLines(line: string): string[] {
  const last = line.at(-1)
  const ended = last === " " || last === "\t" ? line.slice(0, -1) + SPACES[last] : line
  const pieces: string[] = []
  let from = 0
  while (ended.length - from > PIECE) {
    // An escape stays whole.
    const equals = ended.lastIndexOf("=", from + PIECE - 1)
    const cut = equals > from + PIECE - 3 ? equals : from + PIECE
    pieces.push(`${unmistakable(ended.slice(from, cut))}=`)
    from = cut
  }
  pieces.push(unmistakable(ended.slice(from)))
  return pieces
}

const EQUALS = 61
const SPACES = { " ": "=20", "\t": "=09" }

const unmistakable = (line: string) => (line.startsWith("From ") ? `=46${line.slice(1)}` : line)
