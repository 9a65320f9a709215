import { expect, test } from "bun:test"
import { authorsOf, headerRows } from "../../src/inbound/header-rows"

const authors = (...fields: string[]) =>
  authorsOf(headerRows(Buffer.from(`${fields.join("\r\n")}\r\n\r\nbody`)))

const FROM: [string, string[]][] = [
  ["ann@a.test", ["a.test"]],
  ["Ann <ann@A.Test>", ["a.test"]],
  ['"ceo@bank.test" <ann@a.test>', ["a.test"]],
  ["ceo@bank.test <ann@a.test>", ["a.test"]],
  ["Ann (ceo@bank.test) <ann@a.test>", ["a.test"]],
  ["Ann ((nested) <x@b.test>) <ann@a.test>", ["a.test"]],
  ['"a\\"b <x@b.test>" <ann@a.test>', ["a.test"]],
  ['"ann@b.test"@a.test', ["a.test"]],
  ["<@relay.test:ann@a.test>", ["a.test"]],
  ["ann@a.test, Bob <bob@b.test>", ["a.test", "b.test"]],
  ["ann@a.test, bob@a.test", ["a.test"]],
  ["Team: ann@a.test, bob@b.test;", ["a.test", "b.test"]],
  ["<ann@a.test> <bob@b.test>", ["a.test", "b.test"]],
  ["Ann\r\n <ann@\r\n a.test>", ["a.test"]],
  ["ann@a.test.", ["a.test"]],
  ["ann@bücher.test", ["xn--bcher-kva.test"]],
  // Readers show what stands in a text that has no end.
  ['"ceo <ceo@bank.test>', ["bank.test"]],
  ["(ceo <ceo@bank.test>", ["bank.test"]],
  ["undisclosed-recipients:;", []],
  ["MAILER-DAEMON", []],
  // Those that the record shows are among them.
  ["ceo@bank.test eve@a.test", ["a.test", "bank.test"]],
  ['=?x?q?"?= <ceo@bank.test>, x" <eve@a.test>', ["a.test", "bank.test"]],
  ["=?utf-8?q?ceo=40bank.test?=", []],
  ["", []],
]
test.each(FROM)("From: %s", (text, domains) => {
  expect(authors(`From: ${text}`)).toEqual({ fields: 1, domains, is_cut: false })
})

test("every From field counts, however it is written", () => {
  expect(authors("from: a@a.test", "FROM : b@b.test", "X-From: c@c.test")).toMatchObject({
    fields: 2,
    domains: ["a.test", "b.test"],
  })
})

test("a From field in the body counts nothing, and one after a broken line does", () => {
  expect(authors("To: x", "", "From: a@a.test")).toMatchObject({ fields: 0, domains: [] })
  expect(authors("no field", "From: a@a.test")).toMatchObject({ fields: 1, domains: ["a.test"] })
})

test("what is over a limit is told", () => {
  expect(authors(`From: a@a.test${",".repeat(70_000)}`)).toMatchObject({ is_cut: true })
  expect(authors(`X: ${"x".repeat(600_000)}`, "From: a@a.test")).toMatchObject({ is_cut: true })
})
