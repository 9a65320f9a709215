import { expect, test } from "bun:test"
import { readFilter, unheeded, widerQuery } from "../../src/console/mail/mail-filter"

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
  for (const word of ["since:soon", "status:bounced", "to:", "since:9999999d"]) {
    expect(read(word)).toEqual({ search: word })
  }
})

test("a part of an address is searched for, as in the monitor", () => {
  expect(read("to:ann since:2026-11-01", true)).toEqual({
    search: "ann",
    since: "2026-11-01T00:00:00.000Z",
    unread: true,
  })
  expect(read("From:x.test")).toEqual({ search: "x.test" })
  expect(read("subject:Receipt of May")).toEqual({ search: "Receipt of May" })
  expect(["to:ann", "subject:x to:a@x.test", "receipt"].flatMap(unheeded)).toEqual([])
})

test("the page can say which parts the server does not look for", () => {
  expect(read("receipt to:ann")).toEqual({ search: "receipt" })
  expect(unheeded("receipt to:ann")).toEqual(["to:ann"])
  expect(unheeded("to:ann from:b@")).toEqual(["from:b@"])
})

test("an address counts when it is whole, and before that as a part", () => {
  const address = "ann.b+tag@grüße-2.test"
  for (let end = "ann.b+tag@grüße-2.t".length; end > 0; end--) {
    const typed = address.slice(0, end)
    expect(read(`to:${typed}`)).toEqual({ search: typed })
  }
  expect(read(`to:${address}`)).toEqual({ to: address })
  expect(read(`from:${address}`)).toEqual({ from: address })
  expect(read("to:a@x.xn--p1ai")).toEqual({ to: "a@x.xn--p1ai" })
})

test("an address that nobody has may be the beginning of one", () => {
  expect(widerQuery(read("to:ann@mailbox.te", true))).toEqual({
    search: "ann@mailbox.te",
    unread: true,
  })
  for (const line of ["to:ann@x.te receipt", "to:ann@x.te from:b@x.te", "receipt", ""])
    expect([line, widerQuery(read(line))]).toEqual([line, undefined])
})

test("a search is no longer than the API takes", () => {
  expect(read("x".repeat(500)).search).toHaveLength(200)
})
