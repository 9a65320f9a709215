import { expect, test } from "bun:test"
import { fieldOf } from "../../src/lib/mail-text"
import { addressIn, fieldsOf, onOneLine, reportGroups } from "../../src/lib/report-fields"

test("groups are separated by empty lines, and folded fields are joined", () => {
  const text =
    "Reporting-MTA: dns; a\r\n\r\nAction : failed\r\nDiagnostic-Code: smtp; 550\r\n one\r\n\ttwo\r\n"
  const [message = [], recipient = [], ...more] = reportGroups(text)
  expect(more).toEqual([])
  expect(fieldOf(message, "reporting-mta")).toBe("dns; a")
  expect(fieldOf(recipient, "action")).toBe("failed")
  expect(fieldOf(recipient, "diagnostic-code")).toBe("smtp; 550 one two")
})

test("LF and CR end lines too, encoded words are decoded, and what is no field is left out", () => {
  const [group = []] = reportGroups("hello\nA: =?utf-8?q?=C3=BC?=\rB: 1\nb: 2\n")
  expect(group.map(([name]) => name)).toEqual(["a", "b", "b"])
  expect(fieldOf(group, "a")).toBe("ü")
  expect(fieldsOf(group, "b")).toEqual(["1", "2"])
  expect(fieldOf(group, "c")).toBeUndefined()
})

test("a value ends after 2,000 characters, and a text after 5,000 lines", () => {
  const [long = []] = reportGroups(`A: ${"x".repeat(5_000)}`)
  expect(fieldOf(long, "a")).toHaveLength(2_000)
  const [many = []] = reportGroups("A: b\n".repeat(9_000))
  expect(many).toHaveLength(5_000)
})

test.each([
  ["rfc822; ann@example.com", "ann@example.com"],
  ["<ann@example.com>", "ann@example.com"],
  ["ann@example.com.", "ann@example.com"],
  ["Ann Example <jörg@bücher.example> (home)", "jörg@bücher.example"],
  ["收件人（ann@qq.com）", "ann@qq.com"],
  ["\0a@b.test", "a@b.test"],
  ["nobody", undefined],
  ["@", undefined],
])("the address in %j is %j", (text, email) => {
  expect(addressIn(text)).toBe(email as never)
})

test("one line has neither control characters nor half characters", () => {
  expect(onOneLine(" a\r\n\tb\0c \ud800")).toBe("a b c \ufffd")
})
