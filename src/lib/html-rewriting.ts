import { attributesIn, type HtmlTag, htmlTokens } from "./html-tokens"

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
