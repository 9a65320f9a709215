import { describe, expect, test } from "bun:test"
import {
  comparable,
  domainOf,
  isMailbox,
  isName,
  needsSmtputf8,
  parseMailbox,
  sendableForm,
  wireForm,
} from "../../src/lib/address"
import fc from "../harness/properties"

const local64 = "a".repeat(64)
const label63 = "b".repeat(63)

const good: [text: string, email: string, name: string | null][] = [
  ["a@b.test", "a@b.test", null],
  [" a@b.test ", "a@b.test", null],
  ["<a@b.test>", "a@b.test", null],
  ["Ann <a@b.test>", "a@b.test", "Ann"],
  ["Ann  Bell<a@b.test>", "a@b.test", "Ann  Bell"],
  ["Dr. Ann P. Bell <a@b.test>", "a@b.test", "Dr. Ann P. Bell"],
  ['"Bell, Ann" <a@b.test>', "a@b.test", "Bell, Ann"],
  ['"Ann \\"the\\\\ bell\\"" <a@b.test>', "a@b.test", 'Ann "the\\ bell"'],
  ['"" <a@b.test>', "a@b.test", null],
  ['"x@y.test" <a@b.test>', "a@b.test", "x@y.test"],
  ['"<x@y.test>" <a@b.test>', "a@b.test", "<x@y.test>"],
  ["Jörg Müller <joerg@b.test>", "joerg@b.test", "Jörg Müller"],
  ["鐘 <a@b.test>", "a@b.test", "鐘"],
  ["O'Neil <o'neil@b.test>", "o'neil@b.test", "O'Neil"],
  ["a.b+tag@b.test", "a.b+tag@b.test", null],
  ["!#$%&'*+/=?^_`{|}~-@b.test", "!#$%&'*+/=?^_`{|}~-@b.test", null],
  ["a%c.test@b.test", "a%c.test@b.test", null],
  ['"a b"@b.test', '"a b"@b.test', null],
  ['"a@c.test"@b.test', '"a@c.test"@b.test', null],
  ['"a, c"@b.test', '"a, c"@b.test', null],
  ['"a..c."@b.test', '"a..c."@b.test', null],
  ['"a\\"c"@b.test', '"a\\"c"@b.test', null],
  [`${local64}@b.test`, `${local64}@b.test`, null],
  [`a@${label63}.test`, `a@${label63}.test`, null],
  ["a@1.2.3.4.test", "a@1.2.3.4.test", null],
  ["a@xn--mnchen-3ya.de", "a@xn--mnchen-3ya.de", null],
  ["a@münchen.de", "a@münchen.de", null],
  ["jörg@b.test", "jörg@b.test", null],
  ["用户@例え.jp", "用户@例え.jp", null],
  ["A@B.TEST", "A@B.TEST", null],
]

const bad = [
  "",
  " ",
  "a",
  "a@",
  "@b.test",
  "a@b",
  "a@.test",
  "a@b..test",
  "a@b.test.",
  "a@b.test, c@b.test",
  "b@y.test; c@z.test",
  "a@b.test c@b.test",
  "<a@b.test> <c@b.test>",
  "Ann <a@b.test>, Bob <c@b.test>",
  "Ann <a@b.test> (work)",
  "a(comment)@b.test",
  "(comment) a@b.test",
  "Friends: a@b.test, c@b.test;",
  "Friends:;",
  "Bell, Ann <a@b.test>",
  "x@y.test <a@b.test>",
  "<@x.test:a@b.test>",
  "@x.test:a@b.test",
  "a@b@c.test",
  ".a@b.test",
  "a.@b.test",
  "a..b@b.test",
  "a b@b.test",
  "a@b .test",
  "a @b.test",
  "a@b.test\r\nBcc: c@b.test",
  "a@b.test\n",
  "a\u0000@b.test",
  "Ann\r\n <a@b.test>",
  "Ann\u2028 <a@b.test>",
  "Ann\u007f <a@b.test>",
  "Ann\ud800 <a@b.test>",
  `${"a".repeat(65)}@b.test`,
  `${"ä".repeat(33)}@b.test`,
  `a@${"b".repeat(64)}.test`,
  `a@${`${"b".repeat(60)}.`.repeat(5)}test`,
  `${local64}@${`${"b".repeat(60)}.`.repeat(3)}testtest`,
  "a@-b.test",
  "a@b-.test",
  "a@b_c.test",
  "a@[127.0.0.1]",
  "a@127.0.0.1",
  "a@0x7f.1",
  "a@１２７.0.0.1",
  "a@ex%41mple.com",
  "a@bü%2ecom",
  "a@bü/c.com",
  "a@b\u200dü.test",
  "ann\u200b@b.test",
  "ann\u00a0x@b.test",
  "ann\u202e@b.test",
  '"a<b>"@b.test',
  '"a@b.test',
  'a"b"@b.test',
  '""@b.test',
  '"Ann" Bell <a@b.test>',
  '"Ann <a@b.test>',
  "Ann <a@b.test",
  "Ann a@b.test>",
  "<<a@b.test>>",
  "<>",
  "mailto:a@b.test",
]

describe("one mailbox", () => {
  test.each(good)("is read from %p", (text, email, name) => {
    expect(parseMailbox(text)).toEqual({ email, name })
  })

  test.each(bad.map((text) => [text]))("is not found in %p", (text) => {
    expect(parseMailbox(text)).toBeUndefined()
  })

  test("a bare address has no brackets or spaces around it", () => {
    expect(isMailbox("a@b.test")).toBe(true)
    expect(["<a@b.test>", " a@b.test", "Ann <a@b.test>"].filter(isMailbox)).toEqual([])
  })

  test("what is read can be written and read again, and never holds a control character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string(), (name, text) => {
        for (const source of [text, `${name} <a@b.test>`, `${text}@b.test`, `a@${text}`]) {
          const found = parseMailbox(source)
          if (!found) continue
          expect(parseMailbox(found.email)).toEqual({ email: found.email, name: null })
          expect(isName(`${found.name ?? ""}${found.email}`)).toBe(true)
        }
      }),
    )
  })
})

describe("the parts of an address", () => {
  test("the domain comes as A-labels in lower case", () => {
    expect(domainOf("Ann@MÜNCHEN.de")).toBe("xn--mnchen-3ya.de")
    expect(domainOf('"a@c.test"@B.Test')).toBe("b.test")
    expect(domainOf("nobody")).toBe("")
  })

  test("two spellings of one address compare as equal", () => {
    expect(comparable("Ann@München.de")).toBe(comparable("ann@XN--MNCHEN-3YA.DE"))
    expect(comparable("JO\u0308RG@b.test")).toBe(comparable("jörg@b.test"))
  })

  test("on the wire only the domain changes", () => {
    expect(wireForm("Ann@münchen.de")).toBe("Ann@xn--mnchen-3ya.de")
    expect(wireForm("Ann@B.test")).toBe("Ann@B.test")
  })

  test("only a local part outside ASCII needs SMTPUTF8", () => {
    expect(needsSmtputf8("jörg@b.test")).toBe(true)
    expect(needsSmtputf8("ann@münchen.de")).toBe(false)
    expect(needsSmtputf8("")).toBe(false)
  })
})

test("an address that other servers use against the grammar is written in quotes", () => {
  for (const [given, sendable] of [
    ["ann@b.test", "ann@b.test"],
    ["a..b@b.test", '"a..b"@b.test'],
    [".a@b.test", '".a"@b.test'],
    ["a.@b.test", '"a."@b.test'],
    ['"a b"@b.test', '"a b"@b.test'],
    ["a b@b.test", undefined],
    ["a@c@b.test", undefined],
    ["a..b@b", undefined],
    ["..", undefined],
    [`${"a.".repeat(40)}@b.test`, undefined],
  ] as const)
    expect([given, sendableForm(given)]).toEqual([given, sendable])
  expect(comparable('"A..b"@B.test')).toBe("a..b@b.test")
  expect(comparable('"ann"@b.test')).toBe("ann@b.test")
  expect(comparable('"a b"@b.test')).toBe('"a b"@b.test')
})
