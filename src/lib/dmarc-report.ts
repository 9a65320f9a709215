import { reportIn } from "./archive"
import { decodeEntities } from "./html-tokens"
import { isAddress } from "./ip-ranges"
import { onOneLine } from "./report-fields"
import type { SeenMail } from "./seen-mail"

/** What a receiver saw under a domain within a day (RFC 7489, appendix C; RFC 9990). */
export interface DmarcReport {
  org_name: string | null
  email: string | null
  report_id: string | null
  /** ISO 8601, UTC. */
  begin: string | null
  end: string | null
  domain: string
  policy: {
    p: string | null
    sp: string | null
    pct: number | null
    adkim: string | null
    aspf: string | null
  }
  /** Over all records, also those that are left out. */
  messages: number
  /** Of these, messages with DKIM or SPF aligned. */
  aligned: number
  records: DmarcRecord[]
  /** More records stood in the report than are kept. */
  truncated: boolean
}

interface DmarcRecord {
  source_ip: string | null
  count: number
  disposition: string | null
  dkim: string | null
  spf: string | null
  header_from: string | null
  envelope_from: string | null
  dkim_results: { domain: string | null; selector: string | null; result: string | null }[]
  spf_results: { domain: string | null; result: string | null }[]
}

/** The largest of real ones unpack to 5 MB. */
const FORM = {
  typed: /^(?:application\/(?:gzip|x-gzip|gunzip|zip|x-zip(?:-compressed)?|xml)|text\/xml)$/,
  named: /\.(?:xml|xml\.gz|gz|gzip|zip|xml\.zip)$/i,
  begins: /^(?:\x1f\x8b|PK\x03\x04|\s*(?:\xef\xbb\xbf|\xff\xfe)?\s*<)/,
  limits: { bytes: 10 * 1024 * 1024, ratio: 200, entries: 10 },
  entry: (name: string) => /\.xml$/i.test(name),
}
const XML_LIMITS = { elements: 400_000, depth: 20 }

/** The report stands in a row of the database and in an event; the raw message has all of it. */
const MOST_RECORDS = 200
const MOST_RESULTS = 10
const MOST_VALUE = 300

/**
 * The aggregate report in a mail: XML, gzip or zip, by content and not by its declared type. Undefined
 * when there is none, or when it is damaged or larger than the limits. Never throws.
 */
export const readDmarcReport = (mail: SeenMail): DmarcReport | undefined =>
  reportIn(mail, FORM, fromXml)

function fromXml(bytes: Uint8Array): DmarcReport | undefined {
  const charset = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : "utf-8"
  const decoded = (part: Uint8Array) => new TextDecoder(charset).decode(part)
  if (!/<(?:[\w.-]+:)?feedback[\s>]/.test(decoded(bytes.subarray(0, 8_000)))) return undefined
  const root = readXml(decoded(bytes), XML_LIMITS)
  const policy = childOf(root, "policy_published")
  const domain = textIn(policy, "domain")
  if (root?.name !== "feedback" || domain === null) return undefined
  const metadata = childOf(root, "report_metadata")
  const range = childOf(metadata, "date_range")
  const rows = childrenOf(root, "record")
  const records = largest(rows).map(recordOf)
  const counts = rows.map((row) => ({ count: countOf(row), aligned: isAligned(row) }))
  return {
    org_name: textIn(metadata, "org_name"),
    email: textIn(metadata, "email"),
    report_id: textIn(metadata, "report_id"),
    begin: instant(textIn(range, "begin")),
    end: instant(textIn(range, "end")),
    domain: domain.toLowerCase(),
    policy: {
      p: textIn(policy, "p"),
      sp: textIn(policy, "sp"),
      pct: numberIn(policy, "pct"),
      adkim: textIn(policy, "adkim"),
      aspf: textIn(policy, "aspf"),
    },
    messages: sum(counts),
    aligned: sum(counts.filter(({ aligned }) => aligned)),
    records,
    truncated: rows.length > MOST_RECORDS,
  }
}

/** All records, or those of the most messages. */
const largest = (rows: XmlElement[]): XmlElement[] =>
  rows.length <= MOST_RECORDS
    ? rows
    : rows.toSorted((a, b) => countOf(b) - countOf(a)).slice(0, MOST_RECORDS)

function recordOf(record: XmlElement): DmarcRecord {
  const row = childOf(record, "row")
  const evaluated = childOf(row, "policy_evaluated")
  const identifiers = childOf(record, "identifiers")
  const results = childOf(record, "auth_results")
  const source_ip = textIn(row, "source_ip")
  return {
    source_ip: source_ip !== null && isAddress(source_ip) ? source_ip : null,
    count: countOf(record),
    disposition: textIn(evaluated, "disposition"),
    dkim: textIn(evaluated, "dkim"),
    spf: textIn(evaluated, "spf"),
    header_from: textIn(identifiers, "header_from"),
    envelope_from: textIn(identifiers, "envelope_from"),
    dkim_results: childrenOf(results, "dkim")
      .slice(0, MOST_RESULTS)
      .map((one) => ({
        domain: textIn(one, "domain"),
        selector: textIn(one, "selector"),
        result: textIn(one, "result"),
      })),
    spf_results: childrenOf(results, "spf")
      .slice(0, MOST_RESULTS)
      .map((one) => ({ domain: textIn(one, "domain"), result: textIn(one, "result") })),
  }
}

const countOf = (record: XmlElement) => numberIn(childOf(record, "row"), "count") ?? 0

function isAligned(record: XmlElement): boolean {
  const evaluated = childOf(childOf(record, "row"), "policy_evaluated")
  return textIn(evaluated, "dkim") === "pass" || textIn(evaluated, "spf") === "pass"
}

const sum = (rows: { count: number }[]) => rows.reduce((total, { count }) => total + count, 0)

function textIn(element: XmlElement | undefined, name: string): string | null {
  const text = onOneLine((childOf(element, name)?.text ?? "").slice(0, MOST_VALUE))
  return text === "" ? null : text
}

const MOST_COUNT = 1_000_000_000

function numberIn(element: XmlElement | undefined, name: string): number | null {
  const text = textIn(element, name) ?? ""
  return /^\d{1,10}$/.test(text) ? Math.min(Number(text), MOST_COUNT) : null
}

/** Seconds since 1970; some reporters write milliseconds. */
function instant(seconds: string | null): string | null {
  if (seconds === null || !/^\d{9,13}$/.test(seconds)) return null
  const value = Number(seconds)
  return new Date(value > 100_000_000_000 ? value : value * 1000).toISOString()
}

/** An element without its attributes. `text` is its own, without that of its children. */
interface XmlElement {
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
 * left to right once. An element without its end within another one is empty: a large reporter forgets
 * that of its schema. Undefined for what is no XML, goes beyond the limits, or declares a document type:
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
      if (!closeElement(open, tag.name)) return undefined
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

/** What stands in an element that never ends belongs to the one around it. */
function closeElement(open: XmlElement[], name: string): boolean {
  const at = open.findLastIndex((element) => element.name === name)
  if (at < 1) return false
  while (open.length > at + 1) {
    const endless = open.pop()
    for (const child of endless?.children.splice(0) ?? []) open.at(-1)?.children.push(child)
  }
  open.pop()
  return true
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
