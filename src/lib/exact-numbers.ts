/** The largest integer up to which a double holds every one (RFC 8259, section 6). */
const LARGEST = 2 ** 53

/** Whether no number in a JSON value is beyond ±2^53 as an integer, or has become infinite. */
export function isExactlyCarried(value: unknown): boolean {
  if (typeof value === "number") {
    return Number.isFinite(value) && (!Number.isInteger(value) || Math.abs(value) <= LARGEST)
  }
  if (typeof value !== "object" || value === null) return true
  return Object.values(value).every(isExactlyCarried)
}

/** Of all integers the only one that a parser makes 2^53, which itself is allowed. */
const ROUNDED = String(BigInt(LARGEST) + 1n)

/** As `JSON.parse`, but 2^53 + 1 becomes the double above it, so that it stays out of bounds. */
export function parseNumbersApart(text: string): unknown {
  if (!text.includes(ROUNDED)) return JSON.parse(text)
  return JSON.parse(text, ((_name: string, value: unknown, { source }: Context) => {
    if (source !== ROUNDED && source !== `-${ROUNDED}`) return value
    return Math.sign(value as number) * (LARGEST + 2)
  }) as (name: string, value: unknown) => unknown)
}

interface Context {
  /** The literal of a value that is no object and no list. */
  source?: string
}
