import { attributeOf, decodeEntities, htmlTokens } from "./html-tokens"

/** A link of a body, with all that tells a reader what it is for. */
export interface MailLink {
  /** As it stands in the source, its character references decoded. */
  href: string
  /** What people see of it; of an image its alternative text. */
  text: string
  /** Characters of the source before it. */
  at: number
  /** Its words, those around it, and the names that its author gave it. */
  surroundings: string
}

/** Bounds the work for one body. */
const MOST_LINKS = 2_000
const MOST_WORDS = 1_000

/** How far the words around a link tell what it is for: a sentence may end in one block, and its link may stand in the next. */
const NEAR_CHARACTERS = 300

const BLOCK =
  /^(?:address|article|aside|blockquote|body|center|d[dlt]|div|fieldset|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p|pre|section|table|tbody|tfoot|thead|tr|ul)$/

/** What a reader hears or sees of an element, and the names that its author gave it. */
const NAMING = ["alt", "title", "aria-label", "aria-description", "id", "class", "name"]

/** The first 2,000 links of an html body, in its order. */
export function linksInHtml(html: string): MailLink[] {
  const text = new FlatText()
  for (const token of htmlTokens(html)) {
    if (token.kind === "text") text.add(decodeEntities(token.text).replace(/\s+/g, " "))
    if (token.kind !== "tag") continue
    const { name, closing, attributes, start } = token
    const is_link = name === "a" || name === "area"
    if (is_link) text.endLink()
    if (name === "br") text.add("\n")
    else if (name === "td" || name === "th") text.add(" ")
    else if (BLOCK.test(name)) text.add("\n\n")
    if (closing) continue
    const names = namesOf(name, attributes)
    if (is_link && /\bhref\s*=/i.test(attributes)) {
      text.beginLink(decodeEntities(attributeOf(attributes, "href")).trim(), start, names)
    } else text.nameLink(names)
    if (name === "img" || name === "area") {
      text.add(` ${decodeEntities(attributeOf(attributes, "alt"))} `)
    }
  }
  return text.links()
}

function namesOf(name: string, attributes: string): string {
  const source = name === "img" ? attributeOf(attributes, "src") : ""
  const names = NAMING.map((one) => attributeOf(attributes, one))
  return decodeEntities([...names, source.slice(-NEAR_CHARACTERS)].join(" ")).slice(0, MOST_WORDS)
}

const ADDRESS = /https?:\/\/[^\s<>"']{1,2000}/gi

/** The first 2,000 addresses of a plain text. Each line is a block. */
export function linksInText(source: string): MailLink[] {
  const text = new FlatText()
  let at = 0
  for (const { 0: address, index } of source.matchAll(ADDRESS)) {
    text.add(lines(source.slice(at, index)))
    text.beginLink(address.replace(/[.,;:!?*)\]}]{1,10}$/, ""), index, "")
    text.add("link") // the words of an address itself are looked at apart
    text.endLink()
    at = index + address.length
  }
  text.add(lines(source.slice(at)))
  return text.links()
}

const lines = (text: string) => text.replace(/\r?\n/g, "\n\n").replace(/[ \t]+/g, " ")

interface OpenLink {
  href: string
  at: number
  names: string
  from: number
  to: number
}

/** What a body says without its tags; an empty line ends a block. */
class FlatText {
  #text = ""
  readonly #links: OpenLink[] = []
  #open: OpenLink | undefined

  add(text: string) {
    this.#text += text
  }

  beginLink(href: string, at: number, names: string) {
    if (this.#links.length >= MOST_LINKS) return
    this.#open = { href, at, names, from: this.#text.length, to: this.#text.length }
    this.#links.push(this.#open)
  }

  /** An image in a link names it, too. */
  nameLink(names: string) {
    if (this.#open && this.#open.names.length < 2 * MOST_WORDS) this.#open.names += ` ${names}`
  }

  endLink() {
    if (this.#open) this.#open.to = this.#text.length
    this.#open = undefined
  }

  links(): MailLink[] {
    this.endLink()
    const between = this.#withoutLinks()
    return this.#links.map(({ href, at, names, from, to }) => {
      const words = this.#text.slice(from, Math.min(to, from + MOST_WORDS))
      // What another link says is of that one. Only a link without words of its own may be meant by it.
      const around = LETTER.test(words) ? between : this.#text
      const before = around.slice(Math.max(0, from - NEAR_CHARACTERS), from)
      const surroundings = `${before}${words}${after(around, to, words)} ${names}`
      return { href, at, text: words.replace(/\s+/g, " ").trim(), surroundings }
    })
  }

  /** The text with spaces in place of the words of all links. */
  #withoutLinks(): string {
    let [text, at] = ["", 0]
    for (const { from, to } of this.#links) {
      text += this.#text.slice(at, from) + this.#text.slice(from, to).replace(/[^\n]/g, " ")
      at = to
    }
    return text + this.#text.slice(at)
  }
}

/** The next block counts where it ends the sentence, or where the link says nothing itself. */
function after(text: string, to: number, words: string): string {
  const near = text.slice(to, to + NEAR_CHARACTERS)
  const [own = ""] = near.split(/\n\s*\n/)
  const rest = near.slice(own.length)
  const is_silent = !LETTER.test(`${words}${own}`)
  return is_silent || GOES_ON.test(rest) ? near : own
}

const LETTER = /\p{L}/u

/** No capital letter: the sentence goes on. Scripts without capitals never tell. */
const GOES_ON = /^[\s\p{P}]*[\p{Ll}\p{Lo}]/u
