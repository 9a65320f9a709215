import { describe, expect, test } from "bun:test"
import { simpleParser } from "mailparser"
import { encodedBody } from "../../src/lib/mime-body"

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
