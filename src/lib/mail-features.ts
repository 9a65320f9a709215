import { attributesIn, decodeEntities, htmlTokens } from "./html-tokens"

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
