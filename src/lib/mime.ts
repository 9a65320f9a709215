/** RFC 5322, 2.1.1: octets of a line, without its end. */
const MAX_LINE = 998

/** RFC 2045, 6.7 and 6.8. */
const ENCODED_LINE = 76

/** Quoted-printable is smaller below this share of escaped bytes; base64 is a third larger. */
const MAX_ESCAPED = 0.17

/** Above this size quoted-printable costs more time than its readability is worth. */
const LARGE = 20_000

/** Room for the "=" of a soft line end, and for a "From " at the beginning that must be escaped. */
const PIECE = ENCODED_LINE - 3

const NL = "\r\n"

/** Neither printable nor white space inside a line; "=" is what escapes begin with. */
const UNSAFE = /[^\t\r\n -<>-~]+/g

interface EncodedBody {
  encoding: "7bit" | "quoted-printable" | "base64"
  /** ASCII, without a line end that only the format requires. */
  text: string
}

/**
 * A text part with CRLF line ends (`canonical`), in the plainest encoding that arrives unchanged. A
 * line that begins with "From " is escaped, because mbox files put a ">" before it, which would
 * break a signature.
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

/** In lines of 76 characters, the last one without its end (RFC 2045, 6.8). */
export function base64Lines(bytes: Buffer): string {
  const text = bytes.toString("base64")
  const lines: string[] = []
  for (let from = 0; from < text.length; from += ENCODED_LINE) {
    lines.push(text.slice(from, from + ENCODED_LINE))
  }
  return lines.join(NL)
}

/** RFC 2045, 6.7. CRLF stays a line end; what a line ends with is never white space. */
export function quotedPrintable(text: string): string {
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

/** What is better on one line; a hard limit is 998 (RFC 5322, 2.1.1). */
const LINE_LENGTH = 76

/** A word longer than this is encoded, which cuts it into pieces, because a line must not be longer. */
const MAX_WORD = 900

/** Makes encoded words of 64 characters, which find room behind any usual name of a field. */
const ENCODED_BYTES = 39

const PLAIN = /^[!-~]+(?: {1,20}[!-~]+)*$/
const ATOMS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const PRINTABLE = /^[ -~]*$/

/** Longer quoted strings could not be folded without changing what they say. */
const MAX_QUOTED = 60

/**
 * A field of free text, folded, with its CRLF. Text that is not ASCII, or that unfolding would change,
 * goes as encoded words (RFC 2047), so that it is read exactly as it was given.
 */
export function textField(name: string, value: string): string {
  if (value === "") return `${name}:\r\n`
  if (!isPlainValue(value)) return folded(name, encodedWords(value))
  if (name.length + value.length < LINE_LENGTH) return `${name}: ${value}\r\n`
  return folded(name, value.match(/(?:^| +)[^ ]+/g)?.map(withoutFirstSpace) ?? [])
}

/** A field of mailboxes, folded, with its CRLF. The addresses are in their wire form already. */
export function mailboxField(name: string, list: { name: string; address: string }[]): string {
  const words = list.flatMap((one, index) => {
    const address = one.name === "" ? one.address : `<${one.address}>`
    return [...phrase(one.name), index === list.length - 1 ? address : `${address},`]
  })
  return folded(name, words)
}

const isPlainValue = (value: string) =>
  PLAIN.test(value) && !value.includes("=?") && (value.length <= MAX_WORD || hasShortWords(value))

const hasShortWords = (value: string) => value.split(" ").every((word) => word.length <= MAX_WORD)

/** The fold itself stands for one space; further ones lead the word. */
const withoutFirstSpace = (word: string) => (word.startsWith(" ") ? word.slice(1) : word)

/** Each word comes after a space, or after a line end and a space. */
function folded(name: string, words: string[]): string {
  let text = `${name}:`
  let column = text.length
  for (const [index, word] of words.entries()) {
    const fold = index > 0 || word.startsWith("=?") || word.length > MAX_WORD - 100
    if (fold && column + 1 + word.length > LINE_LENGTH) {
      text += "\r\n"
      column = 0
    }
    text += ` ${word}`
    column += 1 + word.length
  }
  return `${text}\r\n`
}

/** A display name: atoms, a quoted string, or encoded words. */
function phrase(name: string): string[] {
  if (name === "") return []
  if (ATOMS.test(name) && !name.includes("=?") && name.length <= MAX_QUOTED) return name.split(" ")
  const quotable = PRINTABLE.test(name) && !name.includes("=?") && name.length <= MAX_QUOTED
  return quotable ? [`"${name.replace(/["\\]/g, "\\$&")}"`] : encodedWords(name)
}

/** Whole characters in each word (RFC 2047, 5). Readers drop the white space between two of them. */
function encodedWords(text: string): string[] {
  const words: string[] = []
  let chunk = ""
  let bytes = 0
  for (const character of text) {
    const size = Buffer.byteLength(character)
    if (bytes + size > ENCODED_BYTES) {
      words.push(encodedWord(chunk))
      chunk = ""
      bytes = 0
    }
    chunk += character
    bytes += size
  }
  return [...words, encodedWord(chunk)]
}

const encodedWord = (text: string) => `=?UTF-8?B?${Buffer.from(text).toString("base64")}?=`
