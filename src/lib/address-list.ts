import { type Mailbox, sendableForm } from "./address"
import { decodeWords, ENCODED_WORD } from "./mail-text"

interface AddressList {
  /** Those that can be read, in their order; the members of groups as well. */
  mailboxes: Mailbox[]
  /** Whether the field is one or more plain mailboxes: no group, no route, and nothing that cannot be read. */
  is_plain: boolean
}

/** A field with more text is cut: a bound on the work, not a rule of the format. */
const MAX_VALUE = 256 * 1024

/** An encoded word may hold commas that separate nothing. */
const WORD = new RegExp(ENCODED_WORD, "y")

/**
 * Reads the address list of a header field as other programs write it: comments, quoted names,
 * encoded words, groups and source routes (RFC 5322, 3.4 and 4.4). `value` is unfolded, its encoded
 * words are not decoded yet. It never throws.
 */
export function readAddressList(value: string): AddressList {
  const text = value.slice(0, MAX_VALUE)
  const reader = new ListReader(text.lastIndexOf(";"))
  for (let at = 0; at < text.length; ) at = reader.take(text, at)
  return reader.end()
}

const JOINS = new Set([".", "@"])

class ListReader {
  /** Where the last group may end. A colon behind it is text. */
  readonly #groups_end: number
  readonly #mailboxes: Mailbox[] = []
  #is_plain = true
  /** Of the mailbox that is being read: the words of a name, and the same as it stands. */
  #phrase = ""
  #bare = ""
  /** White space came behind the bare text. RFC 5322 allows it there only around a dot or the at sign. */
  #has_gap = false
  #is_split = false
  #last = ""
  #comment = ""
  #angle: string | undefined
  /** What stood before a comma and is no address: `Doe` of `Doe, Ann <ann@example.test>`. */
  #before = ""
  /** Signs that open something which nothing closes. They are text. */
  readonly #lacks_end = new Set<string>()

  constructor(groups_end: number) {
    this.#groups_end = groups_end
  }

  /** Reads one token, and returns where the next one begins. */
  take(text: string, at: number): number {
    const char = text[at] ?? ""
    if (char === "(" && !this.#lacks_end.has(char)) return this.#takeComment(text, at)
    if (char === '"' && !this.#lacks_end.has(char)) return this.#takeQuoted(text, at)
    if (char === "<") return this.#takeAngle(text, at)
    if (char === "," || char === ";") {
      if (char === ";") this.#is_plain = false
      this.#finish(char)
      return at + 1
    }
    if (char === ":" || char === ">") {
      this.#is_plain = false
      if (char === ":" && at < this.#groups_end) this.#begin()
      else if (char === ":") this.#addText(char)
      return at + 1
    }
    WORD.lastIndex = at
    const word = char === "=" ? (WORD.exec(text)?.[0] ?? char) : char
    this.#addText(word)
    return at + word.length
  }

  #addText(word: string) {
    this.#phrase += word
    if (/\s/.test(word)) this.#has_gap = true
    else {
      this.#addBare(word)
      if (this.#angle !== undefined) this.#is_plain = false // text behind the address
    }
  }

  #addBare(text: string) {
    const is_joined = this.#last === "" || JOINS.has(this.#last) || JOINS.has(text)
    if (this.#has_gap && !is_joined) this.#is_split = true
    this.#has_gap = false
    this.#last = text // the bare text itself would be copied each time that it is looked at
    this.#bare += text
  }

  end(): AddressList {
    this.#finish("")
    return { mailboxes: this.#mailboxes, is_plain: this.#is_plain }
  }

  #takeComment(text: string, from: number): number {
    let depth = 0
    let at = from
    for (; at < text.length; at++) {
      if (text[at] === "\\") at++
      else if (text[at] === "(") depth++
      else if (text[at] === ")" && --depth === 0) break
    }
    if (depth > 0) return this.#passOver("(", from)
    this.#comment = text.slice(from + 1, at)
    return at + 1
  }

  #takeQuoted(text: string, from: number): number {
    let at = from + 1
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1
    if (at >= text.length) return this.#passOver('"', from)
    const inside = text.slice(from + 1, at)
    this.#phrase += inside.replace(/\\(.)/gu, "$1")
    this.#addBare(`"${inside}"`)
    return at + 1
  }

  #passOver(sign: string, at: number): number {
    this.#lacks_end.add(sign)
    this.#is_plain = false
    return at + 1
  }

  #takeAngle(text: string, from: number): number {
    const end = closing(text, from + 1)
    if (end === -1 || this.#angle !== undefined) this.#is_plain = false
    const inside = text.slice(from + 1, end === -1 ? text.length : end).trim()
    const route = /^@[^:]*:/.exec(inside)?.[0] ?? "" // it names hosts on the way
    if (route !== "") this.#is_plain = false
    this.#angle ??= inside.slice(route.length)
    return end === -1 ? text.length : end + 1
  }

  #finish(sign: string) {
    const name = this.#before + this.#phrase.trim()
    const found =
      this.#angle === undefined
        ? { email: this.#is_split ? "" : plainAddress(this.#bare), name: nameOf(this.#comment) }
        : { email: plainAddress(this.#angle), name: nameOf(name) ?? nameOf(this.#comment) }
    const is_empty = this.#angle === undefined && this.#bare === ""
    const has_address = isAddress(found.email)
    if (found.email !== (this.#angle ?? this.#bare)) this.#is_plain = false
    if (has_address) this.#mailboxes.push(found)
    else if (!is_empty) this.#addUnmarked()
    const is_name = this.#angle === undefined && !/[@"]/.test(name) && sign === ","
    const is_short = name.length <= MAX_BEFORE
    this.#begin(is_name && is_short && !has_address && !is_empty ? `${name}, ` : "")
  }

  /** Addresses among other words, without their brackets or commas. */
  #addUnmarked() {
    this.#is_plain = false
    const words = `${this.#phrase} ${this.#angle ?? ""}`.split(/[\s<>]+/)
    const emails = words.map(plainAddress).filter(isAddress)
    const others = words.filter((word) => !isAddress(plainAddress(word)))
    const name = emails.length === 1 ? nameOf(others.join(" ")) : null
    for (const email of emails) this.#mailboxes.push({ email, name: name ?? nameOf(this.#comment) })
  }

  /** Behind a comma, or behind the name of a group. */
  #begin(before = "") {
    this.#before = before
    this.#phrase = ""
    this.#bare = ""
    this.#has_gap = false
    this.#is_split = false
    this.#last = ""
    this.#comment = ""
    this.#angle = undefined
  }
}

const isAddress = (text: string): boolean => sendableForm(text) !== undefined

/** An address is shorter (RFC 5321, 4.5.3.1.3), also with what is written around it. */
const MAX_WRITTEN = 400
const MAX_BEFORE = 200

/** Some programs write the address of a link, or put the address in signs of their own. */
function plainAddress(text: string): string {
  if (text.length > MAX_WRITTEN || isAddress(text)) return text
  return /^['[]*(?:(?:mailto|smtp):)?['[]*([^?'\]]+?)\.?(?=[?'\]]|$)/i.exec(text)?.[1] ?? text
}

/** Where the angle bracket closes, outside quoted text. */
function closing(text: string, from: number): number {
  let quoted = false
  for (let at = from; at < text.length; at++) {
    if (text[at] === "\\") at++
    else if (text[at] === '"') quoted = !quoted
    else if (text[at] === ">" && !quoted) return at
  }
  return -1
}

const MAX_NAME = 998

/** A name for people: decoded, on one line. */
function nameOf(text: string): string | null {
  const plain = decodeWords(text).replace(/[\p{Cc}\u2028\u2029\s]+/gu, " ")
  return plain.trim().slice(0, MAX_NAME).toWellFormed() || null
}
