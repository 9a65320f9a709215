import { decodeEntities } from "./html-tokens"

/** An element without its attributes. `text` is its own, without that of its children. */
export interface XmlElement {
  /** Without its namespace prefix, in lower case. */
  name: string
  text: string
  children: XmlElement[]
}

interface XmlLimits {
  elements: number
  depth: number
}

/**
 * The root of a document, for the plain XML that reports consist of: elements, text, CDATA. Reads from
 * left to right once. Undefined for what is no XML, goes beyond the limits, or declares a document type:
 * without one there are no entities that could grow or fetch anything. Never throws.
 */
export function readXml(text: string, limits: XmlLimits): XmlElement | undefined {
  const document: XmlElement = { name: "", text: "", children: [] }
  const open = [document]
  let elements = 0
  let at = 0
  for (;;) {
    const mark = text.indexOf("<", at)
    const here = open.at(-1)
    if (!here) return undefined
    const words = open.length > 1 ? text.slice(at, mark === -1 ? undefined : mark) : ""
    if (words.trim() !== "") here.text += decodeEntities(words)
    if (mark === -1) break
    const skipped = skipMarkup(text, mark, here)
    if (skipped === undefined) return undefined
    if (skipped > mark) {
      at = skipped
      continue
    }
    const tag = readTag(text, mark)
    if (!tag) return undefined
    at = tag.end
    if (tag.is_end) {
      if (open.length < 2 || open.pop()?.name !== tag.name) return undefined
      continue
    }
    const element = { name: tag.name, text: "", children: [] }
    here.children.push(element)
    if (++elements > limits.elements) return undefined
    if (!tag.is_empty) open.push(element)
    if (open.length > limits.depth + 1) return undefined
  }
  const [root, ...others] = document.children
  return open.length === 1 && others.length === 0 ? root : undefined
}

/** Behind a comment, an instruction or CDATA; `mark` itself for a tag; undefined for what is refused. */
function skipMarkup(text: string, mark: number, here: XmlElement): number | undefined {
  if (text.startsWith("<!--", mark)) return after(text, "-->", mark + 4)
  if (text.startsWith("<?", mark)) return after(text, "?>", mark + 2)
  if (text.startsWith("<![CDATA[", mark)) {
    const end = after(text, "]]>", mark + 9)
    if (end !== undefined) here.text += text.slice(mark + 9, end - 3)
    return end
  }
  return text.startsWith("<!", mark) ? undefined : mark
}

function after(text: string, mark: string, from: number): number | undefined {
  const found = text.indexOf(mark, from)
  return found === -1 ? undefined : found + mark.length
}

/** A name, then attributes: quoted values may hold anything but `<`. */
const TAG = /^<(\/?)(?:[\w.-]{1,80}:)?([\w.-]{1,80})((?:[^<>"']|"[^"<]*"|'[^'<]*')*)>/

/** Attributes of reports are short; a longer tag is refused. */
const MOST_TAG = 4_000

function readTag(text: string, mark: number) {
  const first_end = text.indexOf(">", mark)
  if (first_end === -1 || first_end - mark > MOST_TAG) return undefined
  const short = text.slice(mark, first_end + 1)
  const has_values = short.includes('"') || short.includes("'")
  const found = TAG.exec(has_values ? text.slice(mark, mark + MOST_TAG) : short)
  if (!found) return undefined
  const [all, slash, name = "", rest = ""] = found
  const is_empty = slash === "" && rest.endsWith("/")
  return { name: name.toLowerCase(), is_end: slash === "/", is_empty, end: mark + all.length }
}

/** The first child of that name. */
export const childOf = (element: XmlElement | undefined, name: string): XmlElement | undefined =>
  element?.children.find((child) => child.name === name)

export const childrenOf = (element: XmlElement | undefined, name: string): XmlElement[] =>
  element?.children.filter((child) => child.name === name) ?? []
