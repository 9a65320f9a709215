import { counted } from "./describe"

/**
 * How the page reads the contents of a mail for the eye: the lines of the source, the links of the text, and what the
 * HTML leaves to other servers. All of it comes from a stranger, so that every repetition has an end.
 */

/** What a line of a mail is: the colors of the source follow from it. */
type SourceKind = "name" | "more" | "boundary" | "encoded" | "body"

export interface SourceLine {
  kind: SourceKind
  /** Of a header: its name with the colon; otherwise nothing. */
  name: string
  text: string
}

/**
 * The lines of a mail (RFC 5322, 2045, 2046): headers with their continuations, boundaries, the headers of
 * parts, and bodies. Bodies in base64 are told apart, because nobody reads them.
 */
export function sourceLines(source: string): SourceLine[] {
  const boundaries = new Set(
    [...source.matchAll(/boundary=(?:"([^"\r\n]+)"|([^\s;"]+))/gi)].map(
      ([, quoted, plain]) => quoted ?? plain ?? "",
    ),
  )
  let is_head = true
  let is_encoded = false
  return source.split(/\r?\n/).map((text): SourceLine => {
    if (isBoundary(text, boundaries)) {
      is_head = !text.endsWith("--")
      is_encoded = false
      return { kind: "boundary", name: "", text }
    }
    if (text === "") is_head = false
    if (!is_head) return { kind: is_encoded && text !== "" ? "encoded" : "body", name: "", text }
    if (/^content-transfer-encoding:\s*base64/i.test(text)) is_encoded = true
    const [, name = "", rest = text] = /^([!-9;-~]+:)(.*)$/.exec(text) ?? []
    return { kind: name === "" ? "more" : "name", name, text: rest }
  })
}

function isBoundary(line: string, boundaries: Set<string>): boolean {
  if (!line.startsWith("--")) return false
  const name = line.slice(2).trimEnd()
  return boundaries.has(name) || (name.endsWith("--") && boundaries.has(name.slice(0, -2)))
}

/** A part of a text; with `url` it is a link to there. */
interface TextPiece {
  /** Where it stands in the text. */
  start: number
  text: string
  url?: string
}

/** Beyond these, addresses are text like all else. */
const MOST_LINKS = 1000

/** An address of the web as people write it, up to a sign that ends it. Only these become links. */
const ADDRESS = /\bhttps?:\/\/[^\s<>"\u0000-\u001f]{1,2000}/gi

/** What ends a sentence or a bracket is no part of the address before it. */
const TRAILING = /[.,;:!?'*_\])}]$/

/** The text in pieces, so that its addresses can be links. Together the pieces are the text. */
export function textPieces(text: string): TextPiece[] {
  const pieces: TextPiece[] = []
  let end = 0
  let links = 0
  for (const { 0: found, index } of text.matchAll(ADDRESS)) {
    const url = withoutEnding(found)
    if (!URL.canParse(url)) continue
    if (index > end) pieces.push({ start: end, text: text.slice(end, index) })
    pieces.push({ start: index, text: url, url })
    end = index + url.length
    if (++links === MOST_LINKS) break
  }
  if (end < text.length) pieces.push({ start: end, text: text.slice(end) })
  return pieces
}

/** A bracket stays that began in the address, as in `https://a.test/wiki/Bell_(tower)`. */
function withoutEnding(address: string): string {
  let url = address
  while (TRAILING.test(url)) {
    const last = url.at(-1)
    if (last === ")" && url.split("(").length >= url.split(")").length) break
    url = url.slice(0, -1)
  }
  return url
}

/** What the HTML of a mail would load from other servers; the preview loads none of it. */
export interface RemoteParts {
  images: number
  styles: number
}

/**
 * Counts by the markup, which is enough to tell a person about it. Every repetition has an end, since a mail
 * of half a tag, a hundred thousand times, must not hold up the page.
 */
export function remoteParts(html: string): RemoteParts {
  const visible = withoutComments(html)
  const count = (patterns: RegExp[]) =>
    patterns.reduce((sum, pattern) => sum + [...visible.matchAll(pattern)].length, 0)
  return { images: count(IMAGES), styles: count(STYLES) }
}

/**
 * The html of a message of this server without the pixel that counts its openings, as `trackedHtml` adds it. Its host
 * may be any, because a domain can have a tracking host of its own.
 */
export const withoutOwnPixel = (html: string): string => html.replace(OWN_PIXEL, "")

const OWN_PIXEL =
  /<img src="https?:\/\/[^\s"'<>]{1,500}\/t\/o\/[\w.-]{1,200}\.gif" width="1" height="1" [^<>]{0,200}>/

const IMAGES = [
  /<(?:img|source|input)\b[^<>]{0,2000}?\bsrc(?:set)?\s{0,9}=\s{0,9}["']?\s{0,9}(?:https?:)?\/\//gi,
  /\bbackground\s{0,9}=\s{0,9}["']?\s{0,9}(?:https?:)?\/\//gi,
  /\burl\(\s{0,9}["']?\s{0,9}(?:https?:)?\/\//gi,
]
const STYLES = [
  /<link\b[^<>]{0,2000}?\brel\s{0,9}=\s{0,9}["']?stylesheet/gi,
  /@import\s{1,9}(?:url\(\s{0,9})?["']?\s{0,9}(?:https?:)?\/\//gi,
]

/** A comment without an end goes on to the end of the mail. */
const withoutComments = (html: string): string =>
  html
    .split("-->")
    .map((piece) => piece.split("<!--", 1)[0])
    .join("")

/** Undefined where nothing is missing. */
export function remoteText({ images, styles }: RemoteParts): string | undefined {
  const parts = [
    images > 0 && counted(images, "remote image"),
    styles > 0 && counted(styles, "remote style sheet"),
  ].filter(Boolean)
  if (parts.length === 0) return undefined
  const is_one = images + styles === 1
  return `${parts.join(" and ")} ${is_one ? "is" : "are"} not loaded here, because the sender may see it.`
}
