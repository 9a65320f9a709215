import { attributeOf, decodeEntities, type HtmlTag, htmlTokens } from "./html-tokens"

/** What is inside these is not for readers. */
const SILENT = new Set(["head", "template", "noscript", "svg"])

/** Of the elements without tags in them, those that readers see. */
const SEEN = new Set(["textarea", "xmp", "plaintext"])

const LINE = new Set(["div", "tr", "section", "header", "footer", "article", "center", "dt", "dd"])
const PARAGRAPH = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6"])
for (const name of ["ul", "ol", "table", "blockquote", "pre", "dl", "form", "figure"]) {
  PARAGRAPH.add(name)
}

/**
 * Plain text of an html body: paragraphs, list dashes, links as `text (address)`, images as their
 * alternative text. Reads the source once from left to right, so its time grows linearly with the
 * length of any source.
 */
export function textFromHtml(html: string): string {
  const writer = new Writer()
  let silent: string | undefined
  for (const token of htmlTokens(html)) {
    if (silent !== undefined) {
      if (token.kind === "tag" && token.closing && token.name === silent) silent = undefined
    } else if (token.kind === "text" || (token.kind === "raw" && SEEN.has(token.name))) {
      writer.text(token.text)
    } else if (token.kind === "tag") {
      if (!token.closing && SILENT.has(token.name)) silent = token.name
      else writer.tag(token)
    }
  }
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

  tag({ name, closing, attributes }: HtmlTag) {
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
