/** How the html of a mail is changed. Everything that is not named here stays as it is. */
export interface HtmlRewriting {
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
 * The same html with other addresses in `<a href>` and with `ending` in it. Reads tags as the tokenizer
 * of the HTML standard does (13.2.5), so that comments, conditional comments, scripts and attributes
 * of other elements stay byte for byte. A link with `data-no-track` is left alone. Reads the source
 * once from left to right.
 */
export function rewriteHtml(html: string, { linkFor, ending }: HtmlRewriting): string {
  const edits: Edit[] = []
  let body_end: number | undefined
  let at = 0
  let end = html.length // where markup could still stand
  while (at < html.length) {
    const open = html.indexOf("<", at)
    if (open === -1) break
    const next = html.charCodeAt(open + 1)
    const is_closing = next === SLASH && isLetter(html.charCodeAt(open + 2))
    if (!isLetter(next) && !is_closing) {
      at = isMarkup(next) ? markupEnd(html, open) : open + 1
    } else {
      const tag = readTag(html, open + (is_closing ? 2 : 1))
      if (is_closing && tag?.name === "body") body_end = open
      if (!is_closing && tag?.name === "a" && linkFor) edits.push(...linkEdits(html, tag, linkFor))
      at = tag ? (is_closing ? tag.end : contentStart(html, tag)) : Number.POSITIVE_INFINITY
    }
    if (at > html.length) end = open // what begins here never ends
  }
  const place = body_end ?? end
  edits.push({ from: place, to: place, text: ending })
  return applied(html, edits)
}

const SLASH = 47
const BANG = 33
const QUESTION = 63
const GREATER = 62
const EQUALS = 61
const QUOTE = 34
const APOSTROPHE = 39

const isLetter = (code: number) => (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
const isMarkup = (code: number) => code === BANG || code === QUESTION || code === SLASH

/** Tab, line feed, form feed, carriage return, space. */
const isSpace = (code: number) =>
  code === 32 || code === 10 || code === 9 || code === 13 || code === 12

const COMMENT_END = /--!?>/g

/** Behind a comment, a declaration or what browsers take for one; infinite where it never ends. */
function markupEnd(html: string, open: number): number {
  if (!html.startsWith("<!--", open)) return behind(html.indexOf(">", open + 2), 1)
  COMMENT_END.lastIndex = open + 2 // `<!-->` is a whole comment
  return COMMENT_END.test(html) ? COMMENT_END.lastIndex : Number.POSITIVE_INFINITY
}

const behind = (found: number, length: number) =>
  found === -1 ? Number.POSITIVE_INFINITY : found + length

interface Attribute {
  name: string
  /** Of the value, without its quotes. */
  from: number
  to: number
}

interface HtmlTag {
  /** In lower case. */
  name: string
  end: number
  /** Only of `a`: no other element is changed. */
  attributes: Attribute[]
}

/** The tag whose name begins at `from`; undefined where the source ends inside it. */
function readTag(html: string, from: number): HtmlTag | undefined {
  let at = from
  while (at < html.length && !isNameEnd(html.charCodeAt(at))) at += 1
  const name = html.slice(from, Math.min(at, from + LONGEST_NAME)).toLowerCase()
  const attributes: Attribute[] = []
  while (at < html.length) {
    const code = html.charCodeAt(at)
    if (code === GREATER) return { name, end: at + 1, attributes }
    if (isSpace(code) || code === SLASH) at += 1
    else {
      const attribute = readAttribute(html, at)
      if (name === "a") attributes.push(attribute)
      at = attribute.end
    }
  }
  return undefined
}

/** Longer than every name that matters. */
const LONGEST_NAME = 16

const isNameEnd = (code: number) => isSpace(code) || code === SLASH || code === GREATER

function readAttribute(html: string, from: number): Attribute & { end: number } {
  let at = from + 1 // an equals sign here is part of the name
  while (at < html.length && !isNameEnd(html.charCodeAt(at)) && html.charCodeAt(at) !== EQUALS) {
    at += 1
  }
  const name = html.slice(from, at).toLowerCase()
  const equals = pastSpaces(html, at)
  if (html.charCodeAt(equals) !== EQUALS) return { name, from: at, to: at, end: at }
  const start = pastSpaces(html, equals + 1)
  const quote = html.charCodeAt(start)
  if (quote === QUOTE || quote === APOSTROPHE) {
    const close = html.indexOf(quote === QUOTE ? '"' : "'", start + 1)
    const to = close === -1 ? html.length : close
    return { name, from: start + 1, to, end: to + 1 }
  }
  let to = start
  while (to < html.length && !isSpace(html.charCodeAt(to)) && html.charCodeAt(to) !== GREATER) {
    to += 1
  }
  return { name, from: start, to, end: to }
}

function pastSpaces(html: string, from: number): number {
  let at = from
  while (isSpace(html.charCodeAt(at))) at += 1
  return at
}

/** Elements whose content is text, however much it looks like tags. */
const TEXT_END: Record<string, RegExp> = Object.fromEntries(
  ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"].map((name) => [
    name,
    new RegExp(`</${name}(?=[\\s/>])`, "gi"),
  ]),
)

/** Where tags can begin again behind the start tag. */
function contentStart(html: string, { name, end }: HtmlTag): number {
  if (name === "plaintext") return Number.POSITIVE_INFINITY
  const close = Object.hasOwn(TEXT_END, name) ? TEXT_END[name] : undefined
  if (!close) return end
  close.lastIndex = end
  const found = close.exec(html)
  return found ? found.index : Number.POSITIVE_INFINITY
}

const NO_TRACK = "data-no-track"

/** The edit of a link's address. Of two attributes with one name the first counts. */
function linkEdits(
  html: string,
  { attributes }: HtmlTag,
  linkFor: NonNullable<HtmlRewriting["linkFor"]>,
): Edit[] {
  const href = attributes.find(({ name }) => name === "href")
  if (!href || attributes.some(({ name }) => name === NO_TRACK)) return []
  const target = linkTarget(html.slice(href.from, href.to))
  const text = target === undefined ? undefined : linkFor(target)
  return text === undefined ? [] : [{ from: href.from, to: href.to, text }]
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
