import { expect, test } from "bun:test"
import {
  decoded,
  divided,
  encoded,
  extended,
  together,
  without,
} from "../../src/subscribers/posting-block"
import fc from "../harness/properties"

const rising = (numbers: readonly number[]) => numbers.toSorted((one, other) => one - other)

/** Numbers that are near each other, as those of an import are, or years apart. */
const lists = fc
  .tuple(
    fc.integer({ min: 0, max: 2 ** 52 }),
    fc.constantFrom(2 ** 10, 2 ** 33, 2 ** 41, 2 ** 49),
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 2500 }),
  )
  .map(([first, span, parts]) => rising(parts.map((part) => first + Math.floor(part * span))))

test("numbers that rise are read as they were written, in portions that fit into a page", () => {
  fc.assert(
    fc.property(lists, fc.boolean(), (numbers, is_appended) => {
      const portions = divided(numbers, is_appended)
      const blocks = portions.map(encoded)
      expect(blocks.flatMap(decoded)).toEqual(numbers)
      for (const [at, portion] of portions.entries()) {
        const next = portions[at + 1]?.[0]
        if (next !== undefined) expect(portion.at(-1) ?? 0).toBeLessThan(next)
        const are_equal = portion.at(-1) === portion[0]
        if (!are_equal) expect(encoded(portion).length).toBeLessThanOrEqual(3900)
      }
    }),
  )
})

test("an empty list has no portions", () => {
  expect(divided([], true)).toEqual([])
})

test("one number takes eight bytes, and another one beside it four", () => {
  expect(encoded([2 ** 52 + 1])).toHaveLength(8)
  expect(encoded([2 ** 52 + 1, 2 ** 52 + 5])).toHaveLength(12)
})

test("a part with numbers at its end is what all of them together are, or is left alone", () => {
  fc.assert(
    fc.property(lists, fc.integer({ min: 1, max: 2499 }), (numbers, at) => {
      const [begin, end] = [numbers.slice(0, at), numbers.slice(at)]
      if (end.length === 0 || divided(begin, true).length > 1) return
      const longer = extended(encoded(begin), end)
      if (longer) expect(decoded(longer)).toEqual(numbers)
      const is_one_part = divided(numbers, true).length === 1
      if (is_one_part && encoded(begin)[0] === encoded(numbers)[0]) expect(longer).toBeDefined()
    }),
  )
})

test("of equal numbers as many go as are taken out", () => {
  expect(together([1, 3, 3], [2, 3])).toEqual([1, 2, 3, 3, 3])
  expect(without([1, 2, 3, 3, 3], [3, 3, 4])).toEqual([1, 2, 3])
})
