// The number that stands for a subscriber in a posting list: the first part of its UUIDv7.

/** 2020-01-01. With it the numbers stay exact until 2089. */
const FIRST_MS = 1_577_836_800_000

/** Values of the 12 bits that a process counts up within a millisecond (RFC 9562, 6.2). */
const COUNTS = 4096

/** Behind every number. */
export const MOST_NUMBER = Number.MAX_SAFE_INTEGER

/** Before every id. */
const NIL = "00000000-0000-0000-0000-000000000000"

/**
 * The time and the count of an id. It rises with the id. One process gives no two ids the same number; of two
 * nodes they may have the same, in one of 4,096 cases where both are made in the same millisecond.
 */
export function numberOf(id: string): number {
  const ms = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  const number = (ms - FIRST_MS) * COUNTS + Number.parseInt(id.slice(15, 18), 16)
  return Math.min(Math.max(number, 0), MOST_NUMBER)
}

/** The ids that have this number stand between these two. */
export function idsWith(number: number): { low: string; high: string } {
  const ms = Math.floor(number / COUNTS) + FIRST_MS
  const time = ms.toString(16).padStart(12, "0")
  const count = (number % COUNTS).toString(16).padStart(3, "0")
  const begin = `${time.slice(0, 8)}-${time.slice(8)}-7${count}`
  return {
    low: number === 0 ? NIL : `${begin}-0000-000000000000`,
    high: `${begin}-ffff-ffffffffffff`,
  }
}
