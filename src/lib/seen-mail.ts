import { textOf } from "./charset"
import { canonicalFields, decodeWords, headerFields } from "./mail-text"
import {
  contentOf,
  isFile,
  isTooComplex,
  leafText,
  type MailLeaf,
  type MailTree,
} from "./mail-tree"

/** A leaf of the MIME tree with its decoded bytes. A message in the message stays whole. */
export interface MailPart {
  /** In lower case, without parameters. */
  content_type: string
  params: Record<string, string>
  filename: string | null
  headers: HeaderLists
  content: Uint8Array
}

/** What the readers of received mail look at. Bodies are in `text` and `html`, the rest in `parts`. */
export interface SeenMail {
  headers: HeaderLists
  text: string | null
  html: string | null
  parts: MailPart[]
  /** MAIL FROM without brackets; empty for the null sender. */
  envelope_from: string
}

/** Names in lower case, unfolded and decoded values in the order of the message. No prototype. */
export type HeaderLists = Record<string, string[]>

/** What is kept of one mail: parts and fields beyond these are not looked at. */
const MOST_PARTS = 1_000
const MOST_FIELDS = 1_000

/** Of one part that is read as text. */
const MOST_TEXT_BYTES = 256 * 1024

/**
 * The mail as its readers see it, from the raw message and its tree. Of a message that is too complex only
 * the header is known, and what it reports of a delivery. Never throws.
 */
export function seenMail(raw: Uint8Array, tree: MailTree, envelope_from: string): SeenMail {
  const headers = headerLists(headerFields(raw))
  const read = tree.leaves.slice(0, MOST_PARTS)
  const leaves = isTooComplex(tree) ? read.filter(isStatus) : read
  const bodies = leaves.filter((leaf) => !isFile(leaf))
  return {
    headers,
    text: joined(bodies, "text/plain"),
    html: joined(bodies, "text/html"),
    parts: leaves.filter(isFile).map(seenPart),
    envelope_from,
  }
}

/** RFC 3464 and RFC 6533. */
export const STATUS_TYPES: ReadonlySet<string> = new Set([
  "message/delivery-status",
  "message/global-delivery-status",
])

const isStatus = ({ content_type }: MailLeaf): boolean => STATUS_TYPES.has(content_type)

/** A NUL is no text on Postgres, and half a character is none anywhere. */
export const storable = (text: string): string => text.replaceAll("\0", "").toWellFormed()

function joined(leaves: MailLeaf[], type: string): string | null {
  const texts = leaves.filter(({ content_type }) => content_type === type).map(leafText)
  return texts.length === 0 ? null : storable(texts.join("\n"))
}

const seenPart = (leaf: MailLeaf): MailPart => ({
  content_type: leaf.content_type,
  params: leaf.params,
  filename: leaf.filename,
  headers: headerLists(leaf.fields.map(([name, value]) => [name, decodeWords(value).trim()])),
  content: contentOf(leaf),
})

/** Each name with its values, 1,000 fields at most. */
export function headerLists(fields: [name: string, value: string][]): HeaderLists {
  const lists: HeaderLists = Object.create(null)
  for (const [name, value] of fields.slice(0, MOST_FIELDS)) {
    const list = lists[name]
    if (list) list.push(storable(value))
    else lists[name] = [storable(value)]
  }
  return lists
}

/** The first field of that name (in lower case), or an empty text. */
export const firstOf = (headers: HeaderLists, name: string): string => headers[name]?.[0] ?? ""

/** The first part of one of the types. */
export const partOfType = (mail: SeenMail, types: ReadonlySet<string>): MailPart | undefined =>
  mail.parts.find(({ content_type }) => types.has(content_type))

/** The beginning of a part as text, in its own charset, else UTF-8 where that fits. */
export function textOfPart({ content, params }: MailPart): string {
  return textOf(content.subarray(0, MOST_TEXT_BYTES), params.charset)
}

/** The header of a message that stands in text, such as the returned part of a report. */
export const headersIn = (text: string): HeaderLists => headerLists(canonicalFields(text))
