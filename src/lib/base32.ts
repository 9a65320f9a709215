/** RFC 4648, 6, in lower case: mail servers may change the case of a local part. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
const letters = Buffer.from(ALPHABET)

/** The bytes in base32, in lower case and without padding. */
export function base32(bytes: Uint8Array): string {
  const text = Buffer.allocUnsafe(Math.ceil((bytes.length * 8) / 5))
  let value = 0
  let bits = 0
  let next = 0
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) text[next++] = letters[(value >>> (bits - 5)) & 31] ?? 0
  }
  if (bits > 0) text[next] = letters[(value << (5 - bits)) & 31] ?? 0
  return text.toString("latin1")
}

/**
 * `length` bytes of a text that `base32` made. Undefined for any other text: of each value there is
 * one spelling, whose spare bits are zero.
 */
export function unBase32(text: string, length: number): Buffer | undefined {
  if (text.length !== Math.ceil((length * 8) / 5)) return undefined
  const bytes = Buffer.alloc(length)
  let value = 0
  let bits = 0
  let next = 0
  for (let at = 0; at < text.length; at++) {
    const digit = DIGITS[text.charCodeAt(at)] ?? NO_DIGIT
    if (digit === NO_DIGIT) return undefined
    value = ((value << 5) | digit) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes[next++] = value >>> bits
  }
  return (value & ((1 << bits) - 1)) === 0 ? bytes : undefined
}

const NO_DIGIT = 255

/** The value of a digit by its character code. */
const DIGITS = new Uint8Array(128).fill(NO_DIGIT)
for (const [value, digit] of [...ALPHABET].entries()) DIGITS[digit.charCodeAt(0)] = value
