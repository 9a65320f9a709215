import { describe, expect, test } from "bun:test"
import { isUuid, newEventId, newId, newRequestId } from "../../src/core/ids"

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
