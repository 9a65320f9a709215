interface SmsSegments {
  encoding: "gsm7" | "ucs2"
  segments: number
}

/** The default alphabet of GSM 03.38, and what takes an escape before it. */
const BASIC = new Set(
  "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà",
)
const EXTENDED = new Set("\f^{}\\[~]|€")

/** Units of one message that stands alone, and of each part of a longer one. */
const SIZES = { gsm7: { alone: 160, part: 153 }, ucs2: { alone: 70, part: 67 } }

/**
 * The encoding of a text and the number of its parts. No character is divided: neither one that takes an
 * escape in GSM-7, nor one of two units in UCS-2.
 */
export function smsSegments(text: string): SmsSegments {
  const characters = [...text]
  const encoding = characters.every((one) => BASIC.has(one) || EXTENDED.has(one)) ? "gsm7" : "ucs2"
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
