import { expect, test } from "bun:test"
import { readAddressList } from "../../src/lib/address-list"

const ann = { email: "ann@example.test", name: "Ann" }
const ben = { email: "ben@example.test", name: null }

const plain: [string, { email: string; name: string | null }[]][] = [
  ["Ann <ann@example.test>", [ann]],
  ["ben@example.test", [ben]],
  ["<ben@example.test>", [ben]],
  ["ann@example.test (Ann)", [ann]],
  ['"Ann" <ann@example.test>, ben@example.test', [ann, ben]],
  ['"Doe, \\"J\\"" <ann@example.test>', [{ ...ann, name: 'Doe, "J"' }]],
  ["=?utf-8?Q?Doe,_J=C3=B6rg?= <ann@example.test>", [{ ...ann, name: "Doe, Jörg" }]],
  ["Jörg <jörg@münchen.de>", [{ email: "jörg@münchen.de", name: "Jörg" }]],
  ['"a b"@example.test', [{ email: '"a b"@example.test', name: null }]],
  ["ben @ example . test", [ben]],
  ["ben@example.\ttest (Ben) ", [{ ...ben, name: "Ben" }]],
  ["ben@example.test,, ", [ben]],
  ["(a (nested) comment) ben@example.test", [{ ...ben, name: "a (nested) comment" }]],
  ["", []],
]

test.each(plain)("%p is a list of mailboxes", (text, mailboxes) => {
  expect(readAddressList(text)).toEqual({ mailboxes, is_plain: true })
})

const odd: [string, string[]][] = [
  ["Team: ann@example.test, ben@example.test;", ["ann@example.test", "ben@example.test"]],
  ["undisclosed-recipients:;", []],
  ["root (Cron Daemon)", []],
  ["Doe, John <ann@example.test>", ["ann@example.test"]],
  ["<ann@example.test> ben@example.test", ["ann@example.test"]],
  ["<ann@example.test> <ben@example.test>", ["ann@example.test"]],
  ["<@relay.test:ann@example.test>", ["ann@example.test"]],
  ["Ann <ann@example.test", ["ann@example.test"]],
  ['"Ann <ann@example.test>', ["ann@example.test"]],
  ["(Ann ann@example.test", ["ann@example.test"]],
  ["ann@example.test@evil.test", []],
  ["ann@[127.0.0.1]", []],
  ["Ann ann@example.test", ["ann@example.test"]],
  ["ann@example.test Ann", ["ann@example.test"]],
  ['"Ann" ann@example.test', ["ann@example.test"]],
  ["=?utf-8?q?eve=40evil.test?= ann@example.test", ["ann@example.test"]],
  ["ann@example.test ben@example.test", ["ann@example.test", "ben@example.test"]],
  ["ann@example.test; ben@example.test", ["ann@example.test", "ben@example.test"]],
]

test.each(odd)("%p is read as far as it goes, and is not plain", (text, emails) => {
  const { mailboxes, is_plain } = readAddressList(text)
  expect({ emails: mailboxes.map(({ email }) => email), is_plain }).toEqual({
    emails,
    is_plain: false,
  })
})

test.each([
  ['"Ann" <mailto:ann@example.test>', "Ann"],
  ["mailto:ann@example.test", null],
  ["Ann <ann@example.test.>", "Ann"],
  ["Doe, Ann <ann@example.test>", "Doe, Ann"],
  ["=?utf-8?Q?Doe, J=C3=B6rg?= <ann@example.test>", "Doe, Jörg"],
  ["=?windows-31j?B?7uCLtA==?= <ann@example.test>", "髙橋"],
  ["Ann Doe ann@example.test", "Ann Doe"],
  ["Ann [mailto:ann@example.test]", "Ann"],
  ["Ann <<ann@example.test>>", "Ann"],
  ["\"Ann\" <'ann@example.test'>", "Ann"],
  ["Re: Ann <ann@example.test>", "Re: Ann"],
])("%p has the name %p", (text, name) => {
  expect(readAddressList(text).mailboxes).toEqual([{ email: "ann@example.test", name }])
})

test("an address that is not written as one is read, and is not plain", () => {
  expect(readAddressList("<mailto:ann@example.test>").is_plain).toBe(false)
})

test("a name has no control characters and keeps whole characters", () => {
  const [{ name } = ann] = readAddressList("=?utf-8?B?YQpiAGM=?= <ann@example.test>").mailboxes
  expect(name).toBe("a b c")
})

test("hostile lists end within the time of a test", () => {
  for (const piece of ["(", "<", '"', "\\", ",", ":", "=?a?q?", "a ", ". ", '" ']) {
    expect(readAddressList(piece.repeat(300_000)).mailboxes).toEqual([])
  }
})
