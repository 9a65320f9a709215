import { type Color, contrast, parseColor } from "./color"
import { type ContentFinding, type PlacedFinding, withLines } from "./content-finding"
import { attributeOf, decodeEntities, type HtmlTag, htmlTokens } from "./html-tokens"
import { linksInHtml } from "./mail-links"

/**
 * What makes an html mail hard to read for people with a screen reader or weak sight: language,
 * alternative texts, contrast of colors in the style of elements, headings, layout tables, link texts.
 */
export function accessibilityFindings(html: string): ContentFinding[] {
  const tags = [...htmlTokens(html)].filter((token) => token.kind === "tag")
  const opened = tags.filter(({ closing }) => !closing)
  const found = withLines(html, [
    ...imagesWithoutText(opened),
    ...skippedHeadings(opened),
    ...tablesForLayout(tags),
    ...paleTexts(html),
    ...vagueLinks(html),
  ])
  const has_language = opened.some(({ attributes }) => /\blang\s*=\s*["']?[a-z]/i.test(attributes))
  return has_language ? found : [WITHOUT_LANGUAGE, ...found]
}

const WITHOUT_LANGUAGE: ContentFinding = {
  rule: "language",
  detail: 'The html names no language. Add lang, such as <html lang="en">.',
}

const imagesWithoutText = (opened: HtmlTag[]): PlacedFinding[] =>
  opened.flatMap(({ name, attributes, start: at }) => {
    if (name !== "img" || /\balt\s*=/i.test(attributes)) return []
    const detail = 'An image has no alternative text. Add alt, or alt="" where it only decorates.'
    return [{ rule: "alternative_text", at, detail }]
  })

function skippedHeadings(opened: HtmlTag[]): PlacedFinding[] {
  const headings = opened.filter(({ name }) => /^h[1-6]$/.test(name))
  return headings.flatMap(({ name, start: at }, place) => {
    const before = headings[place - 1]?.name ?? "h6"
    const next = `h${Number(before[1]) + 1}`
    if (name <= next) return []
    const detail = `<${name}> follows <${before}>. Use <${next}>.`
    return [{ rule: "heading_order", at, detail }]
  })
}

/** A table inside another one ends the look at the outer: that one is for layout. */
function tablesForLayout(tags: HtmlTag[]): PlacedFinding[] {
  const found: PlacedFinding[] = []
  let table: number | undefined
  const end = () => {
    const detail =
      'A table without header cells reads as data. Add role="presentation", or <th> cells.'
    if (table !== undefined) found.push({ rule: "layout_table", at: table, detail })
    table = undefined
  }
  for (const { name, closing, attributes, start } of tags) {
    if (name === "th") table = undefined
    if (name !== "table") continue
    end()
    const is_layout = /\brole\s*=\s*["']?(?:presentation|none)/i.test(attributes)
    if (!closing && !is_layout) table = start
  }
  return found
}

const VAGUE =
  /^(?:click here|here|more|read more|link|hier|mehr|weiterlesen|ici|cliquez ici|aquí|haga clic aquí)$/i

const vagueLinks = (html: string): PlacedFinding[] =>
  linksInHtml(html).flatMap(({ text, at }) => {
    if (text === "") {
      return [{ rule: "link_text", at, detail: "A link has no text. Say where it leads." }]
    }
    if (!VAGUE.test(text)) return []
    const detail = `The link text ${JSON.stringify(text)} does not say where it leads.`
    return [{ rule: "link_text", at, detail }]
  })

/** What an open element gives to the text in it. */
interface Look {
  name: string
  color: Color
  background: Color
  /** The author chose one of the two colors. */
  is_chosen: boolean
  is_large: boolean
}

const INITIAL: Look = {
  ...{ name: "", is_chosen: false, is_large: false },
  color: [0, 0, 0],
  background: [255, 255, 255],
}

/** WCAG 2.2, success criterion 1.4.3. */
const LEAST_CONTRAST = 4.5
const LEAST_CONTRAST_LARGE = 3
const LARGE_PIXELS = 24

const MOST_OPEN = 1_000
const IS_VOID = /^(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)$/

/** Each pair of colors is told once. */
function paleTexts(html: string): PlacedFinding[] {
  const found = new Map<string, PlacedFinding>()
  const open: Look[] = []
  for (const token of htmlTokens(html)) {
    const look = open.at(-1) ?? INITIAL
    if (token.kind === "tag" && token.closing) {
      const at = open.findLastIndex(({ name }) => name === token.name)
      if (at !== -1) open.length = at
    } else if (token.kind === "tag") {
      if (!IS_VOID.test(token.name) && open.length < MOST_OPEN) open.push(lookOf(token, look))
    } else if (token.kind === "text" && token.text.trim() !== "" && look.is_chosen) {
      const pair = `${look.color} ${look.background}`
      const detail = contrastFault(look)
      if (detail && !found.has(pair)) found.set(pair, { rule: "contrast", at: token.start, detail })
    }
  }
  return [...found.values()]
}

function lookOf({ name, attributes }: HtmlTag, outer: Look): Look {
  const style = decodeEntities(attributeOf(attributes, "style"))
  const [ink, filling] = [declared(style, "color"), declared(style, "background(?:-color)?")]
  const color = parseColor(ink ?? attributeOf(attributes, "color"))
  const background = parseColor(filling ?? attributeOf(attributes, "bgcolor"))
  const pixels = /^([\d.]+)px/.exec(declared(style, "font-size") ?? "")?.[1]
  return {
    name,
    color: color ?? outer.color,
    background: background ?? outer.background,
    is_chosen: outer.is_chosen || color !== undefined || background !== undefined,
    is_large: pixels === undefined ? outer.is_large : Number(pixels) >= LARGE_PIXELS,
  }
}

function contrastFault({ color, background, is_large }: Look): string | undefined {
  const least = is_large ? LEAST_CONTRAST_LARGE : LEAST_CONTRAST
  const ratio = contrast(color, background)
  if (ratio >= least) return undefined
  return `Text has a contrast of ${ratio.toFixed(1)}:1 with its background. Use at least ${least}:1.`
}

/** The value of one declaration of a style attribute; the last one counts. */
function declared(style: string, property: string): string | undefined {
  const form = new RegExp(`^\\s*${property}\\s*:(.*)$`, "is")
  return style
    .split(";")
    .flatMap((one) => form.exec(one)?.[1]?.trim() ?? [])
    .at(-1)
}
