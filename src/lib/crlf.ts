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
