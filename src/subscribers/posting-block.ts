/**
 * A part of a posting list as the database keeps it: numbers that rise. The first byte is the width of the
 * offsets, the next seven are the first number. Then comes, for each other number, how far it is from the first.
 * All are little-endian.
 */

const HEAD = 8
const LEAST_WIDTH = 4
const MOST_WIDTH = 6

/** With its key a part fits into one page of SQLite. */
const MOST_BYTES = 3900

/** Where a part is divided that got numbers in its middle: both may grow on. */
const DIVIDED_BYTES = MOST_BYTES * 0.6

/** Undefined where the numbers are too far apart for one part. */
function widthOf(first: number, last: number): number | undefined {
  const distance = last - first
  if (distance < 2 ** 32) return LEAST_WIDTH
  if (distance < 2 ** 40) return LEAST_WIDTH + 1
  return distance < 2 ** 48 ? MOST_WIDTH : undefined
}

/** At least one number, and not more than one part holds (see `divided`). */
export function encoded(numbers: readonly number[]): Buffer {
  const [first = 0] = numbers
  const width = widthOf(first, numbers.at(-1) ?? first) ?? MOST_WIDTH
  const block = Buffer.allocUnsafe(HEAD + (numbers.length - 1) * width)
  block[0] = width
  block.writeUInt32LE(first % 2 ** 32, 1)
  block.writeUIntLE(Math.floor(first / 2 ** 32), 5, 3)
  let at = HEAD
  for (let index = 1; index < numbers.length; index++, at += width) {
    block.writeUIntLE((numbers[index] ?? first) - first, at, width)
  }
  return block
}

/**
 * The part with numbers at its end, which are not smaller than those it has. Undefined where they do not fit: then it
 * has to be read.
 */
export function extended(block: Uint8Array, numbers: readonly number[]): Buffer | undefined {
  const width = block[0] ?? LEAST_WIDTH
  const [first, last] = [numberAt(block, 0), numberAt(block, countIn(block) - 1)]
  const [least = 0, most = 0] = [numbers[0], numbers.at(-1)]
  const length = block.length + numbers.length * width
  if (least < last || length > MOST_BYTES || (widthOf(first, most) ?? MOST_WIDTH + 1) > width)
    return undefined
  const longer = Buffer.allocUnsafe(length)
  longer.set(block)
  for (const [at, number] of numbers.entries()) {
    longer.writeUIntLE(number - first, block.length + at * width, width)
  }
  return longer
}

function numberAt(block: Uint8Array, index: number): number {
  const view = viewOf(block)
  const width = block[0] ?? LEAST_WIDTH
  const at = HEAD + (index - 1) * width
  return firstOf(view) + (index === 0 ? 0 : offsetAt(view, at, width))
}

const viewOf = ({ buffer, byteOffset, length }: Uint8Array) =>
  new DataView(buffer, byteOffset, length)

const firstOf = (view: DataView): number =>
  view.getUint32(1, true) + (view.getUint32(4, true) >>> 8) * 2 ** 32

function offsetAt(view: DataView, at: number, width: number): number {
  const low = view.getUint32(at, true)
  if (width === LEAST_WIDTH) return low
  const high = width === MOST_WIDTH ? view.getUint16(at + 4, true) : view.getUint8(at + 4)
  return low + high * 2 ** 32
}

/** How many numbers a part has. */
export const countIn = (block: Uint8Array): number =>
  1 + (block.length - HEAD) / (block[0] ?? LEAST_WIDTH)

/** The numbers of a part. */
export function decoded(block: Uint8Array): number[] {
  const numbers = new Float64Array(countIn(block))
  decodeInto(block, numbers, 0)
  return [...numbers]
}

/** Writes the numbers of a part into a list, from an index on. Takes 1 ns each where the offsets are short. */
export function decodeInto(block: Uint8Array, numbers: Float64Array, from: number): void {
  const view = viewOf(block)
  const width = block[0] ?? LEAST_WIDTH
  const first = firstOf(view)
  let next = from
  numbers[next++] = first
  if (width === LEAST_WIDTH) {
    for (let at = HEAD; at < block.length; at += LEAST_WIDTH)
      numbers[next++] = first + view.getUint32(at, true)
    return
  }
  for (let at = HEAD; at < block.length; at += width)
    numbers[next++] = first + offsetAt(view, at, width)
}

/**
 * The numbers in portions that fit into one part each. Equal ones stay together. Parts to which something
 * is only added at the end are filled.
 */
export function divided(numbers: readonly number[], is_appended: boolean): number[][] {
  if (fits(numbers, 0, numbers.length, MOST_BYTES)) return numbers.length > 0 ? [[...numbers]] : []
  const most = is_appended ? MOST_BYTES : DIVIDED_BYTES
  const portions: number[][] = []
  for (let begin = 0; begin < numbers.length; ) {
    let end = begin + 1
    while (end < numbers.length && fits(numbers, begin, end + 1, most)) end++
    while (end < numbers.length && numbers[end] === numbers[end - 1]) end++
    portions.push(numbers.slice(begin, end))
    begin = end
  }
  return portions
}

function fits(numbers: readonly number[], begin: number, end: number, most: number): boolean {
  const [first = 0, last = 0] = [numbers[begin], numbers[end - 1]]
  const width = widthOf(first, last)
  return width !== undefined && HEAD + (end - begin - 1) * width <= most
}

/** Both lists as one that rises. */
export const together = (numbers: readonly number[], more: readonly number[]): number[] =>
  [...numbers, ...more].sort((one, other) => one - other)

/** The first list without the second one: of equal numbers as many go as the second has. */
export function without(numbers: readonly number[], gone: readonly number[]): number[] {
  const left = new Map<number, number>()
  for (const number of gone) left.set(number, (left.get(number) ?? 0) + 1)
  return numbers.filter((number) => {
    const count = left.get(number) ?? 0
    if (count > 0) left.set(number, count - 1)
    return count === 0
  })
}

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
