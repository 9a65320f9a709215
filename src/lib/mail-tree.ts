import { charsetNear, textOf } from "./charset"
import { canonical, decodeWords, endsLine, fieldOf, splitHead, withoutLineEnds } from "./mail-text"

/** Deeper or larger messages are made to hurt: no mail program writes them (contract 22, section 2). */
export const MAX_DEPTH = 50
export const MAX_PARTS = 1_000
export const MAX_FIELDS = 1_000

/** A part without parts of its own. A `message/rfc822` is one as well: it stays whole. */
export interface MailLeaf {
  /** Lower-case names, unfolded values as they stand, in the order of the part. */
  fields: [name: string, value: string][]
  /** In lower case, without parameters: `text/plain`. */
  content_type: string
  params: Record<string, string>
  disposition: string | null
  filename: string | null
  /** Without angle brackets. */
  content_id: string | null
  /** `base64`, `quoted-printable`, or `7bit` for all that stands as it is. */
  encoding: string
  /** As it stands in the message: encoded. */
  encoded: Uint8Array
  /** A charset that the mail names elsewhere, or an empty text. */
  nearby: () => string
}

/**
 * Why a message cannot be read. `boundary`: a multipart does not say how its parts are told apart; `unmarked`:
 * what it says occurs nowhere. Of these two there is what could be read all the same.
 */
type MailTreeProblem = "depth" | "parts" | "fields" | "boundary" | "unmarked"

/** The same for people. */
export const TREE_PROBLEMS: Record<MailTreeProblem, string> = {
  depth: "The message has more than 50 levels of parts.",
  parts: "The message has more than 1,000 parts.",
  fields: "A part of the message has more than 1,000 header fields.",
  boundary: "A multipart of the message has no boundary.",
  unmarked: "The boundary of a multipart does not occur in the message.",
}

/** Whether a message is made to hurt, so that nothing below its header counts. */
export const isTooComplex = ({ problem }: MailTree): boolean =>
  problem !== null && problem !== "boundary" && problem !== "unmarked"

export interface MailTree {
  leaves: MailLeaf[]
  problem: MailTreeProblem | null
}

/**
 * The leaves of a message (RFC 2045 and 2046) in their order. It never throws: what could be read
 * before a problem is there. Bytes are views of `raw`.
 */
export function readTree(raw: Uint8Array): MailTree {
  const tree: MailTree = { leaves: [], problem: null }
  const message = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  readPart(message, { fallback: "text/plain", depth: 0, nearby: charsetNear(message) }, tree)
  return tree
}

interface PartPlace {
  /** Its type where it names none. */
  fallback: string
  depth: number
  nearby: () => string
}

function readPart(part: Buffer, place: PartPlace, tree: MailTree) {
  const { fallback, depth, nearby } = place
  const { fields, body } = splitHead(part, { is_part: depth > 0, nearby })
  if (fields.length > MAX_FIELDS) tree.problem ??= "fields"
  const { value, params } = typeOf(fields, body, fallback)
  const leaf = leafOf(fields, value, params, body, nearby)
  if (!value.startsWith("multipart/")) {
    tree.leaves.push(leaf)
    if (tree.leaves.length > MAX_PARTS) tree.problem ??= "parts"
    return
  }
  if (depth >= MAX_DEPTH) tree.problem ??= "depth"
  if (!params.boundary) tree.problem ??= "boundary"
  const inside = value === DIGEST ? MESSAGE : "text/plain"
  readMultipart(leaf, { ...place, depth: depth + 1, fallback: inside }, tree)
}

/** Where its parts hold nothing, and other text looks like parts, the whole is text. */
function readMultipart(leaf: MailLeaf, place: PartPlace, tree: MailTree) {
  const before = tree.leaves.length
  if (isTooComplex(tree)) return
  for (const part of partsOf(leaf)) {
    readPart(part, place, tree)
    if (isTooComplex(tree)) return
  }
  const parts = tree.leaves.slice(before)
  if (parts.length > 0 && !(parts.every(isBlank) && hasOtherMarks(leaf))) return
  tree.problem ??= "unmarked"
  if (!isBlank(leaf)) tree.leaves.push({ ...leaf, content_type: "text/plain" })
}

const isBlank = ({ encoded }: MailLeaf): boolean => !encoded.some((byte) => byte > 32)

/** Whether lines of the body look like delimiters, and are none of its boundary. */
function hasOtherMarks({ encoded, params }: MailLeaf): boolean {
  const own = `--${params.boundary}`
  return Buffer.from(encoded)
    .toString("latin1")
    .split("\r\n")
    .some((line) => line.startsWith("--") && ![own, `${own}--`].includes(line.trimEnd()))
}

const DIGEST = "multipart/digest"
const MESSAGE = "message/rfc822"

/** The body is searched for each of them. */
const MOST_TYPES = 10

/** Of two fields the one whose boundary occurs. */
function typeOf(fields: MailLeaf["fields"], body: Buffer, fallback: string): Parameterized {
  const types = fields.filter(([name]) => name === "content-type").slice(0, MOST_TYPES)
  const all = types.map(([, value]) => parameterized(value))
  const marks = ({ params }: Parameterized) =>
    params.boundary && body.includes(`--${params.boundary}`)
  const type = (all.length > 1 ? all.find(marks) : undefined) ?? all[0]
  const [value] = /^[^\s/()]+\/[^\s/()]+/.exec(type?.value ?? "") ?? []
  return { value: value ?? fallback, params: type?.params ?? {} }
}

/** A line that looks like a delimiter: fields of MIME come behind it. */
const DELIMITER = /(?:^|\r\n)--([^\r\n]{1,200})\r\n(?:content|mime)-[a-z-]+[ \t]*:/i
const SEARCHED_BYTES = 64 * 1024

/**
 * The parts of a multipart. Where its boundary marks none, the one that the body shows does; and a body
 * that should not be encoded as a whole sometimes is.
 */
function* partsOf(leaf: MailLeaf): Generator<Buffer> {
  const { boundary = "" } = leaf.params
  for (const bodyOf of [asItStands, decodedLines]) {
    const body = bodyOf(leaf)
    for (const markOf of [() => boundary.trimEnd(), shownBoundary]) {
      const mark = markOf(body)
      let is_read = false
      for (const { begin, end, is_part } of mark ? piecesOf(body, Buffer.from(`--${mark}`)) : []) {
        if (is_part) yield body.subarray(begin, end)
        is_read ||= is_part
      }
      if (is_read) return
    }
    if (leaf.encoding === PLAIN) return
  }
}

const asItStands = ({ encoded }: MailLeaf): Buffer =>
  Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength)

/** What is encoded may have any line ends. */
const decodedLines = (leaf: MailLeaf): Buffer =>
  Buffer.from(canonical(contentOf(leaf).toString("latin1")), "latin1")

const shownBoundary = (body: Buffer): string | undefined =>
  DELIMITER.exec(body.toString("latin1", 0, SEARCHED_BYTES))?.[1]?.trimEnd()

/**
 * The pieces of a body before, between and behind its delimiter lines (RFC 2046, 5.1.1), by where they begin and
 * end. The line end before a delimiter belongs to it. The last part may lack its end, and some come behind the end.
 */
export function* piecesOf(body: Buffer, delimiter: Buffer) {
  let begin = 0
  let is_part = false
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + 1)) {
    if (at > 0 && !endsLine(body, at)) continue
    const line = body.indexOf("\r\n", at)
    const end = line === -1 ? body.length : line + 2
    const rest = body.toString("latin1", at + delimiter.length, end).trim()
    if (rest !== "" && rest !== "--") continue // a longer boundary that begins like this one
    yield { begin, end: Math.max(begin, at - 2), is_part }
    begin = end
    is_part = rest === "" && line !== -1
  }
  yield { begin, end: body.length, is_part }
}

function leafOf(
  fields: MailLeaf["fields"],
  content_type: string,
  params: Record<string, string>,
  encoded: Buffer,
  nearby: () => string,
): MailLeaf {
  const disposition = parameterized(fieldOf(fields, "content-disposition") ?? "")
  const filename = disposition.params.filename ?? params.name
  const content_id = fieldOf(fields, "content-id")?.trim().replace(/^<|>$/g, "")
  return {
    fields,
    content_type,
    params,
    disposition: disposition.value || null,
    filename: filename ? decodeWords(filename) : null,
    content_id: content_id || null,
    encoding: encodingOf(fields),
    encoded,
    nearby,
  }
}

/** By what it begins with, for it comes in quotes and with other words, too. Of two the one that says something. */
function encodingOf(fields: MailLeaf["fields"]): string {
  for (const [field, value] of fields) {
    const name = field === "content-transfer-encoding" ? value.replace(/[\s"';-]+/g, "") : ""
    if (/^base64/i.test(name)) return "base64"
    if (/^quotedprintable/i.test(name)) return "quoted-printable"
  }
  return PLAIN
}

/** As it stands, whichever bits it has. */
const PLAIN = "7bit"

/** Of parameters. A file name of 255 characters has room in it, however it is encoded. */
const MAX_PARAMETERS = 8 * 1024

const GAP = /[\s;]+/y
const PARAMETER = /([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|([^;]*))/y

/** What stands behind each run of semicolons. A single pattern would look at a long run again and again. */
function* parametersIn(text: string): Generator<RegExpExecArray> {
  for (let at = text.indexOf(";"); at !== -1; at = text.indexOf(";", at)) {
    GAP.lastIndex = at
    GAP.test(text)
    at = GAP.lastIndex
    PARAMETER.lastIndex = at
    const found = PARAMETER.exec(text)
    if (!found) continue
    at = PARAMETER.lastIndex
    yield found
  }
}

/** A value and its parameters, those of RFC 2231 put together and decoded, names in lower case. */
export function parameterized(text: string): Parameterized {
  const params: Record<string, string> = Object.create(null)
  const pieces = new Map<string, ParameterPiece[]>()
  const [before = ""] = text.split(";", 1)
  const is_bare = before.includes("=") // its first semicolon is missing
  const value = is_bare ? (/^\s*[^\s=]+(?=\s)/.exec(before)?.[0] ?? "") : before
  const rest = `;${text.slice(value.length, value.length + MAX_PARAMETERS)}`
  for (const [, given = "", quoted, plain] of parametersIn(rest)) {
    const content = quoted?.replace(/\\(.)/g, "$1") ?? plain?.trim() ?? ""
    const [, name = "", at = "0", star = ""] = /^([^*]+)(?:\*(\d{1,3}))?(\*?)$/.exec(given) ?? []
    const key = name.toLowerCase()
    if (given.includes("*") && key) {
      const known = pieces.get(key) ?? []
      known.push({ at: Number(at), text: content, coded: star === "*" })
      pieces.set(key, known)
    } else if (key) params[key] ??= content
  }
  for (const [name, list] of pieces) params[name] = withoutLineEnds(joined(list))
  return { value: value.trim().toLowerCase(), params }
}

interface Parameterized {
  /** In lower case. */
  value: string
  params: Record<string, string>
}

interface ParameterPiece {
  at: number
  text: string
  coded: boolean
}

/** RFC 2231, 3 and 4: pieces in the order of their numbers, octets in percent, the charset first. */
function joined(list: ParameterPiece[]): string {
  const sorted = list.sort((one, other) => one.at - other.at)
  if (sorted.every(({ coded }) => !coded)) return sorted.map(({ text }) => text).join("")
  const [, charset = "", first = sorted[0]?.text ?? ""] =
    /^([^']*)'[^']*'(.*)$/s.exec(sorted[0]?.text ?? "") ?? []
  const parts = sorted.map(({ text, coded }, index) => {
    const content = index === 0 && coded ? first : text
    return coded ? octets(content) : Buffer.from(content)
  })
  return textOf(Buffer.concat(parts), charset)
}

/** What should be in percent, but is not, is UTF-8. */
const octets = (text: string): Buffer =>
  Buffer.from(
    Buffer.from(text)
      .toString("latin1")
      .replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  )

/** The content of a leaf, decoded. What an encoding cannot mean is left out, as mail programs do. */
export function contentOf({ encoding, encoded }: Pick<MailLeaf, "encoding" | "encoded">): Buffer {
  const bytes = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength)
  if (encoding === "base64") return isBase64(bytes) ? fromBase64(bytes.toString("latin1")) : bytes
  return encoding === "quoted-printable" ? fromQuotedPrintable(bytes) : bytes
}

/** Text that only claims it consists of other signs, or has some, and spaces between the words of its first line. */
function isBase64(bytes: Buffer): boolean {
  const start = bytes.toString("latin1", 0, 1_000).trimStart()
  const signs = start.replace(/[a-z0-9+/=\r\n]+/gi, "").length
  const has_few = (share: number) => signs * share <= start.length
  return has_few(10) || (has_few(2) && !/^.*\S \S/.test(start))
}

/**
 * Padding ends a piece, and another one may come behind it. Lines of text behind the padding, which lists
 * of receivers add, are none.
 */
function fromBase64(text: string): Buffer {
  const padding = text.indexOf("=")
  if (padding === -1) return Buffer.from(text, "base64")
  const [first = "", ...others] = text.slice(padding).split(/=+/)
  const pieces = [text.slice(0, padding) + first]
  for (const piece of others) {
    if (!/^[a-z0-9+/\r\n]*$/i.test(piece)) break
    pieces.push(piece)
  }
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64")))
}

/** RFC 2045, 6.7: white space at a line's end was added on the way; "=" at a line's end joins lines. */
function fromQuotedPrintable(bytes: Buffer): Buffer {
  const text = bytes
    .toString("latin1")
    .split("\r\n")
    .map(withoutSpaceAtEnd)
    .join("\r\n")
    .replaceAll("=\r\n", "")
    .replace(/=$/, "")
    .replace(/=([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(text, "latin1")
}

/** A pattern would look at each run of spaces again from each of its spaces. */
function withoutSpaceAtEnd(line: string): string {
  let end = line.length
  while (end > 0 && (line[end - 1] === " " || line[end - 1] === "\t")) end--
  return line.slice(0, end)
}

/** The text of a leaf with LF line ends, in whatever charset it came. */
export function leafText(leaf: MailLeaf): string {
  const { params, content_type, nearby } = leaf
  const clues = { is_html: content_type === "text/html", nearby }
  const text = textOf(contentOf(leaf), params.charset, clues).replaceAll("\r\n", "\n")
  const is_flowed = content_type === "text/plain" && /^flowed$/i.test(params.format ?? "")
  return is_flowed ? unflowed(text, /^yes$/i.test(params.delsp ?? "")) : text
}

/** RFC 3676: a line that ends with a space goes on in the next one of the same quotation. */
function unflowed(text: string, delsp: boolean): string {
  const lines: { quotes: string; content: string }[] = []
  let is_open = false
  for (const line of text.split("\n")) {
    const [quotes = ""] = /^>*/.exec(line) ?? []
    const content = line.slice(line[quotes.length] === " " ? quotes.length + 1 : quotes.length)
    const last = lines.at(-1)
    if (last && is_open && last.quotes === quotes && content !== SIGNATURE) {
      last.content = (delsp ? last.content.slice(0, -1) : last.content) + content
    } else lines.push({ quotes, content })
    is_open = content.endsWith(" ") && content !== SIGNATURE
  }
  return lines.map(({ quotes, content }) => quotes + (quotes && " ") + content).join("\n")
}

const SIGNATURE = "-- "

const TEXTS = new Set(["text/plain", "text/html"])

/** A file for the reader, as opposed to a body of the message. */
export const isFile = ({ content_type, disposition, filename }: MailLeaf): boolean =>
  disposition === "attachment" || filename !== null || !TEXTS.has(content_type)

/** The texts of all leaves of a type, such as the html bodies; null where there is none. */
export function textsOf(leaves: MailLeaf[], type: string): string | null {
  const texts = leaves.filter(({ content_type }) => content_type === type).map(leafText)
  const text = texts.join("\n").replaceAll("\0", "")
  return text === "" ? null : text
}
