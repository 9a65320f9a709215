import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { idsWith, MOST_NUMBER, numberOf } from "../../src/subscribers/posting-block"

test("ids of one process have different numbers, which rise with them", () => {
  const ids = Array.from({ length: 10_000 }, newId)
  const numbers = ids.map(numberOf)
  expect(numbers.toSorted((one, other) => one - other)).toEqual(numbers)
  expect(new Set(numbers).size).toBe(ids.length)
})

test("a number counts milliseconds from 2020 on, and 4,096 within each", () => {
  const ms = Date.parse("2026-11-23T10:00:00.123Z")
  const time = ms.toString(16).padStart(12, "0")
  const id = `${time.slice(0, 8)}-${time.slice(8)}-7abc-8000-000000000000`
  expect(numberOf(id)).toBe((ms - Date.parse("2020-01-01T00:00:00Z")) * 4096 + 0xabc)
})

test("ids from before 2020 have the number 0, and those of the far future the last one", () => {
  expect(numberOf("00000000-0000-7000-8000-000000000000")).toBe(0)
  expect(numberOf("ffffffff-ffff-7fff-bfff-ffffffffffff")).toBe(MOST_NUMBER)
})

test("the ids with a number stand between its two ends, and no other does", () => {
  for (const id of Array.from({ length: 1000 }, newId)) {
    const number = numberOf(id)
    const { low, high } = idsWith(number)
    expect(low <= id && id <= high).toBe(true)
    expect([numberOf(low), numberOf(high)]).toEqual([number, number])
    expect(idsWith(number - 1).high < low && high < idsWith(number + 1).low).toBe(true)
  }
})
