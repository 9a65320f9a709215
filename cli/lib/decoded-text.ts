import { exits, Failure } from "./errors"

/** What a text was read as: `windows-1252` only where a byte of it is no UTF-8. */
export type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252" | "utf-8 and windows-1252"

/** Enough to know UTF-16 by the zero bytes of its ASCII. */
const HEAD_BYTES = 256

/**
 * The text of bytes that come in pieces, without a byte order mark. The bytes decide the encoding: UTF-16 has a mark or
 * zero bytes, all other text is UTF-8, and each byte that is none stands for its character of windows-1252. So a file
 * that was joined of both keeps every letter. Calls `found` at the end. Throws exit 7 for what is no text.
 */
export async function* textIn(
  bytes: AsyncIterable<Uint8Array>,
  name: string,
  found?: (encoding: Encoding) => void,
): AsyncGenerator<string> {
  let head: Buffer | undefined = Buffer.alloc(0)
  let decoder: Decoder | undefined
  const decode = (piece: Uint8Array, is_last: boolean) => {
    try {
      decoder ??= decoderFor(piece)
      const text = decoder.decode(piece, is_last)
      if (text.includes("\0")) throw new TypeError("Only a file of another kind has zeros")
      return text
    } catch {
      throw noText(piece, name)
    }
  }
  for await (const piece of bytes) {
    if (head) head = Buffer.concat([head, piece])
    if (head && head.length < HEAD_BYTES) continue
    yield decode(head ?? piece, false)
    head = undefined
  }
  yield decode(head ?? new Uint8Array(), true)
  if (decoder) found?.(decoder.encoding())
}

function noText(piece: Uint8Array, name: string): Failure {
  const [first, second] = piece
  const is_packed = (first === 0x50 && second === 0x4b) || (first === 0x1f && second === 0x8b)
  const hint = is_packed
    ? "it is an archive or a spreadsheet: unpack it, or save it as CSV"
    : "save it as UTF-8"
  const message = `FILE: ${name} is no text in UTF-8, UTF-16 or windows-1252.`
  return new Failure(exits.invalid, "invalid_text", message, { hint })
}

interface Decoder {
  decode(piece: Uint8Array, is_last: boolean): string
  encoding(): Encoding
}

function decoderFor(head: Uint8Array): Decoder {
  const [first, second] = head
  const [even, odd] = [zeros(head, 0), zeros(head, 1)]
  if ((first === 0xff && second === 0xfe) || odd > even) return utf16("utf-16le")
  if ((first === 0xfe && second === 0xff) || even > odd) return utf16("utf-16be")
  return utf8OrWindows()
}

/** How many zero bytes there are at the even or the odd places. */
const zeros = (bytes: Uint8Array, odd: 0 | 1): number =>
  bytes.subarray(0, HEAD_BYTES).filter((byte, at) => byte === 0 && at % 2 === odd).length

function utf16(label: "utf-16le" | "utf-16be"): Decoder {
  const decoder = new TextDecoder(label, { fatal: true })
  return {
    decode: (piece, is_last) => decoder.decode(piece, { stream: !is_last }),
    encoding: () => label,
  }
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const windows = new TextDecoder("windows-1252")

/** A character of UTF-8 beyond ASCII (RFC 3629, section 4), or one byte that is none, in a text of bytes. */
const BEYOND_ASCII =
  /[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}|[\x80-\xff]/g

/** A character of UTF-8 that the next piece may complete. */
const CUT = /[\xc2-\xf4][\x80-\xbf]{0,2}$/

/** windows-1252 has no characters for these bytes: a text with them has another encoding. */
const UNUSED = /[\x81\x8d\x8f\x90\x9d]/

function utf8OrWindows(): Decoder {
  let rest = ""
  let is_first = true
  const seen = { utf8: false, windows: false }
  const character = (bytes: string) => {
    if (bytes.length === 1 && UNUSED.test(bytes)) throw new TypeError("The byte is no character")
    seen[bytes.length === 1 ? "windows" : "utf8"] = true
    return (bytes.length === 1 ? windows : strictUtf8).decode(Buffer.from(bytes, "latin1"))
  }
  return {
    decode(piece, is_last) {
      let bytes = rest + Buffer.from(piece).toString("latin1")
      rest = is_last ? "" : (CUT.exec(bytes.slice(-3))?.[0] ?? "")
      bytes = bytes.slice(0, bytes.length - rest.length)
      const text = bytes.replace(BEYOND_ASCII, character)
      const whole = is_first && text.startsWith("\ufeff") ? text.slice(1) : text
      if (bytes !== "") is_first = false
      return whole
    },
    encoding() {
      if (!seen.windows) return "utf-8"
      return seen.utf8 ? "utf-8 and windows-1252" : "windows-1252"
    },
  }
}
