import { exits, Failure } from "./errors"

/** What a text was read as: `windows-1252` where a byte of it is no UTF-8. */
export interface ReadAs {
  encoding: "utf-8" | "utf-16le" | "utf-16be" | "windows-1252"
}

/** Enough to know UTF-16 by the zero bytes of its ASCII. */
const HEAD_BYTES = 256

/**
 * The text of bytes that come in pieces, without a byte order mark. The bytes decide the encoding: UTF-16 has a mark or
 * zero bytes, all other text is UTF-8, and each byte that is none stands for its character of windows-1252. So a file
 * that was joined of both keeps every letter. `read` says at the end what it was. Throws exit 7 for what is no text.
 */
export async function* textIn(
  bytes: AsyncIterable<Uint8Array>,
  name: string,
  read?: ReadAs,
): AsyncGenerator<string> {
  let head: Buffer | undefined = Buffer.alloc(0)
  let decoder: Decoder | undefined
  const decode = (piece: Uint8Array, is_last: boolean) => {
    decoder ??= decoderFor(piece)
    const text = decoder.decode(piece, is_last)
    if (text === undefined || text.includes("\0")) throw noText(name)
    return head ? text.replace(/^\ufeff/, "") : text
  }
  for await (const piece of bytes) {
    if (head) head = Buffer.concat([head, piece])
    if (head && head.length < HEAD_BYTES) continue
    yield decode(head ?? piece, false)
    head = undefined
  }
  yield decode(head ?? new Uint8Array(), true)
  if (decoder && read) read.encoding = decoder.encoding
}

function noText(name: string): Failure {
  const hint = "save it as UTF-8; unpack an archive, and save a spreadsheet as CSV"
  const message = `FILE: ${name} is no text in UTF-8, UTF-16 or windows-1252.`
  return new Failure(exits.invalid, "invalid_text", message, { hint })
}

interface Decoder extends ReadAs {
  /** None for bytes that are no text. */
  decode(piece: Uint8Array, is_last: boolean): string | undefined
}

function decoderFor(head: Uint8Array): Decoder {
  const zeros = (odd: number) => head.filter((byte, at) => byte === 0 && at % 2 === odd).length
  const [even, odd] = [zeros(0), zeros(1)]
  if ((head[0] === 0xff && head[1] === 0xfe) || odd > even) return utf16("utf-16le")
  if ((head[0] === 0xfe && head[1] === 0xff) || even > odd) return utf16("utf-16be")
  return utf8OrWindows()
}

function utf16(encoding: "utf-16le" | "utf-16be"): Decoder {
  const decoder = new TextDecoder(encoding)
  return { encoding, decode: (piece, is_last) => decoder.decode(piece, { stream: !is_last }) }
}

/** A character of UTF-8 beyond ASCII (RFC 3629, section 4), or one byte that is none, in a text of bytes. */
const BEYOND_ASCII =
  /[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}|[\x80-\xff]/g

/** A character of UTF-8 that the next piece may complete. */
const CUT = /[\xc2-\xf4][\x80-\xbf]{0,2}$/

/** windows-1252 has no characters for these bytes: a text with them has another encoding. */
const UNUSED = /[\x81\x8d\x8f\x90\x9d]/

const windows = new TextDecoder("windows-1252")

function utf8OrWindows(): Decoder {
  let rest = ""
  let is_text = true
  const decoder: Decoder = {
    encoding: "utf-8",
    decode(piece, is_last) {
      const bytes = rest + Buffer.from(piece).toString("latin1")
      const cut = is_last ? 0 : (CUT.exec(bytes.slice(-3))?.[0].length ?? 0)
      rest = bytes.slice(bytes.length - cut)
      const text = bytes.slice(0, bytes.length - cut).replace(BEYOND_ASCII, (char) => {
        if (char.length > 1) return Buffer.from(char, "latin1").toString()
        decoder.encoding = "windows-1252"
        is_text &&= !UNUSED.test(char)
        return windows.decode(Buffer.from(char, "latin1"))
      })
      return is_text ? text : undefined
    },
  }
  return decoder
}
