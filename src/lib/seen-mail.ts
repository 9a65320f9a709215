import type { HeaderValue, ParsedMail as ParserResult } from "mailparser"
import { canonicalFields, headerFields } from "./mail-text"

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

/**
 * For `simpleParser`: reports and the messages in them stay whole parts, and no second form of a
 * body is made.
 */
export const PARSER_OPTIONS = {
  keepDeliveryStatus: true,
  ignoreEmbedded: true,
  skipHtmlToText: true,
  skipTextToHtml: true,
  skipImageLinks: true,
  skipTextLinks: true,
  keepCidLinks: true,
}

/** What is kept of one mail: parts and fields beyond these are not looked at. */
const MOST_PARTS = 1_000
const MOST_FIELDS = 1_000

/** Of one part that is read as text. */
const MOST_TEXT_BYTES = 256 * 1024

/**
 * The mail as its readers see it, from the raw message and the result of the parser. Without a
 * result (the parser refused the message) only the header is known. Never throws.
 */
export function seenMail(
  raw: Uint8Array,
  parsed: Pick<ParserResult, "text" | "html" | "attachments"> | undefined,
  envelope_from: string,
): SeenMail {
  return {
    headers: headerLists(headerFields(raw)),
    text: parsed?.text ?? null,
    html: parsed?.html || null,
    parts: (parsed?.attachments ?? []).slice(0, MOST_PARTS).map(seenPart),
    envelope_from,
  }
}

function seenPart(part: ParserResult["attachments"][number]): MailPart {
  const declared = part.headers.get("content-type")
  const params: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(paramsOf(declared))) params[name.toLowerCase()] = value
  return {
    content_type: part.contentType.toLowerCase(),
    params,
    filename: part.filename ?? null,
    headers: headerLists([...part.headers].flatMap(([name, value]) => asFields(name, value))),
    content: part.content,
  }
}

const paramsOf = (value: HeaderValue | undefined): Record<string, string> =>
  typeof value === "object" && "params" in value ? value.params : {}

/** The parser gives a field of a part in one of several forms; each becomes its text again. */
function asFields(name: string, value: HeaderValue): [name: string, value: string][] {
  if (typeof value === "string") return [[name, value]]
  if (value instanceof Date) return [[name, value.toUTCString()]]
  if (Array.isArray(value)) return value.flatMap((one) => asFields(name, one))
  if ("text" in value) return [[name, String(value.text)]]
  if (typeof value.value !== "string") return []
  const params = Object.entries(paramsOf(value)).map(([key, text]) => `; ${key}="${text}"`)
  return [[name, `${value.value}${params.join("")}`]]
}

function headerLists(fields: [name: string, value: string][]): HeaderLists {
  const lists: HeaderLists = Object.create(null)
  for (const [name, value] of fields.slice(0, MOST_FIELDS)) {
    const list = lists[name]
    if (list) list.push(value)
    else lists[name] = [value]
  }
  return lists
}

/** The first field of that name (in lower case), or an empty text. */
export const firstOf = (headers: HeaderLists, name: string): string => headers[name]?.[0] ?? ""

/** The first part of one of the types. */
export const partOfType = (mail: SeenMail, types: ReadonlySet<string>): MailPart | undefined =>
  mail.parts.find(({ content_type }) => types.has(content_type))

/** The beginning of a part as text: in its own charset, else UTF-8, else one byte a character. */
export function textOfPart({ content, params }: MailPart): string {
  const bytes = content.subarray(0, MOST_TEXT_BYTES)
  return decoded(bytes, params.charset ?? "utf-8") ?? Buffer.from(bytes).toString("latin1")
}

function decoded(bytes: Uint8Array, charset: string): string | undefined {
  const is_ascii = /^(?:us-)?ascii$/i.test(charset)
  const fatal = is_ascii || /^utf-?8$/i.test(charset)
  try {
    // The cut may be in the middle of a character: only a whole text can be wrong.
    const stream = bytes.length === MOST_TEXT_BYTES
    const label = is_ascii ? "utf-8" : charset
    return new TextDecoder(label as Bun.Encoding, { fatal }).decode(bytes, { stream })
  } catch {
    return undefined
  }
}

/** The header of a message that stands in text, such as the returned part of a report. */
export const headersIn = (text: string): HeaderLists => headerLists(canonicalFields(text))
