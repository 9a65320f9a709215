import { describe, expect, test } from "bun:test"
import {
  bytesOfId,
  isUuid,
  newEventId,
  newId,
  newRequestId,
  shownId,
  uuidOfBytes,
} from "../../src/core/ids"
import fc from "../harness/properties"

describe("ids", () => {
  test("ids are UUIDs that sort by the time they were made", () => {
    const made = Array.from({ length: 500 }, newId)
    expect(made.every(isUuid)).toBe(true)
    expect(made.toSorted()).toEqual(made)
  })

  test("events and requests carry their prefix", () => {
    expect(newEventId()).toMatch(/^evt_[0-9a-f-]{36}$/)
    expect(isUuid(newEventId().slice(4))).toBe(true)
    expect(newRequestId()).toMatch(/^req_[0-9a-f]{32}$/)
  })

  test.each(["", "x", "0199A1C2-0000-7000-8000-000000000000", `${newId()}\n`, `${newId()}0`])(
    "%j is not a UUID of ours",
    (text) => expect(isUuid(text)).toBe(false),
  )
})

const id = fc.uuid().filter((text) => text !== "00000000-0000-0000-0000-000000000000")

test("an id comes back from its 16 bytes", () => {
  fc.assert(
    fc.property(id, (text) => {
      expect(bytesOfId(text)).toHaveLength(16)
      expect(shownId(bytesOfId(text))).toBe(text)
      expect(shownId(uuidOfBytes(bytesOfId(text)))).toBe(text)
    }),
  )
})

test("bytes sort as their ids do, and the empty text before all", () => {
  fc.assert(
    fc.property(id, id, (one, other) => {
      const order = Buffer.compare(bytesOfId(one), bytesOfId(other))
      expect(order).toBe(one === other ? 0 : one < other ? -1 : 1)
      expect(Buffer.compare(bytesOfId(""), bytesOfId(one))).toBe(-1)
    }),
  )
  expect(shownId(bytesOfId(""))).toBe("")
  expect(shownId(uuidOfBytes(bytesOfId("")))).toBe("")
})

test("exactly the texts that are ids have bytes", () => {
  const known = newId()
  const near = fc
    .tuple(fc.nat({ max: 35 }), fc.string({ minLength: 0, maxLength: 2, unit: "binary" }))
    .map(([at, piece]) => known.slice(0, at) + piece + known.slice(at + 1))
  fc.assert(
    fc.property(fc.oneof(near, fc.string()), (text) => {
      if (isUuid(text) || text === "") expect(bytesOfId(text)).toHaveLength(16)
      else expect(() => bytesOfId(text)).toThrow(TypeError)
    }),
    { numRuns: 2000 },
  )
  for (const text of [
    known.toUpperCase(),
    known.replaceAll("-", ""),
    `${known}0`,
    `evt_${known}`,
  ]) {
    expect(() => bytesOfId(text)).toThrow(TypeError)
  }
})
