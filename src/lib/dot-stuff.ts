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
