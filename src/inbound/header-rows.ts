import { domainToASCII } from "node:url"
import type { HeaderRow } from "mailauth/lib/dkim/dkim-verifier"
import { domainOf } from "../lib/address"
import { readAddressList } from "../lib/address-list"
import { textOf } from "../lib/charset"

/** A larger header is not verified: signatures name its fields, and each name is looked for. */
const MAX_HEAD_BYTES = 512 * 1024
const MAX_ROWS = 2_000

export interface MailHeader {
  rows: HeaderRow[]
  body_at: number
  /** Over a limit: `rows` are those before it. */
  too_large: boolean
}

/** How much of a message `headerRows` needs to see. */
export const HEAD_BYTES = MAX_HEAD_BYTES + 4

const FIELD = /^([\x21-\x39\x3b-\x7e]+)[ \t]*:/

/**
 * The fields of a header in their order, byte for byte. A line that begins no field belongs to the
 * field before it, whatever it begins with: readers differ there, and this way nothing that one of
 * them shows stays unsigned. The time is linear in the length.
 */
export function headerRows(raw: Uint8Array): MailHeader {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const rows: HeaderRow[] = []
  let from = 0
  let start = 0
  const close = (end: number) => {
    if (end <= start) return
    const line = bytes.subarray(start, end)
    const casedKey = FIELD.exec(line.toString("latin1"))?.[1] ?? ""
    rows.push({ key: casedKey.toLowerCase(), casedKey, line })
  }
  for (;;) {
    const found = bytes.indexOf("\r\n", from)
    const end = found === -1 ? bytes.length : found
    const is_end = end === from
    if (is_end || FIELD.test(bytes.toString("latin1", from, Math.min(end, from + MAX_NAME)))) {
      close(from - 2)
      start = from
    }
    if (is_end) return { rows, body_at: Math.min(end + 2, bytes.length), too_large: false }
    if (end > MAX_HEAD_BYTES || rows.length >= MAX_ROWS) break
    if (found === -1) {
      close(end)
      return { rows, body_at: bytes.length, too_large: false }
    }
    from = end + 2
  }
  return { rows, body_at: bytes.length, too_large: true }
}

/** No line that is sent is longer (RFC 5321 4.5.3.1.6), and so no field name. */
const MAX_NAME = 1_000

/** A longer From field is not read. */
const MAX_FROM_BYTES = 64 * 1024

/** RFC 1035 2.3.4. Nothing can be published for a longer name. */
const MAX_DOMAIN = 253

export interface MailAuthors {
  /** How many From fields the mail has. RFC 5322 3.6 wants one. */
  fields: number
  /** The domains of all addresses in them, as A-labels in lower case, each once. */
  domains: string[]
  /** Over a limit, so there may be more authors. */
  is_cut: boolean
}

/**
 * The authors that a reader may be shown, those of the record among them. A mailbox without a domain adds
 * none. `nearby` names a charset for a field that is neither ASCII nor UTF-8.
 */
export function authorsOf(
  { rows, too_large }: MailHeader,
  nearby: () => string = () => "",
): MailAuthors {
  const fields = rows.filter(({ key }) => key === "from").map(({ line }) => line)
  const short = fields.filter((line) => line.length <= MAX_FROM_BYTES)
  const domains = short.flatMap((line) => {
    const text = textOf(line, "", { nearby }).replaceAll("\r\n", "")
    const list = text.slice(text.indexOf(":") + 1)
    return [
      ...domainsOf(list),
      ...readAddressList(list).mailboxes.map(({ email }) => domainOf(email)),
    ]
  })
  const is_cut = too_large || short.length < fields.length
  return { fields: fields.length, domains: [...new Set(domains)], is_cut }
}

/**
 * The domains of an address list (RFC 5322 3.4): of what stands in angle brackets, and of the
 * members of the list that have no brackets.
 */
function domainsOf(text: string): string[] {
  const members = withoutNames(text).split(/[,;]/)
  const addresses = members.flatMap((member) => {
    if (!member.includes("<")) return [member.slice(member.indexOf(":") + 1)]
    return member
      .split("<")
      .slice(1)
      .map((rest) => rest.replace(/>.*$/s, ""))
  })
  return addresses.flatMap((address) => {
    const at = address.lastIndexOf("@")
    return at === -1 ? [] : wireName(address.slice(at + 1))
  })
}

/**
 * Leaves quoted strings and comments out, which may hold anything. One that has no end counts as
 * plain text, because readers show what is in it. One pass, so it is linear.
 */
function withoutNames(text: string): string {
  let left = ""
  let depth = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ""
    if (char === "\\" && (quoted || depth > 0)) at += 1
    else if (quoted) quoted = char !== '"'
    else if (char === '"' && depth === 0) quoted = true
    else if (char === "(") depth += 1
    else if (char === ")" && depth > 0) depth -= 1
    else if (depth === 0) left += char
  }
  return quoted || depth > 0 ? text : left
}

function wireName(text: string): string[] {
  const bare = text.replace(/[ \t]+/g, "").replace(/\.$/, "")
  const name = /^[!-~]*$/.test(bare) ? bare.toLowerCase() : domainToASCII(bare)
  return name === "" || name.length > MAX_DOMAIN ? [] : [name]
}
