/** A part of a text; with `url` it is a link to there. */
export interface TextPiece {
  /** Where it stands in the text. */
  start: number
  text: string
  url?: string
}

/** Beyond these, addresses are text like all else. */
const MOST_LINKS = 1000

/** An address of the web as people write it, up to a sign that ends it. Only these become links. */
const ADDRESS = /\bhttps?:\/\/[^\s<>"\u0000-\u001f]{1,2000}/gi

/** What ends a sentence or a bracket is no part of the address before it. */
const TRAILING = /[.,;:!?'*_\])}]$/

/** The text in pieces, so that its addresses can be links. Together the pieces are the text. */
export function textPieces(text: string): TextPiece[] {
  const pieces: TextPiece[] = []
  let end = 0
  let links = 0
  for (const { 0: found, index } of text.matchAll(ADDRESS)) {
    const url = withoutEnding(found)
    if (!URL.canParse(url)) continue
    if (index > end) pieces.push({ start: end, text: text.slice(end, index) })
    pieces.push({ start: index, text: url, url })
    end = index + url.length
    if (++links === MOST_LINKS) break
  }
  if (end < text.length) pieces.push({ start: end, text: text.slice(end) })
  return pieces
}

/** A bracket stays that began in the address, as in `https://a.test/wiki/Bell_(tower)`. */
function withoutEnding(address: string): string {
  let url = address
  while (TRAILING.test(url)) {
    const last = url.at(-1)
    if (last === ")" && countOf(url, "(") >= countOf(url, ")")) break
    url = url.slice(0, -1)
  }
  return url
}

const countOf = (text: string, sign: string): number => text.split(sign).length - 1
