import { isAscii } from "node:buffer"
import { parameterized } from "./mail-tree"

const HEAD_END = "\r\n\r\n"
const CONTENT_TYPE = /^content-type[ \t]*:(.*(?:\r\n[ \t].*)*)/im
const ENCODING = /^content-transfer-encoding[ \t]*:(.*(?:\r\n[ \t].*)*)/im
const BASE64_LINE = 76

/** Deeper parts stay as they are. */
const MAX_DEPTH = 50

/**
 * The same message for a server that takes 7-bit mail alone (RFC 6152, 3): the bodies of parts outside
 * ASCII are written in base64. Header fields, boundaries and all other parts stay as they are.
 */
export const sevenBit = (raw: Uint8Array): Buffer =>
  converted(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), 0)

function converted(part: Buffer, depth: number): Buffer {
  if (isAscii(part) || depth > MAX_DEPTH) return part
  const is_bare = part[0] === 13 && part[1] === 10 // no field, the empty line comes first
  const end = is_bare ? 0 : part.indexOf(HEAD_END)
  if (end === -1) return part
  const head = part.toString("latin1", 0, end)
  const body = part.subarray(is_bare ? 2 : end + HEAD_END.length)
  if (isAscii(body)) return part
  const { value, params } = parameterized(
    (CONTENT_TYPE.exec(head)?.[1] ?? "text/plain").replaceAll("\r\n", ""),
  )
  if (value.startsWith("multipart/") && params.boundary) {
    return joined(encodedAs(head, "7bit"), multipart(body, params.boundary, depth))
  }
  if (value === "message/rfc822" || value === "message/global") {
    return joined(encodedAs(head, "7bit"), converted(body, depth + 1))
  }
  const encoding = ENCODING.exec(head)?.[1]?.trim().toLowerCase() ?? "7bit"
  const is_plain = encoding === "7bit" || encoding === "8bit" || encoding === "binary"
  if (!is_plain) return part // it says that it is encoded: what is outside ASCII there means nothing
  const lines = body.toString("base64").replace(new RegExp(`.{${BASE64_LINE}}`, "g"), "$&\r\n")
  return joined(
    encodedAs(head, "base64"),
    Buffer.from(lines.endsWith("\r\n") ? lines : `${lines}\r\n`),
  )
}

const joined = (head: string, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${head}${HEAD_END}`, "latin1"), body])

/** The head with its encoding replaced, or with one at the end where it names none. */
function encodedAs(head: string, encoding: string): string {
  const field = `Content-Transfer-Encoding: ${encoding}`
  if (ENCODING.test(head)) return head.replace(ENCODING, field)
  if (encoding === "7bit") return head // what no field says
  return head === "" ? field : `${head}\r\n${field}`
}

/** Each part between two delimiter lines; text outside the parts is for nobody, and becomes ASCII. */
function multipart(body: Buffer, boundary: string, depth: number): Buffer {
  const delimiter = Buffer.from(`--${boundary}`, "latin1")
  const pieces: Buffer[] = []
  let from = 0
  let is_part = false
  const close = (to: number) => {
    const piece = body.subarray(from, to)
    pieces.push(is_part ? converted(piece, depth + 1) : inAscii(piece))
  }
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + 1)) {
    if (at > 0 && body[at - 1] !== 10) continue
    const line = body.indexOf("\r\n", at)
    const end = line === -1 ? body.length : line + 2
    const rest = body.toString("latin1", at + delimiter.length, end).trim()
    if (rest !== "" && rest !== "--") continue
    // The line end before a delimiter belongs to it (RFC 2046, 5.1.1).
    const before = Math.max(from, at - 2)
    close(before)
    pieces.push(body.subarray(before, end))
    from = end
    is_part = rest === ""
  }
  close(body.length)
  return Buffer.concat(pieces)
}

const inAscii = (text: Buffer): Buffer =>
  Buffer.from(text.toString("latin1").replace(/[^\x00-\x7f]/g, "?"), "latin1")
