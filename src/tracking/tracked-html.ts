import { isUtf8 } from "node:buffer"
import { isAscii } from "../lib/address"
import { attributesIn, type HtmlTag, htmlTokens } from "../lib/html-tokens"
import { contentOf, parameterized } from "../lib/mail-tree"
import { quotedPrintable } from "../lib/mime"
import {
  encodedAs,
  hasLongLine,
  inBase64,
  joined,
  mapParts,
  shortLines,
} from "../lib/transport-encoding"
import {
  clickTokenOf,
  openTokenOf,
  readClickToken,
  readOpenToken,
  type TokenKeys,
  tokenKeys,
} from "./tracking-tokens"

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

/** How the html of a mail is changed. Everything that is not named here stays as it is. */
interface HtmlRewriting {
  /**
   * The address that takes the place of a link's; undefined leaves the link alone. `target` is the
   * address as a browser reads it. The new address must need no escaping in an attribute.
   */
  linkFor: ((target: string) => string | undefined) | undefined
  /** Markup that goes before `</body>`, or to the end where there is none. */
  ending: string
}

interface Edit {
  from: number
  to: number
  text: string
}

/**
 * The same html with other addresses in `<a href>` and with `ending` in it. Comments, conditional comments, scripts
 * and attributes of other elements stay byte for byte. A link with `data-no-track` is left alone.
 */
export function rewriteHtml(html: string, { linkFor, ending }: HtmlRewriting): string {
  const edits: Edit[] = []
  let body_end: number | undefined
  let end = html.length // where markup could still stand
  let last_tag = 0
  for (const token of htmlTokens(html)) {
    const { kind, start } = token
    if (kind === "tag") last_tag = start
    // What begins there never ends.
    if (token.end > html.length) end = kind === "raw" ? last_tag : start
    else if (kind === "tag" && token.closing && token.name === "body") body_end = start
    else if (kind === "tag" && !token.closing && token.name === "a" && linkFor)
      edits.push(...linkEdits(token, linkFor))
  }
  const place = body_end ?? end
  edits.push({ from: place, to: place, text: ending })
  return applied(html, edits)
}

const NO_TRACK = "data-no-track"

/** The edit of a link's address. Of two attributes with one name the first counts. */
function linkEdits(
  { attributes: source, end }: HtmlTag,
  linkFor: NonNullable<HtmlRewriting["linkFor"]>,
): Edit[] {
  const attributes = [...attributesIn(source)]
  const href = attributes.find(({ name }) => name === "href")
  if (!href || attributes.some(({ name }) => name === NO_TRACK)) return []
  const target = linkTarget(href.value)
  const text = target === undefined ? undefined : linkFor(target)
  const begin = end - 1 - source.length
  return text === undefined ? [] : [{ from: begin + href.from, to: begin + href.to, text }]
}

function applied(html: string, edits: Edit[]): string {
  const pieces: string[] = []
  let at = 0
  for (const { from, to, text } of edits.sort((one, other) => one.from - other.from)) {
    pieces.push(html.slice(at, from), text)
    at = to
  }
  pieces.push(html.slice(at))
  return pieces.join("")
}

/** Characters of an address. Programs on the way cut off what is much longer. */
const LONGEST_TARGET = 2_000

/**
 * The address of a link as a browser reads the value of `href`: character references decoded, white
 * space around it and line ends in it removed. Undefined for what is no absolute http or https
 * address, has a user name in it, is longer than 2,000 characters, or uses a character reference
 * that only browsers know.
 */
export function linkTarget(value: string): string | undefined {
  if (value.length > 6 * LONGEST_TARGET) return undefined
  const decoded = decodeReferences(value)
  const target = decoded?.replace(/^[\0- ]+|[\0- ]+$|[\t\n\r]+/g, "")
  if (target === undefined || target.length > LONGEST_TARGET) return undefined
  if (!/^https?:\/\//i.test(target) || !target.isWellFormed()) return undefined
  const url = URL.parse(target)
  return url === null || url.username !== "" || url.password !== "" ? undefined : target
}

const REFERENCE = /&(?:#x([\da-f]+);?|#(\d+);?|([a-z][\da-z]*)(;?)(=?))/gi

const NAMED: Record<string, string> = {
  ...{ amp: "&", AMP: "&", lt: "<", LT: "<", gt: ">", GT: ">", quot: '"', QUOT: '"', apos: "'" },
  ...{ Tab: "\t", NewLine: "\n", excl: "!", num: "#", percnt: "%", lpar: "(", rpar: ")", ast: "*" },
  ...{ plus: "+", comma: ",", period: ".", sol: "/", colon: ":", semi: ";", equals: "=" },
  ...{ quest: "?", commat: "@", lsqb: "[", lbrack: "[", bsol: "\\", rsqb: "]", rbrack: "]" },
  ...{ Hat: "^", lowbar: "_", grave: "`", lcub: "{", verbar: "|", vert: "|", rcub: "}" },
}

/** These count without their semicolon, too (13.5 of the standard). */
const LEGACY = new Set(
  (
    "AElig,AMP,Aacute,Acirc,Agrave,Aring,Atilde,Auml,COPY,Ccedil,ETH,Eacute,Ecirc,Egrave,Euml,GT,Iacute," +
    "Icirc,Igrave,Iuml,LT,Ntilde,Oacute,Ocirc,Ograve,Oslash,Otilde,Ouml,QUOT,REG,THORN,Uacute,Ucirc,Ugrave," +
    "Uuml,Yacute,aacute,acirc,acute,aelig,agrave,amp,aring,atilde,auml,brvbar,ccedil,cedil,cent,copy,curren," +
    "deg,divide,eacute,ecirc,egrave,eth,euml,frac12,frac14,frac34,gt,iacute,icirc,iexcl,igrave,iquest,iuml," +
    "laquo,lt,macr,micro,middot,nbsp,not,ntilde,oacute,ocirc,ograve,ordf,ordm,oslash,otilde,ouml,para," +
    "plusmn,pound,quot,raquo,reg,sect,shy,sup1,sup2,sup3,szlig,thorn,times,uacute,ucirc,ugrave,uml,uuml," +
    "yacute,yen,yuml"
  ).split(","),
)

/** Undefined where a browser may know a reference that is not known here. */
function decodeReferences(value: string): string | undefined {
  if (!value.includes("&")) return value
  let is_known = true
  const decoded = value.replace(REFERENCE, (all, hex, decimal, name, semicolon, equals) => {
    if (name === undefined) {
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
      if (isPlainCharacter(code)) return String.fromCodePoint(code)
    } else if (semicolon === "") {
      // In an attribute it is text before an equals sign, and where it is no old name.
      if (equals !== "" || !LEGACY.has(name)) return all
      if (Object.hasOwn(NAMED, name)) return NAMED[name] ?? all
    } else if (Object.hasOwn(NAMED, name)) return `${NAMED[name]}${equals}`
    is_known = false
    return all
  })
  return is_known ? decoded : undefined
}

/** Means the same in every browser: no control character, half of a pair, or number out of range. */
const isPlainCharacter = (code: number) =>
  code === 9 ||
  code === 10 ||
  code === 13 ||
  (code >= 0x20 && code < 0x7f) ||
  (code >= 0xa0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff))
