import { isUtf8 } from "node:buffer"
import { contentOf, parameterized } from "./mail-tree"
import { quotedPrintable } from "./mime"
import { encodedAs, inBase64, joined, mapParts } from "./transport-encoding"

const HEAD_END = "\r\n\r\n"

/** Deeper parts stay as they are. */
const MAX_DEPTH = 50

/** Where ASCII stands for itself, so that tags can be found without a table of the rest. */
const ASCII_CHARSET = /^(?:utf-?8|us-ascii|iso-8859-\d+|windows-125\d|koi8-[ru])$/i

/** Changes the html of one part; `is_unicode` says whether characters outside ASCII can be read. */
type HtmlChange = (html: string, is_unicode: boolean) => string

/**
 * The same message with the html of its parts changed. Files, attached messages, and what is signed or
 * encrypted (RFC 1847) stay as they are, and so does every part that the change leaves alone.
 */
export function mapHtml(raw: Uint8Array, change: HtmlChange): Buffer {
  return mapPart(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), change, 0)
}

function mapPart(part: Buffer, change: HtmlChange, depth: number): Buffer {
  const end = part.indexOf(HEAD_END)
  if (end === -1 || depth > MAX_DEPTH) return part // without a field that says so, nothing is html
  const head = part.toString("latin1", 0, end)
  const body = part.subarray(end + HEAD_END.length)
  const { value, params } = parameterized(fieldOf(head, "content-type"))
  if (value === "multipart/signed" || value === "multipart/encrypted") return part
  if (value.startsWith("multipart/") && params.boundary) {
    const inner = mapParts(body, params.boundary, (piece, is_part) =>
      is_part ? mapPart(piece, change, depth + 1) : piece,
    )
    return inner.equals(body) ? part : joined(head, inner)
  }
  const is_file = /^\s*attachment/i.test(fieldOf(head, "content-disposition"))
  if (value !== "text/html" || is_file || !ASCII_CHARSET.test(params.charset ?? "us-ascii")) {
    return part
  }
  return mapText(head, body, { part, change, charset: params.charset ?? "us-ascii" })
}

/** The header of a message; a character is a byte. */
export function headOf(raw: Uint8Array): string {
  const message = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const end = message.indexOf(HEAD_END)
  return message.toString("latin1", 0, end === -1 ? message.length : end)
}

/** The unfolded value of the first field of this name; empty where there is none. */
export const fieldOf = (head: string, name: string): string =>
  (new RegExp(`^${name}[ \\t]*:(.*(?:\\r\\n[ \\t].*)*)`, "im").exec(head)?.[1] ?? "").replaceAll(
    "\r\n",
    "",
  )

interface HtmlPart {
  part: Buffer
  change: HtmlChange
  charset: string
}

function mapText(head: string, body: Buffer, { part, change, charset }: HtmlPart): Buffer {
  const encoding = fieldOf(head, "content-transfer-encoding").trim().toLowerCase() || "7bit"
  const bytes = contentOf({ encoding, encoded: body })
  const is_unicode = /^u/i.test(charset) && isUtf8(bytes)
  const form = is_unicode ? "utf8" : "latin1" // which keeps every byte
  const before = bytes.toString(form)
  const after = change(before, is_unicode)
  if (after === before) return part
  if (encoding === "quoted-printable" && is_unicode) {
    return joined(head, Buffer.from(quotedPrintable(after)))
  }
  const changed = Buffer.from(after, form)
  if (encoding !== "base64" && encoding !== "quoted-printable") return joined(head, changed)
  return joined(encodedAs(head, "base64"), inBase64(changed))
}
