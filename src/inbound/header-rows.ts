import type { HeaderRow } from "mailauth/lib/dkim/dkim-verifier"

/** A larger header is not judged: signatures name its fields, and each name is looked for. */
const MAX_HEAD_BYTES = 512 * 1024
const MAX_ROWS = 2_000

export interface MailHeader {
  rows: HeaderRow[]
  /** Where the body begins. */
  body_at: number
  /** Over a limit: `rows` are those before it. */
  too_large: boolean
}

export const NO_CHAIN = "The mail has no ARC fields."

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
