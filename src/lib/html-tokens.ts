import { readTag } from "./text-from-html"

/** A tag as it stands in the source. */
export interface HtmlTag {
  kind: "tag"
  /** In lower case. */
  name: string
  closing: boolean
  attributes: string
  start: number
  /** Behind its `>`; beyond the end of the source where the tag has none. */
  end: number
}

/** Text between tags, with its character references. */
export interface HtmlText {
  kind: "text"
  text: string
  start: number
}

/** The inside of an element that holds no tags, such as a style sheet. */
export interface RawText {
  kind: "raw"
  /** The element. */
  name: string
  text: string
  start: number
}

export type HtmlToken = HtmlTag | HtmlText | RawText

const RAW = new Set(["script", "style", "title", "textarea"])

/**
 * Tags, texts and raw texts of an html source from left to right. Comments are left out, conditional
 * ones too. Reads the source once, whatever it is.
 */
export function* htmlTokens(html: string): Generator<HtmlToken> {
  let at = 0
  let text_from = 0
  while (at < html.length) {
    const open = html.indexOf("<", at)
    if (open === -1) break
    const is_comment = html.startsWith("<!--", open)
    const tag = is_comment ? undefined : readTag(html, open)
    if (!is_comment && !tag) {
      at = open + 1 // a bare `<` is text
      continue
    }
    if (open > text_from) yield textBetween(html, text_from, open)
    at = is_comment ? behind(html, "-->", open + 4) : (tag?.end ?? html.length)
    text_from = at
    if (!tag) continue
    yield { kind: "tag", ...tag, start: open }
    if (tag.closing || !RAW.has(tag.name)) continue
    const close = endOfRaw(html, tag.name, at)
    yield { kind: "raw", name: tag.name, text: html.slice(at, close), start: at }
    at = close
    text_from = close
  }
  if (html.length > text_from) yield textBetween(html, text_from, html.length)
}

const textBetween = (html: string, start: number, end: number): HtmlText => ({
  kind: "text",
  text: html.slice(start, end),
  start,
})

function behind(html: string, mark: string, from: number): number {
  const found = html.indexOf(mark, from)
  return found === -1 ? html.length : found + mark.length
}

function endOfRaw(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}`, "gi")
  close.lastIndex = from
  return close.exec(html)?.index ?? html.length
}
