import { isAscii } from "node:buffer"
import { decodeWords, fieldOf } from "./mail-text"

/** Deeper or larger messages are made to hurt: no mail program writes them (contract 22, section 2). */
export const MAX_DEPTH = 50
export const MAX_PARTS = 1_000
export const MAX_FIELDS = 1_000

/** Of one part. The rest of a longer head is not read. */
const MAX_PART_HEAD = 64 * 1024

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
  /** In lower case: `base64`. */
  encoding: string
  /** As it stands in the message: encoded. */
  encoded: Uint8Array
}

/** Why a message cannot be read; `boundary`: a multipart that does not say how its parts are told apart. */
type MailTreeProblem = "depth" | "parts" | "fields" | "boundary"

/** The same for people. */
export const TREE_PROBLEMS: Record<MailTreeProblem, string> = {
  depth: "The message has more than 50 levels of parts.",
  parts: "The message has more than 1,000 parts.",
  fields: "A part of the message has more than 1,000 header fields.",
  boundary: "A multipart of the message has no boundary.",
}

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
  readPart(message, "text/plain", 0, tree)
  return tree
}

function readPart(part: Buffer, fallback: string, depth: number, tree: MailTree) {
  const { fields, body } = splitPart(part)
  if (fields.length > MAX_FIELDS) tree.problem ??= "fields"
  const type = parameterized(fieldOf(fields, "content-type") ?? fallback)
  const content_type = /^[^\s/]+\/[^\s/]+$/.test(type.value) ? type.value : fallback
  if (!content_type.startsWith("multipart/")) {
    tree.leaves.push(leafOf(fields, content_type, type.params, body))
    if (tree.leaves.length > MAX_PARTS) tree.problem ??= "parts"
    return
  }
  const { boundary } = type.params
  if (depth >= MAX_DEPTH) tree.problem ??= "depth"
  if (!boundary) tree.problem ??= "boundary"
  if (tree.problem || !boundary) return
  const inner = content_type === "multipart/digest" ? "message/rfc822" : "text/plain"
  for (const one of partsBetween(body, boundary)) {
    readPart(one, inner, depth + 1, tree)
    if (tree.problem) return
  }
}

const HEAD_END = "\r\n\r\n"

/** The fields of a message or part with encoded words as they stand, and where the body begins. */
function splitPart(part: Buffer): { fields: [string, string][]; body: Buffer } {
  if (part[0] === 13 && part[1] === 10) return { fields: [], body: part.subarray(2) }
  const end = part.indexOf(HEAD_END)
  const head = part.subarray(0, Math.min(end === -1 ? part.length : end, MAX_PART_HEAD))
  const lines = textOf(head, "utf-8")
    .replace(/\r\n(?=[ \t])/g, "")
    .split("\r\n")
  const fields = lines.flatMap((line): [string, string][] => {
    const colon = line.indexOf(":")
    return colon < 1 ? [] : [[line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1)]]
  })
  return { fields, body: end === -1 ? part.subarray(part.length) : part.subarray(end + 4) }
}

/** The parts between the delimiter lines (RFC 2046, 5.1.1); the last one may lack its end. */
function* partsBetween(body: Buffer, boundary: string): Generator<Buffer> {
  const delimiter = `--${boundary}`
  let begin = -1
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + 1)) {
    if (at > 0 && body[at - 1] !== 10) continue
    const line = body.indexOf("\r\n", at)
    const rest = body.toString("latin1", at + delimiter.length, line === -1 ? body.length : line)
    const is_last = /^--[ \t]*$/.test(rest)
    if (!is_last && rest.trim() !== "") continue // a longer boundary that begins like this one
    if (begin !== -1) yield body.subarray(begin, Math.max(begin, at - 2))
    if (is_last || line === -1) return
    begin = line + 2
  }
  if (begin !== -1) yield body.subarray(begin)
}

function leafOf(
  fields: MailLeaf["fields"],
  content_type: string,
  params: Record<string, string>,
  encoded: Buffer,
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
    encoding: (fieldOf(fields, "content-transfer-encoding") ?? "7bit").trim().toLowerCase(),
    encoded,
  }
}

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
export function parameterized(text: string): { value: string; params: Record<string, string> } {
  const params: Record<string, string> = Object.create(null)
  const pieces = new Map<string, ParameterPiece[]>()
  const [value = ""] = text.split(";", 1)
  const rest = text.slice(value.length, value.length + MAX_PARAMETERS)
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
  for (const [name, list] of pieces) params[name] = joined(list)
  return { value: value.trim().toLowerCase(), params }
}

interface ParameterPiece {
  at: number
  text: string
  coded: boolean
}

/** RFC 2231, 3 and 4: pieces in the order of their numbers, octets in percent, the charset first. */
function joined(list: ParameterPiece[]): string {
  const sorted = list.sort((one, other) => one.at - other.at)
  const [, charset = "utf-8", first = sorted[0]?.text ?? ""] =
    /^([^']*)'[^']*'(.*)$/s.exec(sorted[0]?.text ?? "") ?? []
  const parts = sorted.map(({ text, coded }, index) => {
    const content = index === 0 && coded ? first : text
    return coded ? octets(content) : Buffer.from(content)
  })
  return textOf(Buffer.concat(parts), charset)
}

const octets = (text: string): Buffer =>
  Buffer.from(
    text.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  )

/** The content of a leaf, decoded. What an encoding cannot mean is left out, as mail programs do. */
export function contentOf({ encoding, encoded }: Pick<MailLeaf, "encoding" | "encoded">): Buffer {
  const bytes = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength)
  if (encoding === "base64") return Buffer.from(bytes.toString("latin1"), "base64")
  return encoding === "quoted-printable" ? fromQuotedPrintable(bytes) : bytes
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
export const leafText = (leaf: MailLeaf): string =>
  textOf(contentOf(leaf), leaf.params.charset ?? "us-ascii").replaceAll("\r\n", "\n")

const UNNAMED = /^(us-ascii|ascii|ansi_x3\.4-1968|utf-?8|)$/i

/** Bytes as text. A label that says nothing, or names no charset, is UTF-8 where that fits. */
export function textOf(bytes: Uint8Array, charset: string): string {
  const label = charset.trim()
  const is_unnamed = UNNAMED.test(label)
  if (is_unnamed && isAscii(bytes)) return latin1(bytes) // nearly all heads, at a tenth of the cost
  if (!is_unnamed) {
    const named = decoderFor(label)
    if (named) return named.decode(bytes)
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return new TextDecoder("windows-1252").decode(bytes)
  }
}

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")

/** The label comes from the message, so it may name anything. */
function decoderFor(label: string): TextDecoder | undefined {
  try {
    return new TextDecoder(label as Bun.Encoding)
  } catch {
    return undefined
  }
}

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
