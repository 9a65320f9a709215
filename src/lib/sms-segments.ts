export interface SmsSegments {
  encoding: "gsm7" | "ucs2"
  segments: number
}

/** What a sender wants to know of a text before it leaves (contract 41). */
export interface TextInspection extends SmsSegments {
  /** In code points, as `index` counts them. */
  characters: number
  /** Units that one segment of this text holds. An extension character of GSM-7 has two of them. */
  per_segment: number
  /** The characters that GSM-7 does not have, the first 100 of them. `index` counts code points from 0. */
  offending: { char: string; index: number }[]
  /** The text in GSM-7; null where it has no faithful form, where that is longer, or where it is GSM-7 already. */
  gsm7_suggestion: string | null
}

/** The default alphabet of GSM 03.38, and what takes an escape before it. */
const BASIC = new Set(
  "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà",
)
const EXTENDED = new Set("\f^{}\\[~]|€")

/** Units of one message that stands alone, and of each part of a longer one. */
const SIZES = { gsm7: { alone: 160, part: 153 }, ucs2: { alone: 70, part: 67 } }

const isGsm = (character: string) => BASIC.has(character) || EXTENDED.has(character)

/**
 * The encoding of a text and the number of its parts. No character is divided: neither one that takes an
 * escape in GSM-7, nor one of two units in UCS-2. A line break of two characters counts as two.
 */
export function smsSegments(text: string): SmsSegments {
  const characters = [...text]
  const encoding = characters.every(isGsm) ? "gsm7" : "ucs2"
  const unitsOf = (one: string) => (encoding === "ucs2" ? one.length : EXTENDED.has(one) ? 2 : 1)
  const { alone, part } = SIZES[encoding]
  const all = characters.reduce((sum, one) => sum + unitsOf(one), 0)
  if (all <= alone) return { encoding, segments: all === 0 ? 0 : 1 }
  let segments = 1
  let used = 0
  for (const one of characters) {
    const units = unitsOf(one)
    if (used + units > part) {
      segments += 1
      used = 0
    }
    used += units
  }
  return { encoding, segments }
}

const MOST_OFFENDING = 100

/** Encoding, segments, and what could be changed so that the text takes fewer of them. */
export function inspectText(text: string): TextInspection {
  const { encoding, segments } = smsSegments(text)
  const characters = [...text]
  const offending: TextInspection["offending"] = []
  for (const [index, char] of characters.entries()) {
    if (offending.length === MOST_OFFENDING) break
    if (!isGsm(char)) offending.push({ char, index })
  }
  const { alone, part } = SIZES[encoding]
  return {
    ...{ encoding, segments, characters: characters.length },
    per_segment: segments > 1 ? part : alone,
    offending,
    gsm7_suggestion: encoding === "gsm7" ? null : shorterInGsm(text, segments),
  }
}

function shorterInGsm(text: string, segments: number): string | null {
  let replaced = ""
  for (const one of text.normalize("NFC").replace(MARKS, "$1")) {
    const form = isGsm(one) ? one : gsmForm(one)
    if (form === null) return null
    replaced += form
  }
  const is_shown = replaced.trim() !== ""
  return is_shown && smsSegments(replaced).segments <= segments ? replaced : null
}

/** Marks of a letter that have no place in it: `q` with an accent. Marks that strike out are no accents. */
const MARKS = /(\p{L})[\u0300-\u0333\u0339-\u036f]+/gu

/** What people read as the same, and Unicode does not decompose. */
const FORMS: Record<string, string> = {
  ...{ "`": "'", "´": "'", "‘": "'", "’": "'", "‚": "'", "‛": "'", "‹": "'", "›": "'", "′": "'" },
  ...{ "“": '"', "”": '"', "„": '"', "‟": '"', "«": '"', "»": '"', "″": '"' },
  ...{ "−": "-", "⁄": "/", "∕": "/", "•": "*", "·": ".", "×": "x", "→": "->", "←": "<-" },
  ...{ "©": "(C)", "®": "(R)", "™": "(TM)", ʼ: "'", "\t": " " },
  ...{ ł: "l", Ł: "L", đ: "d", Đ: "D", ı: "i", œ: "oe", Œ: "OE", ẞ: "ß", ð: "d", þ: "th", Þ: "Th" },
}

/** Characters without a width: spaces, joiners and marks of direction, soft hyphens, variation selectors. */
const NO_WIDTH = /^(?:[\u00ad\u200b-\u200f\u2060\ufeff]|[\ufe00-\ufe0f])$/

/**
 * A character in letters of GSM-7; null where it has no faithful form. Raised digits and fractions have
 * none: 10² is not 102, and 1½ is not 11/2.
 */
function gsmForm(character: string): string | null {
  const form = FORMS[character]
  if (form !== undefined) return form
  if (NO_WIDTH.test(character)) return ""
  if (/\p{Zs}/u.test(character)) return " "
  if (/[\u000b\u0085\u2028\u2029]/.test(character)) return "\n"
  if (/\p{Pd}/u.test(character)) return "-"
  if (/\p{No}/u.test(character)) return null
  const plain = [...character.normalize("NFKD").replace(MARKS, "$1")]
  const known = plain.map((one) => (isGsm(one) ? one : FORMS[one]))
  return known.includes(undefined) ? null : known.join("")
}
