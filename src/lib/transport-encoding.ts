import { isAscii } from "node:buffer"
import { contentOf, parameterized, piecesOf } from "./mail-tree"
import { base64Lines } from "./mime"

const HEAD_END = "\r\n\r\n"
const CONTENT_TYPE = /^content-type[ \t]*:(.*(?:\r\n[ \t].*)*)/im
const ENCODING = /^content-transfer-encoding[ \t]*:(.*(?:\r\n[ \t].*)*)/im

/** Deeper parts stay as they are. */
const MAX_DEPTH = 50

/** RFC 5322, 2.1.1: octets of a line, without its end. */
const MAX_LINE = 998

/** Which bodies are written in base64. */
interface Rewriting {
  isUnfit: (body: Uint8Array) => boolean
  /** What parts that hold parts say of themselves afterwards; null: what they said before. */
  composite: "7bit" | null
}

/**
 * The same message for a server that takes 7-bit mail alone (RFC 6152, 3): the bodies of parts outside
 * ASCII are written in base64. Header fields, boundaries and all other parts stay as they are.
 */
export const sevenBit = (raw: Uint8Array): Buffer =>
  rewriteMessage(raw, { isUnfit: (body) => !isAscii(body), composite: "7bit" })

/**
 * The same message with the bodies of parts in base64 whose lines are longer than SMTP allows. A server
 * on the way may break such lines, and the signature with them. Everything else stays as it is.
 */
export const shortLines = (raw: Uint8Array): Buffer =>
  rewriteMessage(raw, { isUnfit: hasLongLine, composite: null })

/** The whole message, which then says that it is MIME (RFC 2045, 4): without that an encoding is nothing. */
function rewriteMessage(raw: Uint8Array, how: Rewriting): Buffer {
  const before = bufferOf(raw)
  const after = rewritten(before, how, 0)
  const end = after.indexOf(HEAD_END)
  if (after === before || MIME_VERSION.test(after.toString("latin1", 0, end))) return after
  return Buffer.concat([after.subarray(0, end), Buffer.from(MIME), after.subarray(end)])
}

const MIME_VERSION = /^mime-version[ \t]*:/im
const MIME = "\r\nMIME-Version: 1.0"

const bufferOf = (raw: Uint8Array) => Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)

/** Whether a line has more than 998 bytes. */
export function hasLongLine(bytes: Uint8Array): boolean {
  const text = bufferOf(bytes)
  let from = 0
  while (text.length - from > MAX_LINE) {
    // The last line end within reach; the next line begins behind it.
    const end = text.lastIndexOf("\r\n", from + MAX_LINE)
    if (end < from) return true
    from = end + 2
  }
  return false
}

function rewritten(part: Buffer, how: Rewriting, depth: number): Buffer {
  if (!how.isUnfit(part) || depth > MAX_DEPTH) return part
  const is_bare = part[0] === 13 && part[1] === 10 // no field, the empty line comes first
  const end = is_bare ? 0 : part.indexOf(HEAD_END)
  if (end === -1) return part
  const head = part.toString("latin1", 0, end)
  const body = part.subarray(is_bare ? 2 : end + HEAD_END.length)
  if (!how.isUnfit(body)) return part
  const { value, params } = parameterized(
    (CONTENT_TYPE.exec(head)?.[1] ?? "text/plain").replaceAll("\r\n", ""),
  )
  const composite = how.composite === null ? head : encodedAs(head, how.composite)
  if (value.startsWith("multipart/") && params.boundary) {
    const fit = (piece: Buffer, is_part: boolean) => {
      if (!how.isUnfit(piece)) return piece
      return is_part ? rewritten(piece, how, depth + 1) : fitting(piece)
    }
    return joined(composite, mapParts(body, params.boundary, fit))
  }
  if (value === "message/rfc822" || value === "message/global") {
    return joined(composite, rewritten(body, how, depth + 1))
  }
  const encoding = ENCODING.exec(head)?.[1]?.trim().toLowerCase() ?? "7bit"
  return joined(encodedAs(head, "base64"), inBase64(contentOf({ encoding, encoded: body })))
}

/** Strict: what the decoder would skip silently is a mistake of the sender (RFC 4648, section 4). */
function strictBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64")
  return bytes.toString("base64") === text ? bytes : undefined
}

/**
 * A file in JSON: strict base64, a list of its bytes as numbers, or a `Buffer` as JSON.stringify writes
 * it. Undefined for everything else.
 */
export function fileInJson(value: unknown): Uint8Array | undefined {
  if (typeof value === "string") return strictBase64(value)
  const { type, data } = (value ?? {}) as { type?: unknown; data?: unknown }
  const numbers = type === "Buffer" ? data : value
  return Array.isArray(numbers) && numbers.every(isByte) ? Uint8Array.from(numbers) : undefined
}

const isByte = (one: unknown) => Number.isInteger(one) && Number(one) >= 0 && Number(one) <= 255

/** In lines, each with its end. */
export const inBase64 = (content: Buffer): Buffer => Buffer.from(`${base64Lines(content)}\r\n`)

/** A part of its head and its body. */
export const joined = (head: string, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${head}${HEAD_END}`, "latin1"), body])

/** The head with its encoding replaced, or with one at the end where it names none. */
export function encodedAs(head: string, encoding: string): string {
  const field = `Content-Transfer-Encoding: ${encoding}`
  if (ENCODING.test(head)) return head.replace(ENCODING, field)
  if (encoding === "7bit") return head // what no field says
  return head === "" ? field : `${head}\r\n${field}`
}

/**
 * The body of a multipart with what stands between its delimiter lines replaced: each part, and the
 * text outside the parts, which is for nobody.
 */
export function mapParts(
  body: Buffer,
  boundary: string,
  replace: (piece: Buffer, is_part: boolean) => Buffer,
): Buffer {
  const pieces: Buffer[] = []
  let from = 0
  for (const { begin, end, is_part } of piecesOf(body, Buffer.from(`--${boundary}`, "latin1"))) {
    pieces.push(body.subarray(from, begin), replace(body.subarray(begin, end), is_part))
    from = end
  }
  return Buffer.concat(pieces)
}

const fitting = (text: Buffer): Buffer => {
  const ascii = text.toString("latin1").replace(/[^\x00-\x7f]/g, "?")
  return Buffer.from(ascii.replace(new RegExp(`.{${MAX_LINE}}`, "g"), "$&\r\n"), "latin1")
}
