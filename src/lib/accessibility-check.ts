import { type Color, contrast, parseColor } from "./color"
import { type ContentFinding, type PlacedFinding, withLines } from "./content-finding"
import { type HtmlTag, htmlTokens } from "./html-tokens"
import { attributeOf, decodeEntities } from "./text-from-html"

/** What an open element gives to the text in it. */
interface Look {
  name: string
  color: Color
  background: Color
  /** The author chose one of the two colors. */
  is_chosen: boolean
  is_large: boolean
}

const BLACK: Color = [0, 0, 0]
const WHITE: Color = [255, 255, 255]

/** WCAG 2.2, success criterion 1.4.3. */
const LEAST_CONTRAST = 4.5
const LEAST_CONTRAST_LARGE = 3
const LARGE_PIXELS = 24
const MOST_OPEN = 1_000
const VAGUE =
  /^(?:click here|here|more|read more|link|hier|mehr|weiterlesen|ici|cliquez ici|aquí|haga clic aquí)$/i

/**
 * What makes an html mail hard to read for people with a screen reader or weak sight: language,
 * alternative texts, contrast of colors in the style of elements, headings, layout tables, link texts.
 */
export function accessibilityFindings(html: string): ContentFinding[] {
  const walk = new Walk(html)
  for (const token of htmlTokens(html)) {
    if (token.kind === "text") walk.text(token.text, token.start)
    else if (token.kind === "tag") walk.tag(token)
  }
  return walk.findings()
}

class Walk {
  readonly #html: string
  readonly #found: PlacedFinding[] = []
  readonly #open: Look[] = []
  readonly #pale = new Set<string>()
  #has_language = false
  #heading = 0
  #link: { text: string; start: number } | undefined
  #table: { start: number; has_header: boolean; is_layout: boolean } | undefined

  constructor(html: string) {
    this.#html = html
  }

  findings(): ContentFinding[] {
    const found = withLines(this.#html, this.#found)
    if (this.#has_language) return found
    const detail = 'The html names no language. Add lang, such as <html lang="en">.'
    return [{ rule: "language", detail }, ...found]
  }

  text(source: string, start: number) {
    if (this.#link) this.#link.text += source
    if (source.trim() !== "") this.#compare(start)
  }

  tag(tag: HtmlTag) {
    const { name, closing, attributes, start } = tag
    if (closing) return this.#close(name)
    if (/\blang\s*=\s*["']?[a-z]/i.test(attributes)) this.#has_language = true
    if (name === "img") this.#image(attributes, start)
    if (name === "a" && /\bhref\s*=/i.test(attributes)) this.#link = { text: "", start }
    if (name === "th" && this.#table) this.#table.has_header = true
    if (name === "table") this.#openTable(attributes, start)
    const level = /^h([1-6])$/.exec(name)?.[1]
    if (level) this.#openHeading(Number(level), start)
    if (!IS_VOID.test(name) && this.#open.length < MOST_OPEN) this.#open.push(this.#lookOf(tag))
  }

  #add(rule: string, at: number, detail: string) {
    this.#found.push({ rule, at, detail })
  }

  #close(name: string) {
    const at = this.#open.findLastIndex((one) => one.name === name)
    if (at !== -1) this.#open.length = at
    if (name === "a") this.#closeLink()
    if (name === "table") this.#closeTable()
  }

  #image(attributes: string, start: number) {
    if (!/\balt\s*=/i.test(attributes)) {
      this.#add(
        "alternative_text",
        start,
        'An image has no alternative text. Add alt, or alt="" where it only decorates.',
      )
    } else if (this.#link) this.#link.text += decodeEntities(attributeOf(attributes, "alt"))
  }

  #closeLink() {
    const link = this.#link
    this.#link = undefined
    if (!link) return
    const text = decodeEntities(link.text).replace(/\s+/g, " ").trim()
    if (text === "") this.#add("link_text", link.start, "A link has no text. Say where it leads.")
    else if (VAGUE.test(text)) {
      this.#add(
        "link_text",
        link.start,
        `The link text ${JSON.stringify(text)} does not say where it leads.`,
      )
    }
  }

  /** A table inside another one ends the look at the outer: that one is for layout. */
  #openTable(attributes: string, start: number) {
    const is_layout = /\brole\s*=\s*["']?(?:presentation|none)/i.test(attributes)
    if (this.#table) this.#closeTable()
    this.#table = { start, is_layout, has_header: false }
  }

  #closeTable() {
    const table = this.#table
    this.#table = undefined
    if (!table || table.is_layout || table.has_header) return
    this.#add(
      "layout_table",
      table.start,
      'A table without header cells reads as data. Add role="presentation", or <th> cells.',
    )
  }

  #openHeading(level: number, start: number) {
    if (this.#heading > 0 && level > this.#heading + 1) {
      this.#add(
        "heading_order",
        start,
        `<h${level}> follows <h${this.#heading}>. Use <h${this.#heading + 1}>.`,
      )
    }
    this.#heading = level
  }

  #lookOf({ name, attributes }: HtmlTag): Look {
    const outer = this.#open.at(-1) ?? INITIAL
    const style = decodeEntities(attributeOf(attributes, "style"))
    const color = parseColor(declared(style, "color") ?? attributeOf(attributes, "color"))
    const background = parseColor(
      declared(style, "background-color") ??
        declared(style, "background") ??
        attributeOf(attributes, "bgcolor"),
    )
    const pixels = Number(
      /^\s*([\d.]+)px/.exec(declared(style, "font-size") ?? "")?.[1] ?? Number.NaN,
    )
    return {
      name,
      color: color ?? outer.color,
      background: background ?? outer.background,
      is_chosen: outer.is_chosen || color !== undefined || background !== undefined,
      is_large: Number.isNaN(pixels) ? outer.is_large : pixels >= LARGE_PIXELS,
    }
  }

  /** Each pair of colors is told once. */
  #compare(start: number) {
    const { color, background, is_chosen, is_large } = this.#open.at(-1) ?? INITIAL
    if (!is_chosen) return
    const ratio = contrast(color, background)
    if (ratio >= (is_large ? LEAST_CONTRAST_LARGE : LEAST_CONTRAST)) return
    const pair = `${color} ${background}`
    if (this.#pale.has(pair)) return
    this.#pale.add(pair)
    const least = is_large ? LEAST_CONTRAST_LARGE : LEAST_CONTRAST
    this.#add(
      "contrast",
      start,
      `Text has a contrast of ${ratio.toFixed(1)}:1 with its background. Use at least ${least}:1.`,
    )
  }
}

const INITIAL: Look = {
  name: "",
  color: BLACK,
  background: WHITE,
  is_chosen: false,
  is_large: false,
}

const IS_VOID = /^(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|[!?].*)$/

/** The value of one declaration of a style attribute; the last one counts. */
function declared(style: string, property: string): string | undefined {
  const values = style.split(";").flatMap((declaration) => {
    const [name = "", ...value] = declaration.split(":")
    return name.trim().toLowerCase() === property ? [value.join(":").trim()] : []
  })
  return values.at(-1)
}
