import { type ContentFinding, type PlacedFinding, withLines } from "./content-finding"
import { attributesIn, decodeEntities, htmlTokens } from "./html-tokens"

const VOID = new Set(
  "area base br col embed hr img input link meta param source track wbr".split(" "),
)

/** HTML lets their end tags be left out (HTML Living Standard, 13.1.2.4). */
const OPTIONAL = new Set(
  "p li dt dd tr td th thead tbody tfoot option optgroup colgroup html head body".split(" "),
)

/** A mail with more nested elements is broken, or made to be. */
const MOST_OPEN = 1_000

interface OpenTag {
  name: string
  start: number
}

/** Tags without an end, end tags without a beginning, and elements that are not closed. */
export function markupFaults(html: string): ContentFinding[] {
  const found: PlacedFinding[] = []
  const open: OpenTag[] = []
  let unended: number | undefined
  for (const token of htmlTokens(html)) {
    if (token.kind === "comment" && token.end > html.length) unended = token.start
    if (token.kind !== "tag") continue
    const { name, closing, attributes, start, end } = token
    if (end > html.length) {
      found.push(fault(start, `<${name}> has no end. Add the missing > or quote.`))
      break
    }
    if (VOID.has(name)) continue
    if (closing) closeTag(open, token, found)
    else if (!attributes.endsWith("/") && open.length < MOST_OPEN) open.push({ name, start })
  }
  for (const { name, start } of open) if (!OPTIONAL.has(name)) found.push(unclosed(name, start))
  if (unended !== undefined) found.push(fault(unended, "A comment has no end."))
  return withLines(html, found)
}

function closeTag(open: OpenTag[], { name, start }: OpenTag, found: PlacedFinding[]) {
  const at = open.findLastIndex((one) => one.name === name)
  if (at === -1) {
    const detail = `</${name}> closes nothing. Remove it, or add <${name}> before it.`
    if (!OPTIONAL.has(name)) found.push(fault(start, detail))
    return
  }
  for (const inner of open.splice(at).slice(1)) {
    if (!OPTIONAL.has(inner.name)) found.push(unclosed(inner.name, inner.start))
  }
}

const unclosed = (name: string, at: number) => fault(at, `<${name}> is not closed. Add </${name}>.`)

const fault = (at: number, detail: string): PlacedFinding => ({ rule: "markup", at, detail })

/** A feature that common mail programs leave out, and how often the source has it. */
interface UnsupportedFeature {
  feature: string
  count: number
  programs: string
}

/** What common mail programs leave out of the source, each feature once, in the order of the list. */
export function unsupportedFeatures(html: string): UnsupportedFeature[] {
  const counts = featuresIn(html)
  return NOT_SHOWN.flatMap(([programs, feature, ...names]) => {
    const count = names.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0)
    return count > 0 ? [{ feature, count, programs }] : []
  })
}

const EVERY = "all mail programs (no)"
const OUTLOOK = "Outlook for Windows (no)"
const GMAIL_AND_OUTLOOK = `Gmail (no), ${OUTLOOK}`
const GMAIL_IN_PART = `Gmail (partial), ${OUTLOOK}`

type NotShown = [programs: string, feature: string, ...names: string[]]

const elements = (programs: string, names: string): NotShown[] =>
  names.split(" ").map((name) => [programs, `<${name}>`, `element ${name}`])

/** The names are those of `featuresIn`. */
const NOT_SHOWN: NotShown[] = [
  ...elements(EVERY, "script iframe object embed canvas base"),
  ...elements(GMAIL_IN_PART, "form input select textarea"),
  ...elements(GMAIL_AND_OUTLOOK, "video audio svg link"),
  [GMAIL_AND_OUTLOOK, "position", ...valuesOf("position", "fixed absolute sticky")],
  [OUTLOOK, "flex layout", ...valuesOf("display", "flex inline-flex")],
  [GMAIL_IN_PART, "grid layout", ...valuesOf("display", "grid inline-grid")],
  [OUTLOOK, "background image", "image background"],
  [GMAIL_AND_OUTLOOK, "custom property", "function var"],
  [GMAIL_IN_PART, "calc()", "function calc"],
  [GMAIL_AND_OUTLOOK, "@import", "at import"],
  [GMAIL_AND_OUTLOOK, "@font-face", "at font-face"],
  [GMAIL_AND_OUTLOOK, "animation", "at keyframes", "property animation", "property animation-name"],
]

function valuesOf(property: string, values: string): string[] {
  return values.split(" ").map((value) => `value ${property}=${value}`)
}

/**
 * What an html source uses of HTML and CSS, and how often. The names are a kind and a word: `element
 * video`, `attribute srcset`, `input checkbox`, `property gap`, `value display=flex`, `function calc`, `unit
 * rem`, `word !important`, `pseudo hover`, `selector >`, `at font-face`, `media hover`, `image svg`.
 */
export function featuresIn(html: string): Map<string, number> {
  const found = new FeatureCount()
  for (const token of htmlTokens(html)) {
    if (token.kind === "raw" && token.name === "style") found.readSheet(token.text)
    if (token.kind !== "tag" || token.closing) continue
    found.add(`element ${token.name}`)
    found.readAttributes(token.name, token.attributes)
  }
  return found.counts
}

/** `prelude {`, `name: value;` or the end of a block. */
const PIECE = /([^{};]*)([{};]|$)/g

const COMMENT = /\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/|$)/g

/** Begins where a word does, since a long word without a bracket would be read from each of its letters. */
const FUNCTION = /(?<![a-z-])([a-z-]+)\(/gi

/** A file name that ends in what its format is called. */
const IMAGE = /\.(apng|avif|bmp|gif|heic|heif|ico|jpe?g|mp4|png|svg|tiff?|webp)(?:[?#]|$)/i

const FORMATS: Record<string, string> = { jpeg: "jpg", heic: "heif", tif: "tiff" }

class FeatureCount {
  readonly counts = new Map<string, number>()

  add(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  readAttributes(element: string, source: string): void {
    for (const { name, value: encoded } of attributesIn(source)) {
      const value = decodeEntities(encoded)
      this.add(`attribute ${name}`)
      if (name === "style") this.#readDeclarations(value)
      if (name === "type" && element === "input") this.add(`input ${value.toLowerCase()}`)
      if (name === "src" && element === "img") this.#readImage(value)
    }
  }

  readSheet(text: string): void {
    const css = text.replace(COMMENT, "")
    for (const [, piece = "", end] of css.matchAll(PIECE)) {
      const part = piece.trim()
      if (part.startsWith("@")) this.#readAtRule(part)
      else if (end === "{") this.#readSelector(part)
      else this.#readDeclaration(part)
    }
  }

  #readDeclarations(text: string): void {
    for (const one of text.replace(COMMENT, "").split(";")) this.#readDeclaration(one)
  }

  #readAtRule(text: string): void {
    this.add(`at ${/^@([\w-]*)/.exec(text)?.[1]?.toLowerCase()}`)
    for (const [, name = ""] of text.matchAll(/\(\s*([\w-]+)/g)) {
      this.add(`media ${name.toLowerCase()}`)
    }
  }

  #readSelector(text: string): void {
    for (const [, name = ""] of text.matchAll(/::?([a-z-]+)/gi)) {
      this.add(`pseudo ${name.toLowerCase()}`)
    }
    for (const [mark] of text.matchAll(/[>+~[*]/g)) this.add(`selector ${mark}`)
  }

  #readDeclaration(text: string): void {
    const colon = text.indexOf(":")
    const name = text.slice(0, Math.max(0, colon)).trim().toLowerCase()
    if (!/^-{0,2}[a-z][\w-]*$/.test(name)) return
    const value = text.slice(colon + 1).trim()
    this.add(name.startsWith("--") ? "function var" : `property ${name}`)
    for (const [, word = ""] of value.matchAll(FUNCTION)) {
      this.add(`function ${word.toLowerCase()}`)
    }
    for (const [, unit = ""] of value.matchAll(/\d(%|[a-z]+)/gi)) {
      this.add(`unit ${unit.toLowerCase()}`)
    }
    for (const [word] of value.matchAll(/![a-z]+|(?<![\w(-])[a-z][a-z-]*(?![\w(-])/gi)) {
      this.add(`word ${word.toLowerCase()}`)
      if (name !== "font-family") this.add(`value ${name}=${word.toLowerCase()}`)
    }
    const image = /url\(\s*["']?([^"')]*)/i.exec(value)?.[1]
    if (image === undefined) return
    if (name.startsWith("background")) this.add("image background")
    this.#readImage(image)
  }

  #readImage(address: string): void {
    const [, embedded] = /^data:image\/([a-z+-]+)/i.exec(address) ?? []
    if (embedded !== undefined) this.add("image base64")
    const ending = (embedded?.replace("+xml", "") ?? IMAGE.exec(address)?.[1] ?? "").toLowerCase()
    if (ending !== "") this.add(`image ${FORMATS[ending] ?? ending}`)
  }
}
