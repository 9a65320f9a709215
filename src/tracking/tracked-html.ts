import { isUtf8 } from "node:buffer"
import { isAscii } from "../lib/address"
import { rewriteHtml } from "../lib/html-rewriting"
import { contentOf, parameterized } from "../lib/mail-tree"
import { quotedPrintable } from "../lib/mime"
import { type TokenKeys, tokenKeys } from "../lib/sealed-token"
import {
  encodedAs,
  hasLongLine,
  inBase64,
  joined,
  mapParts,
  shortLines,
} from "../lib/transport-encoding"
import { clickTokenOf, openTokenOf, readClickToken, readOpenToken } from "./tracking-tokens"

/** What of a mail is tracked, as it travels to the thread that composes the mail. */
export interface HtmlTracking {
  message_id: string
  /** Of the tokens. */
  key: Uint8Array
  /** Where pixel and links lead: an address without a slash at its end. */
  base_url: string
  opens: boolean
  clicks: boolean
  /** Links that stay as they are: addresses, and beginnings of addresses. */
  untracked: { urls: string[]; prefixes: string[] }
}

/**
 * The html with the pixel and the tracked links. The same input gives the same bytes. Links of this
 * service (to unsubscribe, for preferences) and those that the mail names in List-Unsubscribe stay;
 * without `is_unicode` also those outside ASCII.
 */
export function trackedHtml(html: string, tracking: HtmlTracking, is_unicode = true): string {
  const { message_id, base_url, opens, clicks, untracked } = tracking
  const keys = keysOf(tracking.key)
  const urls = new Set(untracked.urls)
  const linkFor = (target: string) =>
    urls.has(target) ||
    untracked.prefixes.some((prefix) => target.startsWith(prefix)) ||
    (!is_unicode && !isAscii(target))
      ? undefined
      : `${base_url}/t/c/${clickTokenOf(keys, message_id, target)}`
  const ending = opens ? pixel(`${base_url}/t/o/${openTokenOf(keys, message_id)}.gif`) : ""
  return rewriteHtml(html, { linkFor: clicks ? linkFor : undefined, ending })
}

const pixel = (address: string) =>
  `<img src="${address}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`

const PIXEL = /<img src="https?:\/\/[^\s"'<>]{1,500}\/t\/o\/([\w.-]{1,200})"[^<>]{0,200}>/g

/**
 * The html as `trackedHtml` got it: links lead where they led, and the pixel is gone. What another
 * server tracks stays. `key` is that of the tokens.
 */
export function untrackedHtml(html: string, key: Uint8Array): string {
  const keys = keysOf(key)
  const linkFor = (target: string) => {
    const [, token] = /\/t\/c\/([\w-]+)$/.exec(target) ?? []
    return token === undefined ? undefined : escaped(readClickToken(keys, token)?.url)
  }
  return rewriteHtml(html, { linkFor, ending: "" }).replace(PIXEL, (image, token: string) =>
    readOpenToken(keys, token) ? "" : image,
  )
}

const escaped = (url: string | undefined) =>
  url?.replace(/[&"'<>\s]/g, (char) => `&#${char.charCodeAt(0)};`)

/**
 * As `trackedHtml` for a message that was submitted as bytes: its first html gets the pixel, and every
 * html tracked links. Lines become no longer than SMTP allows.
 */
export function trackedMessage(raw: Uint8Array, tracking: HtmlTracking): Uint8Array {
  let opens = tracking.opens
  const { prefixes } = tracking.untracked
  const untracked = { prefixes, urls: linksToUnsubscribe(fieldOf(headOf(raw), "list-unsubscribe")) }
  const tracked = mapHtml(raw, (html, is_unicode) => {
    const changed = trackedHtml(html, { ...tracking, untracked, opens }, is_unicode)
    opens = false
    return changed
  })
  return hasLongLine(tracked) && !hasLongLine(raw) ? shortLines(tracked) : tracked
}

/** The web addresses in the value of List-Unsubscribe (RFC 2369, 3.2). */
export const linksToUnsubscribe = (value: string): string[] =>
  [...value.matchAll(/<\s*(https?:[^>]+?)\s*>/gi)].map(([, url = ""]) => url)

/** A thread composes for one server, whose key stays the same. */
let known: { text: string; keys: TokenKeys } | undefined

/** The keys of a base key. The last ones are remembered. */
function keysOf(key: Uint8Array): TokenKeys {
  const text = Buffer.from(key).toString("base64")
  if (known?.text !== text) known = { text, keys: tokenKeys(key) }
  return known.keys
}

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
function mapHtml(raw: Uint8Array, change: HtmlChange): Buffer {
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
function headOf(raw: Uint8Array): string {
  const message = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const end = message.indexOf(HEAD_END)
  return message.toString("latin1", 0, end === -1 ? message.length : end)
}

/** The unfolded value of the first field of this name; empty where there is none. */
const fieldOf = (head: string, name: string): string =>
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
