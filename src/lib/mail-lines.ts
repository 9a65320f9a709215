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
