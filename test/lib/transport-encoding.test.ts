import { describe, expect, test } from "bun:test"
import PostalMime from "postal-mime"
import { hasLongLine, sevenBit, shortLines } from "../../src/lib/transport-encoding"

const bytes = (...lines: string[]) => Buffer.from(lines.join("\r\n"), "latin1")

const isAscii = (raw: Uint8Array) => raw.every((byte) => byte < 128)

const MIXED = bytes(
  "From: bell@example.test",
  "MIME-Version: 1.0",
  "Content-Transfer-Encoding: 8bit",
  'Content-Type: multipart/mixed; boundary="a"',
  "",
  "\xfcber",
  "--a",
  "Content-Type: text/plain; charset=iso-8859-1",
  "Content-Transfer-Encoding: 8bit",
  "",
  `Gr\xfc\xdfe ${"lang ".repeat(300)}`,
  "..",
  "--a",
  "Content-Type: message/rfc822",
  "Content-Transfer-Encoding: 8bit",
  "",
  "Subject: inner",
  "Content-Type: text/html; charset=iso-8859-1",
  "",
  "<p>caf\xe9</p>",
  "--a",
  "Content-Type: application/octet-stream; name=a.bin",
  "",
  "\xff\xfe",
  "--a",
  "Content-Type: text/plain",
  "",
  "all ASCII",
  "--a--",
  "",
)

test("bodies outside ASCII become base64, and say the same", async () => {
  const narrow = sevenBit(MIXED)
  expect(isAscii(narrow)).toBe(true)
  const [before, after] = await Promise.all([MIXED, narrow].map((raw) => PostalMime.parse(raw)))
  expect(after?.text).toContain("Grüße lang")
  const words = (text: string | undefined) => text?.split(/\s+/).join(" ")
  expect(words(after?.text)).toBe(words(before?.text))
  expect(words(after?.html)).toBe(words(before?.html))
  const [file] = after?.attachments ?? []
  expect([...new Uint8Array(file?.content as ArrayBuffer)]).toEqual([0xff, 0xfe])
  expect(narrow.toString()).toContain("all ASCII\r\n--a--\r\n")
  expect(narrow.toString()).not.toContain("8bit")
  expect(
    Math.max(
      ...narrow
        .toString()
        .split("\r\n")
        .map(({ length }) => length),
    ),
  ).toBeLessThan(90)
})

test("a part without fields of its own gets one", () => {
  const raw = bytes("Content-Type: multipart/mixed; boundary=a", "", "--a", "", "\xfc", "--a--", "")
  expect(sevenBit(raw).toString()).toBe(
    "Content-Type: multipart/mixed; boundary=a\r\nMIME-Version: 1.0\r\n\r\n--a\r\n" +
      "Content-Transfer-Encoding: base64\r\n\r\n/A==\r\n\r\n--a--\r\n",
  )
})

test("what is ASCII, or only outside ASCII in its header, stays as it is", () => {
  const ascii = bytes("Subject: a", "", "b", "")
  expect(sevenBit(ascii)).toEqual(ascii)
  const wide = bytes("Subject: \xfc", "", "b", "")
  expect(sevenBit(wide)).toEqual(wide)
})

describe("lines longer than SMTP allows", () => {
  const long = "x".repeat(999)

  test("are seen", () => {
    const fits = "x".repeat(998)
    expect(hasLongLine(bytes(fits, fits, fits))).toBe(false)
    expect(hasLongLine(bytes("a", long, "b"))).toBe(true)
    expect(hasLongLine(bytes(long))).toBe(true)
    expect(hasLongLine(bytes(fits, long))).toBe(true)
    expect(hasLongLine(bytes("a".repeat(500), "", "", fits, "b".repeat(900), fits))).toBe(false)
  })

  test("make base64 of their part alone, whatever its encoding was", async () => {
    const soft = Buffer.from("<p>Grüße</p>".repeat(300)).toString("base64")
    const raw = bytes(
      "Content-Transfer-Encoding: 8bit",
      "Content-Type: multipart/alternative; boundary=a",
      "",
      "--a",
      "Content-Type: text/plain; charset=iso-8859-1",
      "Content-Transfer-Encoding: 8bit",
      "",
      `Gr\xfc\xdfe ${long}`,
      "--a",
      "Content-Type: text/html; charset=utf-8",
      "Content-Transfer-Encoding: base64",
      "",
      soft,
      "--a",
      "Content-Type: text/plain; charset=iso-8859-1; x=short",
      "Content-Transfer-Encoding: 8bit",
      "",
      "caf\xe9",
      "--a--",
      "",
    )
    const short = shortLines(raw)
    expect(hasLongLine(short)).toBe(false)
    expect(short.toString("latin1")).toContain(
      "x=short\r\nContent-Transfer-Encoding: 8bit\r\n\r\ncaf\xe9",
    )
    expect(short.toString("latin1")).toStartWith("Content-Transfer-Encoding: 8bit\r\n")
    const mail = await PostalMime.parse(short)
    expect(mail.text).toContain(`Grüße ${long}`)
    expect(mail.html?.trim()).toBe("<p>Grüße</p>".repeat(300))
  })

  test("a message without them stays as it is", () => {
    expect(shortLines(MIXED).equals(MIXED)).toBe(false)
    const plain = bytes("Subject: a", "", "b", "")
    expect(shortLines(plain)).toEqual(plain)
  })
})

test("whatever the bytes, it never throws", () => {
  let seed = 3
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed / 2_147_483_648
  }
  for (let round = 0; round < 2_000; round++) {
    const copy = Buffer.from(MIXED)
    for (let change = 0; change < 8; change++) {
      copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256)
    }
    shortLines(copy)
    sevenBit(copy.subarray(0, Math.floor(random() * copy.length)))
  }
})
