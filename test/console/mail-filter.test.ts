import { expect, test } from "bun:test"
import { readFilter } from "../../src/console/mail/mail-filter"

const NOW = Date.parse("2026-11-23T12:00:00.000Z")
const read = (line: string, is_unread = false) => readFilter(line, is_unread, NOW)

test("words are searched for, and filters are those of the monitor", () => {
  expect(read("")).toEqual({})
  expect(read("  your   receipt ")).toEqual({ search: "your receipt" })
  expect(read("to:ann@x.test from:b@y.test since:2h receipt", true)).toEqual({
    to: "ann@x.test",
    from: "b@y.test",
    since: "2026-11-23T10:00:00.000Z",
    search: "receipt",
    unread: true,
  })
  expect(read("since:2026-11-01").since).toBe("2026-11-01T00:00:00.000Z")
})

test("what is no valid filter is searched for as it stands", () => {
  for (const word of ["to:ann", "since:soon", "status:bounced", "to:", "since:9999999d"]) {
    expect(read(word)).toEqual({ search: word })
  }
})

test("an address counts when it is whole, not while it is typed", () => {
  const address = "ann.b+tag@grüße-2.test"
  for (let end = "ann.b+tag@grüße-2.t".length; end > 0; end--) {
    const typed = `to:${address.slice(0, end)}`
    expect(read(typed)).toEqual({ search: typed })
  }
  expect(read(`to:${address}`)).toEqual({ to: address })
  expect(read(`from:${address}`)).toEqual({ from: address })
  expect(read("to:a@x.xn--p1ai")).toEqual({ to: "a@x.xn--p1ai" })
})

test("a search is no longer than the API takes", () => {
  expect(read("x".repeat(500)).search).toHaveLength(200)
})
