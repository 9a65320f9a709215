import { attributeOf, decodeEntities, type HtmlTag, htmlTokens } from "./html-tokens"

/** What is inside these is not for readers. */
const SILENT = new Set(["head", "template", "noscript", "svg"])

/** Of the elements without tags in them, those that readers see. */
const SEEN = new Set(["textarea", "xmp", "plaintext"])

const LINE = new Set(["div", "section", "header", "footer", "article", "center", "dt", "dd"])
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

interface List {
  is_ordered: boolean
  next: number
  items: number
}

interface TableRow {
  /** Where its first line is. */
  from: number
  cells: number
  /** Where the first line of the cell that is open is. */
  cell_from: number
  /** No cell has more than one line. */
  is_plain: boolean
}

class Writer {
  #lines: string[] = []
  /** The line that is written at the moment. */
  #line = ""
  /** The mark of a list item whose text follows. */
  #mark = ""
  /** An empty line follows, within so many quotations. */
  #gap: number | undefined
  #lists: List[] = []
  /** Those that are open, with the depth around them. */
  #quotations: number[] = []
  #depth = 0
  #tables: (TableRow | undefined)[] = []
  #link: { address: string; words: string } | undefined

  text(source: string) {
    const words = decodeEntities(source).replace(/[\t\n\f\r \u00a0]+/g, " ")
    this.#line += words
    if (this.#link) this.#link.words += words
  }

  tag({ name, closing, attributes }: HtmlTag) {
    if (name === "br") this.#breakLine()
    else if (name === "hr") this.#rule()
    else if (name === "li") this.#item(closing, attributes)
    else if (name === "ul" || name === "ol") this.#list(name === "ol", closing, attributes)
    else if (name === "table") this.#table(closing)
    else if (name === "tr") this.#row(closing)
    else if (name === "td" || name === "th") this.#cell(closing)
    else if (name === "blockquote") this.#quotation(closing, attributes)
    else if (name === "img") this.text(attributeOf(attributes, "alt"))
    else if (name === "a") this.#anchor(closing, attributes)
    else if (PARAGRAPH.has(name)) this.#paragraph()
    else if (LINE.has(name)) this.#endLine()
  }

  #breakLine() {
    if (!this.#endLine()) this.#leaveGap()
  }

  /** Whether there was text on it. */
  #endLine(): boolean {
    const text = this.#line.trim().replace(/ {2,}/g, " ")
    this.#line = ""
    if (text === "") return false
    this.#fillGap()
    const indent = Math.max(0, Math.min(this.#lists.length, MOST_DEPTH) - 1)
    this.#lines.push("> ".repeat(this.#depth) + "  ".repeat(indent) + this.#mark + text)
    this.#mark = ""
    return true
  }

  #leaveGap() {
    this.#gap = Math.min(this.#gap ?? MOST_DEPTH, this.#depth)
  }

  #fillGap() {
    const depth = Math.min(this.#gap ?? 0, this.#depth)
    if (this.#gap !== undefined && this.#lines.length > 0)
      this.#lines.push("> ".repeat(depth).trim())
    this.#gap = undefined
  }

  #paragraph() {
    const is_first_of_item = !this.#endLine() && this.#mark !== ""
    if (!is_first_of_item && !this.#isFirstOfCell) this.#leaveGap()
  }

  get #isFirstOfCell() {
    const row = this.#tables.at(-1)
    return row && row.cells > 0 && this.#lines.length === row.cell_from
  }

  #rule() {
    this.#endLine()
    this.#line = "---"
    this.#endLine()
  }

  #list(is_ordered: boolean, closing: boolean, attributes: string) {
    if (this.#lists.length > (closing ? 1 : 0)) this.#endLine()
    else this.#paragraph()
    if (closing) this.#lists.pop()
    else this.#lists.push({ is_ordered, next: numberOf(attributes, "start") ?? 1, items: 0 })
  }

  #item(closing: boolean, attributes: string) {
    this.#endLine()
    this.#mark = ""
    const list = this.#lists.at(-1)
    if (closing) return
    if (list?.is_ordered) {
      const number = numberOf(attributes, "value") ?? list.next
      list.next = number + 1
      this.#mark = `${number}. `
    } else this.#mark = "- "
    if (list && list.items++ > 0) this.#gap = undefined
  }

  #table(closing: boolean) {
    this.#endRow()
    this.#paragraph()
    if (closing) this.#tables.pop()
    else this.#tables.push(undefined)
  }

  #row(closing: boolean) {
    this.#endRow()
    if (closing || this.#tables.length === 0) return
    this.#fillGap()
    const from = this.#lines.length
    const row = { from, cells: 0, cell_from: from, is_plain: true }
    this.#tables[this.#tables.length - 1] = row
  }

  #cell(closing: boolean) {
    const row = this.#tables.at(-1)
    if (!row) return this.text(" ")
    this.#endCell(row)
    if (closing) return
    if (row.is_plain && row.cells > 0) this.#gap = undefined
    row.cells++
    row.cell_from = this.#lines.length
  }

  #endCell(row: TableRow) {
    this.#endLine()
    if (row.cells > 0 && this.#lines.length - row.cell_from > 1) row.is_plain = false
  }

  /** Mail programs write a paragraph into each cell: the row is one line all the same. */
  #endRow() {
    this.#endLine()
    const row = this.#tables.at(-1)
    if (!row) return
    this.#endCell(row)
    this.#tables[this.#tables.length - 1] = undefined
    if (row.cells < 2 || !row.is_plain || this.#lines.length - row.from < 2) return
    const marks = "> ".repeat(this.#depth)
    this.#gap = undefined
    const cells = this.#lines.splice(row.from).map((line) => line.slice(marks.length))
    this.#lines.push(marks + cells.join(" "))
  }

  /** A frame without a border is how writers indent their own words. */
  #quotation(closing: boolean, attributes: string) {
    this.#paragraph()
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
