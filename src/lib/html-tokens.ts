export interface HtmlTag {
  kind: "tag"
  /** In lower case. */
  name: string
  closing: boolean
  /** What stands between the name and the `>`. `attributesIn` reads it. */
  attributes: string
  start: number
  /** Behind its `>`; beyond the end of the source where the tag has none. */
  end: number
}

/** The inside of an element that holds no tags, such as a style sheet. */
interface RawText {
  kind: "raw"
  name: string
  text: string
  start: number
  /** Beyond the end of the source where the element has none. */
  end: number
}

type HtmlToken =
  | HtmlTag
  | RawText
  /** Between tags, with its character references. */
  | { kind: "text"; text: string; start: number; end: number }
  /** Also a declaration, and what browsers take for a comment. */
  | { kind: "comment"; start: number; end: number }

/**
 * The one reader of html: its tags, texts, raw texts and comments from left to right, as the tokenizer of the HTML
 * standard reads them (13.2.5). Reads the source once, whatever it is.
 */
export function* htmlTokens(html: string): Generator<HtmlToken> {
  let at = 0
  let text_from = 0
  while (at < html.length) {
    const open = html.indexOf("<", at)
    if (open === -1) break
    const token = markupAt(html, open)
    if (!token) {
      at = open + 1 // a bare `<` is text
      continue
    }
    if (open > text_from) yield textBetween(html, text_from, open)
    yield token
    at = token.end
    const raw = token.kind === "tag" && !token.closing ? rawText(html, token) : undefined
    if (raw) yield raw
    at = text_from = raw?.end ?? token.end
  }
  if (html.length > text_from) yield textBetween(html, text_from, html.length)
}

const textBetween = (html: string, start: number, end: number): HtmlToken => {
  return { kind: "text", text: html.slice(start, end), start, end }
}

const [BANG, QUOTE, APOSTROPHE, SLASH, EQUALS, GREATER, QUESTION] = [33, 34, 39, 47, 61, 62, 63]

const isLetter = (code: number) => (code >= 97 && code <= 122) || (code >= 65 && code <= 90)

/** Tab, line feed, form feed, carriage return, space. */
const isSpace = (code: number) =>
  code === 32 || code === 10 || code === 9 || code === 13 || code === 12

const isNameEnd = (code: number) => isSpace(code) || code === SLASH || code === GREATER

/** Undefined where the `<` is text. */
function markupAt(html: string, start: number): HtmlToken | undefined {
  const next = html.charCodeAt(start + 1)
  if (isLetter(next)) return tagAt(html, start, start + 1)
  if (next === SLASH && isLetter(html.charCodeAt(start + 2))) return tagAt(html, start, start + 2)
  const is_comment = next === BANG || next === QUESTION || next === SLASH
  return is_comment ? { kind: "comment", start, end: commentEnd(html, start) } : undefined
}

const COMMENT_END = /--!?>/g

function commentEnd(html: string, open: number): number {
  const is_declaration = !html.startsWith("<!--", open)
  if (is_declaration) return html.indexOf(">", open + 2) + 1 || html.length + 1
  COMMENT_END.lastIndex = open + 2 // `<!-->` is a whole comment
  return COMMENT_END.test(html) ? COMMENT_END.lastIndex : html.length + 1
}

/** Longer than every name that matters. */
const LONGEST_NAME = 64

function tagAt(html: string, start: number, from: number): HtmlTag {
  let at = from
  while (at < html.length && !isNameEnd(html.charCodeAt(at))) at += 1
  const name = html.slice(from, Math.min(at, from + LONGEST_NAME)).toLowerCase()
  const name_end = at
  while (at < html.length && html.charCodeAt(at) !== GREATER) {
    const is_between = isNameEnd(html.charCodeAt(at))
    at = is_between ? at + 1 : attributeAt(html, at).end
  }
  const attributes = html.slice(name_end, at)
  return { kind: "tag", name, closing: from === start + 2, attributes, start, end: at + 1 }
}

/** Where an attribute stands in a source; its value without quotes. */
interface AttributePlace {
  name_end: number
  from: number
  to: number
  end: number
}

function attributeAt(html: string, start: number): AttributePlace {
  let name_end = start + 1 // an equals sign here is part of the name
  let code = html.charCodeAt(name_end)
  while (name_end < html.length && !isNameEnd(code) && code !== EQUALS)
    code = html.charCodeAt(++name_end)
  const equals = pastSpaces(html, name_end)
  if (html.charCodeAt(equals) !== EQUALS)
    return { name_end, from: name_end, to: name_end, end: name_end }
  const from = pastSpaces(html, equals + 1)
  const quote = html.charCodeAt(from)
  if (quote === QUOTE || quote === APOSTROPHE) {
    const close = html.indexOf(quote === QUOTE ? '"' : "'", from + 1)
    const to = close === -1 ? html.length : close
    return { name_end, from: from + 1, to, end: to + 1 }
  }
  let to = from
  while (to < html.length && !isSpace(html.charCodeAt(to)) && html.charCodeAt(to) !== GREATER)
    to += 1
  return { name_end, from, to, end: to }
}

function pastSpaces(html: string, from: number): number {
  let at = from
  while (isSpace(html.charCodeAt(at))) at += 1
  return at
}

/** Elements whose content is text, however much it looks like tags. */
const RAW_ENDS = new Map(
  ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"].map((name) => [
    name,
    new RegExp(`</${name}(?=[\\s/>])`, "gi"),
  ]),
)

function rawText(html: string, { name, end: start }: HtmlTag): RawText | undefined {
  const close = RAW_ENDS.get(name)
  if (!close && name !== "plaintext") return undefined
  if (close) close.lastIndex = start
  const end = close?.exec(html)?.index ?? html.length + 1
  return { kind: "raw", name, text: html.slice(start, end), start, end }
}

interface HtmlAttribute {
  /** In lower case. */
  name: string
  /** As it stands in the source, without quotes. */
  value: string
  /** Where the value stands in the attributes of its tag. */
  from: number
  to: number
}

/** The attributes of a tag. Of two with one name the first counts. */
export function* attributesIn(source: string): Generator<HtmlAttribute> {
  let at = 0
  while (at < source.length) {
    if (isNameEnd(source.charCodeAt(at))) at += 1
    else {
      const { name_end, from, to, end } = attributeAt(source, at)
      yield {
        name: source.slice(at, name_end).toLowerCase(),
        value: source.slice(from, to),
        from,
        to,
      }
      at = end
    }
  }
}

/** The value of an attribute as it stands in the source; empty where the tag has none. */
export function attributeOf(attributes: string, name: string): string {
  for (const attribute of attributesIn(attributes))
    if (attribute.name === name) return attribute.value
  return ""
}

/** The names that mail really uses; others stay as they are written. */
const NAMES: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  reg: "®",
  trade: "™",
  euro: "€",
  pound: "£",
  yen: "¥",
  cent: "¢",
  sect: "§",
  deg: "°",
  middot: "·",
  bull: "•",
  hellip: "…",
  ndash: "–",
  mdash: "—",
  lsquo: "‘",
  rsquo: "’",
  sbquo: "‚",
  ldquo: "“",
  rdquo: "”",
  bdquo: "„",
  laquo: "«",
  raquo: "»",
  larr: "←",
  rarr: "→",
  times: "×",
  shy: "",
  zwnj: "",
  zwj: "",
  auml: "ä",
  ouml: "ö",
  uuml: "ü",
  Auml: "Ä",
  Ouml: "Ö",
  Uuml: "Ü",
  szlig: "ß",
  agrave: "à",
  aacute: "á",
  acirc: "â",
  aring: "å",
  aelig: "æ",
  ccedil: "ç",
  egrave: "è",
  eacute: "é",
  ecirc: "ê",
  iacute: "í",
  ntilde: "ñ",
  oacute: "ó",
  ocirc: "ô",
  oslash: "ø",
  uacute: "ú",
}

/** Character references of html, numeric ones and the usual names. */
export const decodeEntities = (text: string): string =>
  text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]{2,8}));/gi, (all, hex, decimal, name) => {
    if (name !== undefined) return Object.hasOwn(NAMES, name) ? (NAMES[name] ?? all) : all
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
    return isCharacter(code) ? String.fromCodePoint(code) : "\ufffd"
  })

/** Neither a control character, which would end up in the message, nor half of a pair. */
const isCharacter = (code: number) =>
  (code === 9 || code === 10 || (code >= 0x20 && code < 0x7f) || code >= 0xa0) &&
  code <= 0x10ffff &&
  !(code >= 0xd800 && code <= 0xdfff)
