import { attributeOf, decodeEntities, type HtmlTag, htmlTokens } from "./html-tokens"

/** What is inside these is not for readers. */
const SILENT = new Set(["head", "template", "noscript", "svg"])

/** Of the elements without tags in them, those that readers see. */
const SEEN = new Set(["textarea", "xmp", "plaintext"])

const LINE = new Set(["div", "tr", "section", "header", "footer", "article", "center", "dt", "dd"])
const PARAGRAPH = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6"])
for (const name of ["pre", "dl", "form", "figure"]) PARAGRAPH.add(name)

/**
 * Plain text of an html body: paragraphs, lists with dashes or numbers, the cells of a row on one line,
 * quotations behind `>`, links as `text (address)`, images as their alternative text. Reads the source once from left to right, so its time grows linearly with the
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

/** Deeper lists and quotations get no further marks. */
const MOST_DEPTH = 6

/** What comes between two texts: nothing, the end of a line, an empty line, the border of a table. */
const [NONE, LINE_END, GAP, BORDER] = [0, 1, 2, 3]

class Writer {
  #lines: string[] = []
  #line = ""
  #prefix = ""
  #line_depth = 0
  /** What is due before the next text. */
  #due = LINE_END
  /** The mark of a list item whose text follows. */
  #mark = ""
  #lists: { is_ordered: boolean; next: number; items: number }[] = []
  /** The depth around each quotation that is open. */
  #quotations: number[] = []
  #depth = 0
  /** Of the row of a table; and whether the cell that is open has no text yet, or one line of it. */
  #cells = 0
  #is_empty_cell = false
  #is_short_cell = true
  #link: { address: string; words: string } | undefined

  text(source: string) {
    const words = decodeEntities(source).replace(/[\t\n\f\r \u00a0]+/g, " ")
    if (words !== " " && words !== "") this.#begin()
    this.#line += words
    if (this.#link) this.#link.words += words
  }

  tag({ name, closing, attributes }: HtmlTag) {
    if (name === "br") this.#end(this.#due === NONE ? LINE_END : GAP)
    else if (name === "hr") this.#rule()
    else if (name === "li") this.#item(closing, attributes)
    else if (name === "ul" || name === "ol") this.#list(name === "ol", closing, attributes)
    else if (name === "td" || name === "th") this.#cell(closing)
    else if (name === "blockquote") this.#quotation(closing, attributes)
    else if (name === "img") this.text(attributeOf(attributes, "alt"))
    else if (name === "a") this.#anchor(closing, attributes)
    else if (name === "table") this.#end(BORDER)
    else if (PARAGRAPH.has(name)) this.#end(GAP)
    else if (LINE.has(name)) this.#end(LINE_END)
    if (name === "table" || name === "tr") this.#endRow()
  }

  /** Behind the mark of an item, and at the beginning of a cell, the text goes on in the same line. */
  #end(due: number) {
    if (this.#is_empty_cell && due < BORDER) return
    this.#due = Math.max(this.#due, this.#mark === "" ? due : LINE_END)
  }

  /** Before a text: ends the line before it, where that is due. */
  #begin() {
    if (!this.#is_empty_cell && this.#due !== NONE) this.#is_short_cell = false
    this.#is_empty_cell = false
    if (this.#due === NONE) return
    this.#endLine()
    const common = "> ".repeat(Math.min(this.#line_depth, this.#depth))
    if (this.#due > LINE_END && this.#lines.length > 0) this.#lines.push(common.trim())
    const indent = "  ".repeat(Math.max(0, Math.min(this.#lists.length, MOST_DEPTH) - 1))
    this.#prefix = "> ".repeat(this.#depth) + indent + this.#mark
    this.#line_depth = this.#depth
    this.#mark = ""
    this.#due = NONE
  }

  #endLine() {
    const text = this.#line.trim().replace(/ {2,}/g, " ")
    if (text !== "") this.#lines.push(this.#prefix + text)
    this.#line = ""
  }

  #rule() {
    this.#end(LINE_END)
    this.text("---")
    this.#end(LINE_END)
  }

  #list(is_ordered: boolean, closing: boolean, attributes: string) {
    this.#end(this.#lists.length > (closing ? 1 : 0) ? LINE_END : GAP)
    if (closing) this.#lists.pop()
    else this.#lists.push({ is_ordered, next: numberOf(attributes, "start") ?? 1, items: 0 })
  }

  #item(closing: boolean, attributes: string) {
    this.#mark = ""
    this.#end(LINE_END)
    const list = this.#lists.at(-1)
    if (closing) return
    if (list && list.items++ > 0) this.#due = LINE_END
    if (list?.is_ordered) list.next = numberOf(attributes, "value") ?? list.next
    this.#mark = list?.is_ordered ? `${list.next++}. ` : "- "
  }

  /** Mail programs write a paragraph into each cell: the row is one line all the same. */
  #cell(closing: boolean) {
    if (closing) this.#is_empty_cell = false
    else {
      if (this.#cells++ > 0 && this.#due < BORDER)
        this.#due = this.#is_short_cell ? NONE : Math.max(this.#due, LINE_END)
      this.#line += " "
      this.#is_empty_cell = this.#is_short_cell = true
    }
  }

  #endRow() {
    if (this.#cells > 1 && this.#is_short_cell && this.#due === GAP) this.#due = LINE_END
    this.#cells = 0
  }

  /** A frame without a border is how writers indent their own words. */
  #quotation(closing: boolean, attributes: string) {
    this.#end(GAP)
    if (closing) this.#depth = this.#quotations.pop() ?? 0
    else {
      this.#quotations.push(this.#depth)
      const is_own =
        /border:\s*(?:none|0)/i.test(attributes) && !/border-left|cite/i.test(attributes)
      if (!is_own && this.#depth < MOST_DEPTH) this.#depth++
    }
  }

  #anchor(closing: boolean, attributes: string) {
    const link = this.#link
    this.#link = undefined
    if (closing) {
      if (link && link.words.trim() !== link.address) this.#line += ` (${link.address})`
      return
    }
    const address = decodeEntities(attributeOf(attributes, "href")).trim()
    if (/^(?:https?:|tel:)/i.test(address)) this.#link = { address, words: "" }
  }

  finish(): string {
    this.#endLine()
    return this.#lines.join("\n").trim()
  }
}

const numberOf = (attributes: string, name: string): number | undefined => {
  const value = attributeOf(attributes, name).trim()
  return /^\d{1,6}$/.test(value) ? Number(value) : undefined
}
