const MAX_HEAD_BYTES = 64 * 1024

/**
 * The header fields of a message, names in lower case, unfolded, encoded words decoded, in the
 * order of the message. Reads the first 64 KB and never throws: what is no field is left out.
 */
export const headerFields = (raw: Uint8Array): [name: string, value: string][] =>
  encodedFields(raw).map(([name, value]) => [name, decodeWords(value).trim()])

/** The same with encoded words as they stand: in a list of addresses a word may hold a comma. */
export function encodedFields(raw: Uint8Array): [name: string, value: string][] {
  const start = Buffer.from(raw.buffer, raw.byteOffset, Math.min(raw.byteLength, MAX_HEAD_BYTES))
  const end = start.indexOf("\r\n\r\n")
  const head = start.subarray(0, end === -1 ? start.length : end).toString("utf8")
  const fields: [string, string][] = []
  for (const line of head.replace(/\r\n(?=[ \t])/g, "").split("\r\n")) {
    const [, name, value] = /^([!-9;-~]+)[ \t]*:(.*)$/s.exec(line) ?? []
    if (name !== undefined) fields.push([name.toLowerCase(), value ?? ""])
  }
  return fields
}

/** The same of a text with any line ends, which may begin with empty lines or the line of an mbox. */
export const canonicalFields = (text: string): [name: string, value: string][] => {
  const start = text.slice(0, MAX_HEAD_BYTES).replace(/^[\s>]*(?:From [^\r\n]*\r?\n)?/, "")
  return headerFields(Buffer.from(canonical(start)))
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

const WORD = "=\\?([A-Za-z0-9_-]+)(?:\\*[A-Za-z-]+)?\\?([bqBQ])\\?([!->@-~]*)\\?="
const WORDS = new RegExp(`${WORD}(?:[ \\t]+${WORD.replaceAll(/\((?!\?)/g, "(?:")})*`, "g")

/**
 * RFC 2047. Neighbours of one charset are joined before decoding, because some mailers split a
 * character between two words. Words of an unknown charset stay as they are.
 */
export const decodeWords = (text: string): string =>
  text.replace(WORDS, (run) => {
    const parts: { charset: string; bytes: Buffer }[] = []
    for (const [, name = "", encoding = "", payload = ""] of run.matchAll(new RegExp(WORD, "g"))) {
      const charset = name.toLowerCase()
      const last = parts.at(-1)
      const bytes = /b/i.test(encoding) ? Buffer.from(payload, "base64") : fromQ(payload)
      if (last?.charset === charset) last.bytes = Buffer.concat([last.bytes, bytes])
      else parts.push({ charset, bytes })
    }
    try {
      return parts.map(({ charset, bytes }) => inCharset(charset, bytes)).join("")
    } catch {
      return run
    }
  })

/** The label comes from the message, so it may name anything: the decoder throws for the unknown. */
const inCharset = (charset: string, bytes: Buffer) =>
  new TextDecoder(charset as Bun.Encoding).decode(bytes)

const fromQ = (payload: string): Buffer => {
  const spaced = payload.replaceAll("_", " ")
  const plain = spaced.replace(/=([0-9A-Fa-f]{2})/g, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(plain, "latin1")
}

const CR = 13
const LF = 10

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

/**
 * What follows the 354 of DATA: the message with its leading dots doubled and the line with the
 * single dot behind it (RFC 5321, 4.5.2). The message has CRLF line ends only (`isClean`).
 */
export function dotStuffed(raw: Uint8Array): Buffer {
  const message = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const parts: Uint8Array[] = []
  if (message[0] === 0x2e) parts.push(Buffer.from("."))

  let from = 0
  let dot = message.indexOf(DOT_AT_LINE_START)
  while (dot !== -1) {
    parts.push(message.subarray(from, dot + 2), Buffer.from("."))
    from = dot + 2
    dot = message.indexOf(DOT_AT_LINE_START, dot + 3)
  }
  const ended = message.length === 0 || message.subarray(-2).toString("latin1") === "\r\n"
  parts.push(message.subarray(from), Buffer.from(ended ? ".\r\n" : "\r\n.\r\n"))
  return Buffer.concat(parts)
}
