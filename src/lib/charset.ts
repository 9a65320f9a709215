import { isAscii, isUtf8 } from "node:buffer"
import iconv from "iconv-lite"

/** What else is known of bytes whose label is missing or wrong. */
export interface TextClues {
  /** The text is html, which may name its charset itself. */
  is_html?: boolean
  /** A charset that the rest of the mail names; empty where it names none. */
  nearby?: () => string
}

/**
 * Bytes of a mail as text. This is the one place that decides for a charset. The label counts, unless the
 * bytes say something else: a byte order mark, escapes of ISO-2022, valid UTF-8. Where the label is missing,
 * unknown or disproved, the html itself or the rest of the mail may name a charset; the last resort is
 * windows-1252. A byte that means nothing costs one character. Never throws.
 */
export function textOf(bytes: Uint8Array, label = "", clues: TextClues = {}): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const charset = charsetOf(label)
  const is_ascii = isAscii(buffer)
  if (is_ascii && !SHIFTED.has(charset) && !buffer.includes(ESCAPE))
    return buffer.toString("latin1")
  const marked = charsetOfMark(buffer)
  if (marked !== undefined) return decoded(buffer, marked)
  if (is_ascii || charset.startsWith(ISO_2022)) {
    const source = buffer.toString("latin1")
    if (DESIGNATION.test(source) || charset === KOREAN) return fromIso2022(source, charset)
  }
  if (isUtf8(buffer) && !isOwnForm(buffer, charset)) return decoded(buffer, "utf-8")
  if (isNamed(charset)) return named(buffer, charset, clues)
  return byEvidence(buffer, charset, clues)
}

/** Named on purpose. The others are what programs write that know no charset. */
const isNamed = (charset: string) => charset !== "" && charset !== "utf-8" && charset !== LATIN

/** The label stands, unless html that names another charset fits it better. */
function named(bytes: Buffer, charset: string, clues: TextClues): string {
  if (charset.startsWith(ISO_2022)) return byEvidence(bytes, "", { nearby: () => charset })
  const text = decoded(bytes, charset)
  const other = clues.is_html && text.includes(LOST) ? charsetInHtml(bytes) : ""
  const better = isNamed(other) ? decoded(bytes, other) : text
  return better.includes(LOST) ? text : better
}

/** Of bytes that are not UTF-8 throughout. */
function byEvidence(bytes: Buffer, charset: string, clues: TextClues): string {
  const text = decoded(bytes, "utf-8")
  const lost = text.split(LOST).length - 1
  const read = text.replace(/[\0-\x7f\ufffd]+/g, "").length
  if (read > lost || (charset === "utf-8" && read > 0 && read * 4 >= lost)) return text
  const inside = clues.is_html ? charsetInHtml(bytes) : ""
  if (inside !== "") return decoded(bytes, inside)
  const near = charset === LATIN ? "" : charsetOf(clues.nearby?.() ?? "")
  return decoded(bytes, isNamed(near) ? near : LATIN)
}

const LOST = "\ufffd"
const ESCAPE = 0x1b
const LATIN = "windows-1252"
const ISO_2022 = "iso-2022"
const KOREAN = "iso-2022-kr"

/** ASCII bytes mean something else in these. */
const SHIFTED = new Set([ISO_2022, KOREAN, "hz", "utf-7", "utf-7-imap", "utf-16", "utf-16le"])
for (const wide of ["utf-16be", "utf-32", "utf-32le", "utf-32be"]) SHIFTED.add(wide)

/** Two letters in one of these may be UTF-8 by chance. */
const AMBIGUOUS =
  /^(?:gb|big5|euc-|shift_jis|windows-874|cp(?:437|7|85|86)|ibm|mac|x-mac|hp|viscii|tcvn)/
const MOST_CHANCE = 2

/** Whether bytes that are valid UTF-8 are what the label says all the same. */
function isOwnForm(bytes: Buffer, charset: string): boolean {
  if (charset === "hz" || charset.startsWith("utf-7")) return isAscii(bytes)
  if (charset.startsWith(ISO_2022)) return false
  if (SHIFTED.has(charset)) return bytes.includes(0)
  if (!AMBIGUOUS.test(charset) || decoded(bytes, charset).includes(LOST)) return false
  let continued = 0
  for (const byte of bytes.subarray(0, 1_000)) if ((byte & 0xc0) === 0x80) continued++
  return continued <= MOST_CHANCE
}

function charsetOfMark(bytes: Buffer): string | undefined {
  const start = bytes.toString("hex", 0, 4)
  if (start.startsWith("efbbbf")) return "utf-8"
  if (start === "fffe0000" || start === "0000feff") return "utf-32"
  if (start.startsWith("fffe")) return "utf-16le"
  return start.startsWith("feff") ? "utf-16be" : undefined
}

/** How much of a message, or of its html, is searched for the name of a charset. */
const SEARCHED_BYTES = 64 * 1024

const IN_HTML =
  /<(?:meta\b[^>]{0,500}?\bcharset|\?xml\b[^>]{0,100}?\bencoding)\s{0,20}=([^>]{1,60})/gi

/** What html says of itself, far beyond the first 1,024 bytes, where browsers look. It says so in ASCII. */
const charsetInHtml = (html: Buffer): string =>
  firstNamed(html, IN_HTML, (charset) => charset !== "" && !charset.startsWith("utf-"))

/** The first charset that a message names anywhere and that says more than ASCII and UTF-8. It is looked for once. */
export function charsetNear(message: Buffer): () => string {
  let found: string | undefined
  return () => {
    found ??= firstNamed(message, /\bcharset\s{0,20}=([^\r\n>]{1,60})/gi, isNamed)
    return found
  }
}

function firstNamed(bytes: Buffer, pattern: RegExp, isWanted: (charset: string) => boolean) {
  const named = bytes.toString("latin1", 0, SEARCHED_BYTES).matchAll(pattern)
  return named.map(([, label = ""]) => charsetOf(label)).find(isWanted) ?? ""
}

/** Of 8-bit bytes that somebody calls ISO-2022-JP. */
const japanese = (bytes: Buffer): string =>
  ["euc-jp", "shift_jis"].find((one) => !decoded(bytes, one).includes(LOST)) ?? LATIN

/** Names in use that neither decoder knows, without `x-` and `cs`; the first that fits. `$1` is of the pattern. */
const ALIASES: [RegExp, string][] = [
  [/^(?:utf-?8(?!\d)|cp65001|65001$|unicode-[12]-[01]-utf-8)/, "utf-8"],
  [
    /^(?:us-?)?ascii$|^ansi-x3|^iso646-us$|^iso-ir-6$|unknown|^[78]-?bit|^binary$|^default$|^user-def/,
    "",
  ],
  [/^iso-?2022-?kr|^cp50225/, KOREAN],
  [/^iso-?2022|^jis7?$|^cp502\d\d|^jis-encoding/, ISO_2022],
  [/^hz|^cp52936/, "hz"],
  [/^u(?:tf-?)?7$|^unicode-[12]-[01]-utf-7|^unicode11utf7|^cp65000/, "utf-7"],
  [/^(?:unicode|ucs-?2|iso-10646-ucs-2)$/, "utf-16"],
  [/^(?:cp1200|ucs-?2-?le)$/, "utf-16le"],
  [/^cp1201$/, "utf-16be"],
  [/^(?:cp12000|(?:iso-10646-)?ucs-?4)$/, "utf-32"],
  [/^utf-?(16|32)-?(le|be)?$/, "utf-$1$2"],
  [/^euc-?jp|^cp51932|^euc-?jis|^u-?jis|^eucpkd|^extended-unix-code-packed/, "euc-jp"],
  [
    /^(?:s-?jis|shift-?jis|(?:cp|ms|win|windows-?|ibm-?)9[34][23]|windows-?31j|mac-japanese)/,
    "shift_jis",
  ],
  [
    /^(?:(?:cp|ms|windows-?)936|cp54936|euc-?cn|euc-?gb|gbk|gb2312|gb-?18030|mac-(?:simp-c|c)hinese)/,
    "gb18030",
  ],
  [/^(?:(?:cp|ms|windows-?|ibm-?)9(?:49|70)|cp51949|uhc|euc-?kr|ks-?[cx]|mac-korean)/, "euc-kr"],
  [/^(?:(?:cp|ms|windows-?)95[01]|mac-trad-chinese)|big-?5|hkscs/, "big5"],
  [/^mac-?(?:ce$|centraleurope|latin-?2)/, "maccenteuro"],
  [/^mac-(greek|turkish|croatian|romania|iceland|thai)/, "mac$1"],
  [/^(?:cp|w|win|windows|ibm)-?(125\d)/, "windows-$1"],
  [/^(?:dos|ibm|pc|oem|cp)-?0*(437|7\d\d|8\d\d)/, "cp$1"],
  [/^(?:cp|windows-?)20866$|^ru-koi8/, "koi8-r"],
  [/^cp10000$/, "macintosh"],
  [/^(?:iso|utf)?-?8859-?(\d\d?)(?!\d)(?:.*(-[ie])$)?/, "iso-8859-$1"],
]

const known = new Map<string, string>()
const MOST_KNOWN = 1_000

/**
 * The charset that a label of a mail means, as the decoders name it; empty where it means none. The
 * label may stand in quotes, and have a comment or anything else behind it.
 */
export function charsetOf(label: string): string {
  const found = known.get(label)
  if (found !== undefined) return found
  const name =
    /[a-z0-9][^\s"'();,<>]*/i
      .exec(label.slice(0, 80).replace(/^\s*=?3D/i, ""))?.[0]
      .toLowerCase() ?? ""
  const bare = name.replaceAll("_", "-").replace(/^(?:x-x-|x-|cs)/, "")
  const [pattern, meant] = ALIASES.find(([one]) => one.test(bare)) ?? []
  const charset = pattern
    ? canonicalName(bare.replace(new RegExp(`^.*?(?:${pattern.source}).*`), meant ?? ""))
    : canonicalName(name) || canonicalName(bare)
  if (known.size >= MOST_KNOWN) known.clear()
  known.set(label, charset)
  return charset
}

/** No charsets, though the library has them. */
const NO_CHARSETS = /^(?:hex|base64|binary|ucs-?2|cesu-?8)$/

function canonicalName(name: string): string {
  if (name === "" || SHIFTED.has(name)) return name
  const own = decoderOf(name)?.encoding
  if (own !== undefined) return own // the first question to the library loads all of its tables
  return iconv.encodingExists(name) && !NO_CHARSETS.test(name) ? name : ""
}

const decoders = new Map<string, TextDecoder | undefined>()

/**
 * The runtime's own decoder reads what browsers read. `iconv-lite` has the rest: code pages of DOS and
 * of the Macintosh, UTF-7, UTF-32.
 */
function decoded(bytes: Buffer, charset: string): string {
  if (charset === "hz") return fromHz(bytes.toString("latin1"))
  if (charset.startsWith(ISO_2022)) return decoded(bytes, japanese(bytes))
  if (!decoders.has(charset)) decoders.set(charset, decoderOf(charset))
  return decoders.get(charset)?.decode(bytes) ?? iconv.decode(bytes, charset)
}

/** UTF-16 without a mark has no order, which only the library guesses. */
function decoderOf(name: string): TextDecoder | undefined {
  if (name === "utf-16") return undefined
  try {
    return new TextDecoder(name as Bun.Encoding)
  } catch {
    return undefined
  }
}

/** What an escape of ISO-2022 says of the bytes behind it (RFC 1468, 1554, 1557 and 1922). */
const ESCAPES = /\x1b(?:\$[@AB]|\$[()][@-GO-Q]|\([@-Z]|&@|\.[AF]|[Nno])|[\x0e\x0f]/g
const DESIGNATION = /\x1b(?:\$[@AB]|\$[()][@-GO-Q]|\([IJ])/

/**
 * Text of the ISO-2022 family, piece by piece between its escapes. Pieces of two bytes a character are
 * those of an EUC charset without the high bits.
 */
function fromIso2022(source: string, label: string): string {
  const parts: string[] = []
  let charset = "" // of G0
  let shifted = label === KOREAN ? "euc-kr" : KATAKANA // of G1, which SO calls in
  let is_out = false
  let from = 0
  const add = (to: number) => {
    if (to > from) parts.push(fromPiece(source.slice(from, to), is_out ? shifted : charset))
  }
  for (const { 0: sign, index } of source.matchAll(ESCAPES)) {
    add(index)
    from = index + sign.length
    const set = sign.at(-1) ?? ""
    if (sign === SHIFT_OUT || sign === SHIFT_IN) is_out = sign === SHIFT_OUT
    else if (sign.startsWith("\x1b$)")) shifted = SETS[set] ?? "gb18030"
    else if (sign.startsWith("\x1b$")) charset = SETS[set] ?? ""
    else if (sign.startsWith("\x1b(")) charset = set === "I" ? KATAKANA : ""
  }
  add(source.length)
  return parts.join("")
}

const SHIFT_OUT = "\x0e"
const SHIFT_IN = "\x0f"
const KATAKANA = "iso-ir-13"

/** The sets of two bytes a character by the end of their escape. */
const SETS: Record<string, string> = { "@": "euc-jp", B: "euc-jp", O: "euc-jp", Q: "euc-jp" }
Object.assign(SETS, { A: "gb18030", C: "euc-kr", D: "jisx0212" })

function fromPiece(piece: string, set: string): string {
  if (set === "") return textOf(Buffer.from(piece, "latin1"))
  if (set === KATAKANA) return decoded(high(piece), "shift_jis")
  if (set !== "jisx0212") return decoded(high(piece), set)
  return decoded(high(piece.replace(/[!-~]{2}/g, "\x0f$&")), "euc-jp")
}

/** Line ends and spaces are the same in every set. */
const high = (piece: string): Buffer =>
  Buffer.from(
    piece.replace(/[\x0f!-~]/g, (one) => String.fromCharCode(one.charCodeAt(0) | 0x80)),
    "latin1",
  )

/** RFC 1843: GB2312 between braces, as between two escapes; a tilde at a line's end joins lines. */
const fromHz = (source: string): string => {
  const signs: Record<string, string> = { "{": "\x1b$A", "}": "\x1b(B", "~": "~" }
  return fromIso2022(
    source.replace(/~([{}~]|\r?\n)/g, (_, sign) => signs[sign] ?? ""),
    "",
  )
}
