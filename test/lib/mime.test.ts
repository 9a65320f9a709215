import { describe, expect, test } from "bun:test"
import { simpleParser } from "mailparser"
import { decodeWords } from "postal-mime"
import { encodedBody, mailboxField, textField } from "../../src/lib/mime"

const encodingOf = (text: string) => encodedBody(text).encoding

/** As another program decodes it. */
async function decoded(text: string) {
  const { encoding, text: body } = encodedBody(text)
  const head = `Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}`
  const mail = await simpleParser(`${head}\r\n\r\n${body}`)
  return mail.text?.replaceAll("\n", "\r\n")
}

test.each([
  ["plain\r\ntext ", "7bit"],
  ["", "7bit"],
  ["a".repeat(998), "7bit"],
  ["a".repeat(999), "quoted-printable"],
  [`a\r\n${"a".repeat(999)}\r\na`, "quoted-printable"],
  ["a\0b", "quoted-printable"],
  ["Grüße aus der schönen Stadt am großen, breiten Fluss", "quoted-printable"],
  ["名前", "base64"],
  [`${"Straße ".repeat(4000)}`, "base64"],
  ["From the beginning", "quoted-printable"],
  ["a\r\nFrom the second line", "quoted-printable"],
  ["a From the middle", "7bit"],
])("the right encoding is chosen for text %#", (text, encoding) => {
  expect(encodingOf(text)).toBe(encoding as never)
})

describe("quoted-printable", () => {
  const texts = [
    `${"word ".repeat(300)}`,
    `${"ü".repeat(10)}${"x".repeat(1200)}=`,
    `ends with space \r\nand tab\t\r\nü\r\n ${"y".repeat(72)} `,
    `From ü\r\nFrom \r\n${"z".repeat(73)}From here on, after a soft line end: ü`,
    "\r\n\r\nein Wort für alle\r\n\r\n",
    `a\0${"\u0001 text ".repeat(20)}b`,
  ]

  test.each(texts)("keeps %#, in lines of 76 that end with no white space", async (text) => {
    const { encoding, text: body } = encodedBody(text)
    expect(encoding).toBe("quoted-printable")
    const lines = body.split("\r\n")
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(76)
    expect(lines.filter((line) => /[ \t]$|^From |[^ -~\t]/.test(line))).toEqual([])
    expect(await decoded(text)).toBe(text)
  })
})

test("base64 keeps the text, in lines of 76", async () => {
  const text = "名前\r\n".repeat(50)
  expect(encodedBody(text).text.split("\r\n")[0]).toHaveLength(76)
  expect(await decoded(text)).toBe(text)
})

const lengths = (field: string) => field.split("\r\n").map((line) => line.length)
const unfolded = (field: string) => field.slice(0, -2).replaceAll("\r\n", "")

describe("a field of text", () => {
  test.each([
    ["Ding dong", "X: Ding dong\r\n"],
    ["", "X:\r\n"],
    ["Jörg", "X: =?UTF-8?B?SsO2cmc=?=\r\n"],
    ["=?utf-8?q?x?=", "X: =?UTF-8?B?PT91dGYtOD9xP3g/PQ==?=\r\n"],
  ])("%p is %p", (value, field) => {
    expect(textField("X", value)).toBe(field)
  })

  test.each([
    "word ".repeat(60).trim(),
    `two  and three   spaces, ${"again  and   again ".repeat(10)}end`,
    `${"x".repeat(200)} ${"y".repeat(900)} z`,
  ])("of ASCII is folded between words only, and unfolds to itself: %#", (value) => {
    const field = textField("Subject", value)
    expect(unfolded(field)).toBe(`Subject: ${value}`)
    expect(Math.max(...lengths(field))).toBeLessThanOrEqual(998)
    expect(
      field
        .split("\r\n")
        .slice(1, -1)
        .every((line) => /^ +[^ ]/.test(line)),
    ).toBe(true)
  })

  test.each([
    "ü".repeat(300),
    "👩‍👩‍👧‍👦".repeat(40),
    " led and trailed ",
    "x".repeat(998),
    `a${" ".repeat(500)}b`,
  ])("of anything else is encoded in lines of 76, whole characters in each word: %#", (value) => {
    const field = textField("Subject", value)
    expect(Math.max(...lengths(field))).toBeLessThanOrEqual(76)
    const words = field.match(/=\?UTF-8\?B\?[^?]*\?=/g) ?? []
    expect(words.map((word) => decodeWords(word)).join("")).toBe(value)
  })

  test("has its first line under the longest name, too", () => {
    const field = textField("X".repeat(76), "ü".repeat(30))
    expect(lengths(field)[0]).toBe(77)
    expect(decodeWords(unfolded(field).split(": ")[1] ?? "")).toBe("ü".repeat(30))
  })
})

describe("a field of mailboxes", () => {
  const address = "ann@example.test"

  test.each([
    ["", "To: ann@example.test\r\n"],
    ["Ann Bell", "To: Ann Bell <ann@example.test>\r\n"],
    ["Bell, Ann", 'To: "Bell, Ann" <ann@example.test>\r\n'],
    ['the "bell" \\', 'To: "the \\"bell\\" \\\\" <ann@example.test>\r\n'],
    ["two  spaces", 'To: "two  spaces" <ann@example.test>\r\n'],
    ["Jörg", "To: =?UTF-8?B?SsO2cmc=?= <ann@example.test>\r\n"],
  ])("with the name %p is %p", (name, field) => {
    expect(mailboxField("To", [{ name, address }])).toBe(field)
  })

  test("is folded between its words", () => {
    const list = Array.from({ length: 30 }, () => ({ name: "Ann Bell", address }))
    const field = mailboxField("Cc", list)
    expect(Math.max(...lengths(field))).toBeLessThanOrEqual(76)
    expect(unfolded(field)).toBe(`Cc: ${list.map(() => `Ann Bell <${address}>`).join(", ")}`)
  })
})
