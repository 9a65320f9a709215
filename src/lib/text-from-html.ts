/** What is inside these is not for readers. */
const SILENT = new Set(["head", "script", "style", "template", "title", "noscript", "svg"])

const LINE = new Set(["div", "tr", "section", "header", "footer", "article", "center", "dt", "dd"])
const PARAGRAPH = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6"])
for (const name of ["ul", "ol", "table", "blockquote", "pre", "dl", "form", "figure"]) {
  PARAGRAPH.add(name)
}

interface Tag {
  name: string
  closing: boolean
  attributes: string
  end: number
}

/**
 * Plain text of an html body: paragraphs, list dashes, links as `text (address)`, images as their
 * alternative text. Reads the source once from left to right, so its time grows linearly with the
 * length of any source.
 */
export function textFromHtml(html: string): string {
  const writer = new Writer()
  const lower = asciiLower(html)
  let at = 0
  while (at < html.length) {
    const open = html.indexOf("<", at)
    if (open === -1) break
    writer.text(html.slice(at, open))
    if (html.startsWith("<!--", open)) {
      at = after(html, "-->", open + 4)
      continue
    }
    const tag = readTag(html, open)
    if (!tag) {
      writer.text("<")
      at = open + 1
      continue
    }
    const silent = !tag.closing && SILENT.has(tag.name)
    at = silent ? after(lower, `</${tag.name}`, tag.end) : tag.end
    if (silent) at = after(html, ">", at)
    else writer.tag(tag)
  }
  writer.text(html.slice(at))
  return writer.finish()
}

class Writer {
  #parts: string[] = []
  #link: { address: string; from: number } | undefined

  text(source: string) {
    const words = source.replace(/[\t\n\f\r ]+/g, " ")
    const nothing = words === "" || (words === " " && this.#atLineStart)
    if (!nothing) this.#parts.push(decodeEntities(words))
  }

  tag({ name, closing, attributes }: Tag) {
    if (name === "br") this.#parts.push("\n")
    else if (name === "hr") this.#parts.push("\n---\n")
    else if (name === "li") this.#parts.push(closing ? "" : "\n- ")
    else if (name === "td" || name === "th") this.#parts.push(" ")
    else if (name === "img") this.text(attributeOf(attributes, "alt"))
    else if (name === "a") this.#anchor(closing, attributes)
    else if (PARAGRAPH.has(name)) this.#parts.push("\n\n")
    else if (LINE.has(name) && !this.#atLineStart) this.#parts.push("\n")
  }

  get #atLineStart(): boolean {
    return this.#parts.at(-1)?.endsWith("\n") ?? true
  }

  #anchor(closing: boolean, attributes: string) {
    const link = this.#link
    this.#link = undefined
    if (closing) {
      const words = link && this.#parts.slice(link.from).join("").trim()
      if (link && words !== link.address) this.#parts.push(` (${link.address})`)
      return
    }
    const address = decodeEntities(attributeOf(attributes, "href")).trim()
    if (/^(?:https?:|tel:)/i.test(address)) this.#link = { address, from: this.#parts.length }
  }

  finish(): string {
    const lines = this.#parts.join("").replaceAll("\u00a0", " ").split("\n")
    const text = lines.map((line) => line.replace(/ {2,}/g, " ").trim()).join("\n")
    return text.replace(/\n{3,}/g, "\n\n").trim()
  }
}

/** The tag that begins at `open`, if one does. A quote that never ends swallows the rest. */
export function readTag(html: string, open: number): Tag | undefined {
  const closing = html[open + 1] === "/"
  const start = open + (closing ? 2 : 1)
  const name = /[a-z!?][a-z0-9]*/iy
  name.lastIndex = start
  const found = name.exec(html)?.[0]
  if (found === undefined) return undefined

  let quote = ""
  let end = start + found.length
  for (; end < html.length; end++) {
    const character = html[end] ?? ""
    if (quote) quote = character === quote ? "" : quote
    else if (character === '"' || character === "'") quote = character
    else if (character === ">") break
  }
  const attributes = html.slice(start + found.length, end)
  return { name: asciiLower(found), closing, attributes, end: end + 1 }
}

export function attributeOf(attributes: string, name: string): string {
  const pattern = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, "i")
  const found = pattern.exec(attributes)
  return found?.[1] ?? found?.[2] ?? found?.[3] ?? ""
}

function after(html: string, mark: string, from: number): number {
  const found = html.indexOf(mark, from)
  return found === -1 ? html.length : found + mark.length
}

/** Keeps every position, which `toLowerCase` does not (İ becomes two characters). */
const asciiLower = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

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
