/** What is better on one line; a hard limit is 998 (RFC 5322, 2.1.1). */
const LINE_LENGTH = 76

/** A word longer than this is encoded, which cuts it into pieces, because a line must not be longer. */
const MAX_WORD = 900

/** Makes encoded words of 64 characters, which find room behind any usual name of a field. */
const ENCODED_BYTES = 39

const PLAIN = /^[!-~]+(?: {1,20}[!-~]+)*$/
const ATOMS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const PRINTABLE = /^[ -~]*$/

/** Longer quoted strings could not be folded without changing what they say. */
const MAX_QUOTED = 60

/**
 * A field of free text, folded, with its CRLF. Text that is not ASCII, or that unfolding would change,
 * goes as encoded words (RFC 2047), so that it is read exactly as it was given.
 */
export function textField(name: string, value: string): string {
  if (value === "") return `${name}:\r\n`
  if (!isPlain(value)) return folded(name, encodedWords(value))
  if (name.length + value.length < LINE_LENGTH) return `${name}: ${value}\r\n`
  return folded(name, value.match(/(?:^| +)[^ ]+/g)?.map(withoutFirstSpace) ?? [])
}

/** A field of mailboxes, folded, with its CRLF. The addresses are in their wire form already. */
export function mailboxField(name: string, list: { name: string; address: string }[]): string {
  const words = list.flatMap((one, index) => {
    const address = one.name === "" ? one.address : `<${one.address}>`
    return [...phrase(one.name), index === list.length - 1 ? address : `${address},`]
  })
  return folded(name, words)
}

const isPlain = (value: string) =>
  PLAIN.test(value) && !value.includes("=?") && (value.length <= MAX_WORD || hasShortWords(value))

const hasShortWords = (value: string) => value.split(" ").every((word) => word.length <= MAX_WORD)

/** The fold itself stands for one space; further ones lead the word. */
const withoutFirstSpace = (word: string) => (word.startsWith(" ") ? word.slice(1) : word)

/** Each word comes after a space, or after a line end and a space. */
function folded(name: string, words: string[]): string {
  let text = `${name}:`
  let column = text.length
  for (const [index, word] of words.entries()) {
    const fold = index > 0 || word.startsWith("=?") || word.length > MAX_WORD - 100
    if (fold && column + 1 + word.length > LINE_LENGTH) {
      text += "\r\n"
      column = 0
    }
    text += ` ${word}`
    column += 1 + word.length
  }
  return `${text}\r\n`
}

/** A display name: atoms, a quoted string, or encoded words. */
function phrase(name: string): string[] {
  if (name === "") return []
  if (ATOMS.test(name) && !name.includes("=?") && name.length <= MAX_QUOTED) return name.split(" ")
  const quotable = PRINTABLE.test(name) && !name.includes("=?") && name.length <= MAX_QUOTED
  return quotable ? [`"${name.replace(/["\\]/g, "\\$&")}"`] : encodedWords(name)
}

/** Whole characters in each word (RFC 2047, 5). Readers drop the white space between two of them. */
function encodedWords(text: string): string[] {
  const words: string[] = []
  let chunk = ""
  let bytes = 0
  for (const character of text) {
    const size = Buffer.byteLength(character)
    if (bytes + size > ENCODED_BYTES) {
      words.push(encodedWord(chunk))
      chunk = ""
      bytes = 0
    }
    chunk += character
    bytes += size
  }
  return [...words, encodedWord(chunk)]
}

const encodedWord = (text: string) => `=?UTF-8?B?${Buffer.from(text).toString("base64")}?=`
