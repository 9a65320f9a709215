import { charsetNear, charsetOf, textOf } from "./charset"

/** The rest of a longer header is not read. */
const MAX_HEAD_BYTES = 256 * 1024

/**
 * The header fields of a message, names in lower case, unfolded, encoded words decoded, in the
 * order of the message. Reads the first 256 KB and never throws: what is no field is left out.
 */
export const headerFields = (raw: Uint8Array): [name: string, value: string][] =>
  encodedFields(raw).map(([name, value]) => [name, decodeWords(value).trim()])

/** The same with encoded words as they stand: in a list of addresses a word may hold a comma. */
export function encodedFields(raw: Uint8Array): [name: string, value: string][] {
  const message = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  return splitHead(message, { is_part: false, nearby: charsetNear(message) }).fields
}

interface HeadPlace {
  /** Within a multipart, where only the fields of MIME mean something. */
  is_part: boolean
  /** A charset that the rest of the mail names. */
  nearby: () => string
}

const FIELD = /^(?!--)([!-9;-~]+)[ \t]*:(.*)$/s
const MIME_FIELD = /^(?:content|mime|x)-[!-9;-~]+[ \t]*:/i

/** A parameter whose line lacks its indentation. */
const PARAMETER_LINE = /^[a-z][a-z0-9*-]*\s*=/i

/**
 * The fields of a message or part with encoded words as they stand, and its body. The empty line between
 * them may be missing: then the body begins with the first line that is no field and that no field
 * comes behind.
 */
export function splitHead(part: Buffer, { is_part, nearby }: HeadPlace): MailHead {
  if (part[0] === CR && part[1] === LF) return { fields: [], body: part.subarray(2) }
  const end = part.indexOf("\r\n\r\n")
  const head = part.subarray(0, Math.min(end === -1 ? part.length : end, MAX_HEAD_BYTES))
  const lines = head.toString("latin1").split("\r\n")
  const is_field = is_part && end === -1 ? MIME_FIELD : FIELD
  const last = lastField(lines, is_part ? MIME_FIELD : FIELD)
  const fields: MailHead["fields"] = []
  let body = end === -1 ? part.length : end + 4
  let offset = 0
  for (const [at, line] of lines.entries()) {
    const open = fields.at(-1)
    const [, name, value] = is_field.test(line) ? (FIELD.exec(line) ?? []) : []
    if (open && continues(lines[at - 1], line)) open[1] += line
    else if (name !== undefined) fields.push([name.toLowerCase(), value ?? ""])
    else if (at > last) {
      body = offset
      break
    }
    offset += line.length + 2
  }
  for (const field of fields) {
    if (!PLAIN.test(field[1])) field[1] = textOf(Buffer.from(field[1], "latin1"), "", { nearby })
  }
  return { fields, body: part.subarray(body) }
}

interface MailHead {
  fields: [name: string, value: string][]
  body: Buffer
}

/** Of the lines before the first delimiter of a multipart. */
function lastField(lines: string[], form: RegExp): number {
  const delimiter = lines.findIndex((line) => line.startsWith("--"))
  const before = delimiter === -1 ? lines : lines.slice(0, delimiter)
  return before.findLastIndex((line) => form.test(line))
}

/** The line before is looked at, not the value: that grows with each line. */
const continues = (before: string | undefined, line: string): boolean =>
  /^[ \t]/.test(line) || (PARAMETER_LINE.test(line) && before?.trimEnd().endsWith(";") === true)

/** ASCII without escapes, which may be those of ISO-2022. */
const PLAIN = /^[\0-\x1a\x1c-\x7f]*$/

/** The same of a text with any line ends, which may begin with empty lines or the line of an mbox. */
export const canonicalFields = (text: string): [name: string, value: string][] => {
  const start = text.slice(0, MAX_HEAD_BYTES).replace(/^[\s>]*(?:From [^\r\n]*\r?\n)?/, "")
  return headerFields(Buffer.from(canonical(start)))
}

/** Whether a part of the header is not read. */
export function hasLongHead(raw: Uint8Array): boolean {
  const start = Buffer.from(
    raw.buffer,
    raw.byteOffset,
    Math.min(raw.byteLength, MAX_HEAD_BYTES + 4),
  )
  return raw.byteLength > MAX_HEAD_BYTES && !start.includes("\r\n\r\n")
}

/** How many fields the header has, without the `Content-*` fields. */
export function countFields(raw: Uint8Array): number {
  const message = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const end = message.indexOf("\r\n\r\n")
  const head = message.toString("latin1", 0, end === -1 ? message.length : end)
  return head.match(/(?:^|\r\n)(?![ \t]|content-)[^\r]/gi)?.length ?? 0
}

/** The first field of that name (in lower case). */
export const fieldOf = (fields: [string, string][], name: string): string | undefined =>
  fields.find(([key]) => key === name)?.[1]

/** An encoded word (RFC 2047), also with spaces and question marks, which it should have encoded. */
export const ENCODED_WORD =
  "=\\?([^?\\s*]{1,60})(?:\\*[^?\\s]{0,60})?\\?([bqBQ])\\?((?:[ -<>@-~]|=(?!\\?(?!=))|\\?(?!=))*)\\?="
const WORD = new RegExp(ENCODED_WORD, "g")
const GROUPS = /\((?!\?)/g
const WORDS = new RegExp(`${ENCODED_WORD}(?:[ \\t]*${ENCODED_WORD.replace(GROUPS, "(?:")})*`, "g")

/**
 * RFC 2047. Neighbours of one charset are joined before decoding, because some mailers split a
 * character between two words, and others the base64 of one. A line end in a word
 * becomes a space, so that nobody writes it into another header.
 */
export const decodeWords = (text: string): string =>
  text.replace(WORDS, (run) => {
    const words: { charset: string; is_base64: boolean; payload: string }[] = []
    for (const [, name = "", encoding = "", payload = ""] of run.matchAll(WORD)) {
      const word = { charset: charsetOf(name), is_base64: /b/i.test(encoding), payload }
      const last = words.at(-1)
      const is_rest = last?.is_base64 && last.payload.length % 4 > 0 && !last.payload.endsWith("=")
      if (is_rest && word.is_base64 && last.charset === word.charset) last.payload += payload
      else words.push(word)
    }
    const parts: { charset: string; bytes: Buffer[] }[] = []
    for (const { charset, is_base64, payload } of words) {
      const bytes = is_base64 ? Buffer.from(payload, "base64") : fromQ(payload)
      const last = parts.at(-1)
      if (last?.charset === charset) last.bytes.push(bytes)
      else parts.push({ charset, bytes: [bytes] })
    }
    const text = parts.map(({ charset, bytes }) => textOf(Buffer.concat(bytes), charset)).join("")
    return withoutLineEnds(text)
  })

/** What was decoded for a header, whose values have one line. */
export const withoutLineEnds = (text: string): string => text.replace(/[\r\n\0]+/g, " ")

function fromQ(payload: string): Buffer {
  const plain = payload
    .replaceAll("_", " ")
    .replace(/= +=?/g, "=") // a line end within an escape, or before one
    .replace(/=([0-9A-Fa-f]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(plain, "latin1")
}

const CR = 13
const LF = 10

/** Whether CRLF stands before that place. A search from LF to CRLF would look at the rest each time. */
export const endsLine = (bytes: Uint8Array, at: number): boolean =>
  bytes[at - 1] === LF && bytes[at - 2] === CR

/** The same text with every CR, LF and CRLF as CRLF (RFC 5322, 2.3). */
export const canonical = (text: string): string => text.replace(/\r\n?|\n/g, "\r\n")

/** No NUL, and CR and LF only as a pair: what a message must be before it meets a server. */
export function isClean(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false
  let line_end = bytes.indexOf(LF)
  let from = 0
  while (line_end !== -1) {
    if (bytes.indexOf(CR, from) !== line_end - 1 || line_end === 0) return false
    from = line_end + 1
    line_end = bytes.indexOf(LF, from)
  }
  return bytes.indexOf(CR, from) === -1
}

const LOOKED_AT_ONCE = 512 * 1024

/** The same of a message of many megabytes, with a `turn` of others after each half of one. */
export async function isCleanInTurns(
  bytes: Uint8Array,
  turn: () => Promise<void>,
): Promise<boolean> {
  let from = 0
  while (bytes.length - from > LOOKED_AT_ONCE) {
    const line_end = bytes.indexOf(LF, from + LOOKED_AT_ONCE)
    if (line_end === -1) break
    if (!isClean(bytes.subarray(from, line_end + 1))) return false
    from = line_end + 1
    await turn()
  }
  return isClean(bytes.subarray(from))
}

const DOT_AT_LINE_START = "\r\n."

const END = Buffer.from("\r\n.\r\n")
const NO_ROOM = Buffer.alloc(0)

/**
 * What follows the 354 of DATA: the message with its leading dots doubled and the line with the
 * single dot behind it (RFC 5321, 4.5.2). The message has CRLF line ends only (`isClean`). Where it
 * fits, it is put into `room`.
 */
export function dotStuffed(raw: Uint8Array, room = NO_ROOM): Buffer {
  const message = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const is_ended = message.length === 0 || message.at(-1) === LF
  const end = is_ended ? END.subarray(2) : END
  const parts: Uint8Array[] = []
  if (message[0] === 0x2e) parts.push(Buffer.from("."))

  let from = 0
  let dot = message.indexOf(DOT_AT_LINE_START)
  while (dot !== -1) {
    parts.push(message.subarray(from, dot + 2), Buffer.from("."))
    from = dot + 2
    dot = message.indexOf(DOT_AT_LINE_START, dot + 3)
  }
  parts.push(message.subarray(from), end)
  if (parts.length > 2 || message.length + end.length > room.length) return Buffer.concat(parts)
  room.set(message)
  room.set(end, message.length)
  return room.subarray(0, message.length + end.length)
}
