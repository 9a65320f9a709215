import { htmlTokens } from "../lib/html-tokens"
import { attributeOf, decodeEntities } from "../lib/text-from-html"

/** One link of a body, with all that tells a reader what it is for. */
export interface PlacedLink {
  href: string
  /** Its own words, and those of its block or around it. */
  surroundings: string
}

/** Bounds the work for one body. */
const MOST_LINKS = 2_000

/** How far a block counts to both sides of a link. */
const BLOCK_CHARACTERS = 300

/** A sentence may end in one block, and its link may stand in the next one. */
const NEAR_CHARACTERS = 150

const BLOCK =
  /^(?:address|article|aside|blockquote|body|center|d[dlt]|div|fieldset|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p|pre|section|table|tbody|tfoot|thead|tr|ul)$/

/** What a reader hears or sees of an element, and the names that its author gave it. */
const NAMING = ["alt", "title", "aria-label", "aria-description", "id", "class", "name"]

/** The first 2,000 links of an html body. */
export function linksInHtml(html: string): PlacedLink[] {
  const text = new FlatText()
  for (const token of htmlTokens(html)) {
    if (token.kind === "text") text.add(decodeEntities(token.text).replace(/\s+/g, " "))
    if (token.kind !== "tag") continue
    const { name, closing, attributes } = token
    if (name === "br") text.add("\n")
    else if (name === "td" || name === "th") text.add(" ")
    else if (BLOCK.test(name)) text.add("\n\n")
    if (name === "a" || name === "area") text.endLink()
    if (closing) continue
    if (name === "img") text.add(` ${decodeEntities(attributeOf(attributes, "alt"))} `)
    const names = namesOf(name, attributes)
    if (/^(?:a|area)$/.test(name) && /\bhref\s*=/i.test(attributes)) {
      text.beginLink(decodeEntities(attributeOf(attributes, "href")).trim(), names)
    } else text.nameLink(names)
  }
  return text.links()
}

function namesOf(name: string, attributes: string): string {
  const source = name === "img" ? attributeOf(attributes, "src") : ""
  const names = NAMING.map((one) => attributeOf(attributes, one))
  return decodeEntities([...names, source.slice(-NEAR_CHARACTERS)].join(" ")).slice(0, 1_000)
}

const ADDRESS = /https?:\/\/[^\s<>"']{1,2000}/gi

/** Stands for an address, whose own words are looked at apart. */
const ADDRESS_WORD = "link"

/** The first 2,000 addresses of a plain text. Each line is a block. */
export function linksInText(source: string): PlacedLink[] {
  const text = new FlatText()
  let at = 0
  for (const { 0: address, index } of source.matchAll(ADDRESS)) {
    text.add(lines(source.slice(at, index)))
    text.beginLink(address.replace(/[.,;:!?*)\]}]{1,10}$/, ""), "")
    text.add(ADDRESS_WORD)
    text.endLink()
    at = index + address.length
  }
  text.add(lines(source.slice(at)))
  return text.links()
}

const lines = (text: string) => text.replace(/\r?\n/g, "\n\n").replace(/[ \t]+/g, " ")

interface OpenLink {
  href: string
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

  beginLink(href: string, names: string) {
    if (this.#links.length >= MOST_LINKS) return
    this.#open = { href, names, from: this.#text.length, to: this.#text.length }
    this.#links.push(this.#open)
  }

  /** An image in a link names it, too. */
  nameLink(names: string) {
    if (this.#open && this.#open.names.length < 2_000) this.#open.names += ` ${names}`
  }

  endLink() {
    if (this.#open) this.#open.to = this.#text.length
    this.#open = undefined
  }

  links(): PlacedLink[] {
    this.endLink()
    const between = this.#withoutLinks()
    return this.#links.map(({ href, names, from, to }) => {
      const words = this.#text.slice(from, Math.min(to, from + 1_000))
      // What another link says is of that one. Only a link without words of its own may be meant by it.
      const around = LETTER.test(words) ? between : this.#text
      const surroundings = `${before(around, from)}${words}${after(around, to, words)} ${names}`
      return { href, surroundings }
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

function before(text: string, from: number): string {
  const block = text.slice(Math.max(0, from - BLOCK_CHARACTERS), from).split(BREAK)
  const near = text.slice(Math.max(0, from - NEAR_CHARACTERS), from)
  const own = block.at(-1) ?? ""
  return own.length > near.length ? own : near
}

/** The next block counts where it ends the sentence, or where the link says nothing itself. */
function after(text: string, to: number, words: string): string {
  const [own = ""] = text.slice(to, to + BLOCK_CHARACTERS).split(BREAK)
  const rest = text.slice(to + own.length, to + own.length + NEAR_CHARACTERS)
  const is_silent = !LETTER.test(`${words}${own}`)
  return is_silent || GOES_ON.test(rest) ? `${own}${rest}` : own
}

const LETTER = /\p{L}/u

const BREAK = /\n\s*\n/

/** No capital letter: the sentence goes on. Scripts without capitals never tell. */
const GOES_ON = /^[\s\p{P}]*[\p{Ll}\p{Lo}]/u
