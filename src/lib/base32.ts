/** RFC 4648, 6, in lower case: mail servers may change the case of a local part. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

/** The bytes in base32, in lower case and without padding. */
export function base32(bytes: Uint8Array): string {
  let text = ""
  let value = 0
  let bits = 0
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(value >>> (bits - 5)) & 31]
  }
  return bits === 0 ? text : text + ALPHABET[(value << (5 - bits)) & 31]
}

/**
 * `length` bytes of a text that `base32` made. Undefined for any other text: of each value there is
 * one spelling, whose spare bits are zero.
 */
export function unBase32(text: string, length: number): Buffer | undefined {
  const digits = [...text].map((one) => ALPHABET.indexOf(one))
  if (digits.length !== Math.ceil((length * 8) / 5) || digits.includes(-1)) return undefined
  const bits = digits.map((digit) => digit.toString(2).padStart(5, "0")).join("")
  if (bits.slice(8 * length).includes("1")) return undefined
  const bytes = bits.slice(0, 8 * length).match(/.{8}/g) ?? []
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)))
}
