import { describe, expect, test } from "bun:test"
import { textOf } from "../../src/lib/charset"
import {
  contentOf,
  isFile,
  leafText,
  MAX_DEPTH,
  MAX_PARTS,
  parameterized,
  readTree,
} from "../../src/lib/mail-tree"

const bytes = (...lines: string[]) => Buffer.from(lines.join("\r\n"), "latin1")

const kinds = (raw: Uint8Array) => readTree(raw).leaves.map(({ content_type }) => content_type)

test("a message without MIME is one text", () => {
  const { leaves, problem } = readTree(bytes("Subject: a", "", "Hello", "there", ""))
  expect(problem).toBeNull()
  expect(leaves.map(leafText)).toEqual(["Hello\nthere\n"])
  expect(leaves.map(isFile)).toEqual([false])
})

const NESTED = bytes(
  'Content-Type: multipart/mixed; boundary="a"',
  "",
  "preamble",
  "--a",
  "Content-Type: multipart/alternative; boundary=ab",
  "",
  "--ab",
  "",
  "plain",
  "--ab",
  "Content-Type: text/html; charset=iso-8859-1",
  "Content-Transfer-Encoding: quoted-printable",
  "",
  "<p>caf=E9 =",
  "noir</p>  ",
  "--ab--",
  "",
  "--a",
  'Content-Type: application/pdf; name="b.pdf"',
  "Content-Disposition: attachment; filename*=utf-8''%e2%82%ac.pdf",
  "Content-Transfer-Encoding: BASE64",
  "Content-ID: <logo@x>",
  "",
  "aGVs",
  "bG8=",
  "--a",
  "Content-Type: message/rfc822",
  "",
  "Content-Type: multipart/mixed; boundary=a",
  "",
  "--x",
  "--a--",
  "epilogue",
)

test("parts of parts are told apart, though one boundary begins like the other", () => {
  expect(kinds(NESTED)).toEqual(["text/plain", "text/html", "application/pdf", "message/rfc822"])
  const [text, html, file, inner] = readTree(NESTED).leaves
  if (!text || !html || !file || !inner) throw new Error("a part is missing")
  expect(leafText(text)).toBe("plain")
  expect(leafText(html)).toBe("<p>café noir</p>")
  expect(contentOf(file).toString()).toBe("hello")
  expect(file).toMatchObject({ filename: "€.pdf", content_id: "logo@x", disposition: "attachment" })
  expect(contentOf(inner).toString()).toContain("--x")
  expect([text, html, file, inner].map(isFile)).toEqual([false, false, true, true])
})

test("a multipart that is encoded as a whole is read, whatever its line ends", () => {
  const inside = "--a\n\nplain\n--a\nContent-Type: text/html\n\n<p>x</p>\n--a--\n"
  for (const body of [inside, inside.replaceAll("\n", "\r\n")]) {
    const head =
      "Content-Type: multipart/alternative; boundary=a\r\nContent-Transfer-Encoding: base64"
    const { leaves, problem } = readTree(bytes(head, "", btoa(body)))
    expect(problem).toBeNull()
    expect(leaves.map(leafText)).toEqual(["plain", "<p>x</p>"])
  }
})

test("a part that lacks its end is read to the end of the message", () => {
  const raw = bytes("Content-Type: multipart/mixed; boundary=a", "", "--a", "", "cut", "off")
  expect(readTree(raw).leaves.map(leafText)).toEqual(["cut\noff"])
})

describe("parameters", () => {
  const forms: [string, Record<string, string>][] = [
    ["attachment; filename=a.txt", { filename: "a.txt" }],
    ['attachment; FileName="a; b.txt"; x=1', { filename: "a; b.txt", x: "1" }],
    [`a; filename*0*=utf-8''%e2%82; filename*1*=%ac; filename*2=" b"`, { filename: "€ b" }],
    ["a; filename*=iso-8859-1'de'M%E4rz.pdf", { filename: "März.pdf" }],
    ["a; filename*1=b; filename*0=a", { filename: "ab" }],
    ["a; name=one; name=two", { name: "one" }],
    ["a; ; broken; =x; b=", { b: "" }],
  ]
  test.each(forms)("%p", (text, params) => {
    expect({ ...parameterized(text).params }).toEqual(params)
  })
})

test("texts are read in their charset, and in UTF-8 or Windows-1252 where it says nothing", () => {
  expect(textOf(Buffer.from([0xa4]), "iso-8859-15")).toBe("€")
  expect(textOf(Buffer.from("grün"), "us-ascii")).toBe("grün")
  expect(textOf(Buffer.from([0x67, 0xfc]), "no-such-charset")).toBe("gü")
})

describe("what is made to hurt", () => {
  const nest = (depth: number) =>
    bytes(
      ...Array.from({ length: depth }, (_, at) => [
        `Content-Type: multipart/mixed; boundary=b${at}.`,
        "",
        `--b${at}.`,
      ]).flat(),
      "",
      "deep",
    )

  test("depth", () => {
    expect(readTree(nest(MAX_DEPTH)).problem).toBeNull()
    expect(readTree(nest(MAX_DEPTH + 1)).problem).toBe("depth")
  })

  test("parts", () => {
    const many = (parts: number) =>
      bytes("Content-Type: multipart/mixed; boundary=a", "", ..."--a,,x,".repeat(parts).split(","))
    expect(readTree(many(MAX_PARTS)).problem).toBeNull()
    expect(readTree(many(50_000)).problem).toBe("parts")
  })

  test("fields, and a multipart without a boundary", () => {
    expect(readTree(Buffer.from(`${"a: b\r\n".repeat(1_001)}\r\n`)).problem).toBe("fields")
    expect(readTree(bytes("Content-Type: multipart/mixed", "", "x")).problem).toBe("boundary")
  })

  test("long runs of one character end within the time of a test", () => {
    const runs = [" ", "\t", "=", ";", "=\r\n", '"', "--a\r\n", "%", "*"]
    for (const run of runs) {
      const long = run.repeat(400_000 / run.length)
      const head = `Content-Type: multipart/mixed; boundary=a;${long.slice(0, 60_000)}\r\n\r\n`
      const qp = "Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
      expect([null, "parts", "unmarked"]).toContain(readTree(Buffer.from(head + long)).problem)
      expect(readTree(Buffer.from(qp + long)).leaves.map(leafText)).toHaveLength(1)
    }
    const head = "Content-Type: multipart/mixed; boundary=a;\r\n"
    const coded = `Content-Transfer-Encoding: base64\r\n\r\n${btoa("\n--ab".repeat(400_000))}`
    for (const rest of [coded, "a=;\r\n".repeat(40_000)])
      expect(readTree(Buffer.from(head + rest)).problem).toBe("unmarked")
  })

  test("of many types the body is searched for a few boundaries", () => {
    const types = Array.from({ length: 8_000 }, (_, at) => `Content-Type: a/b; boundary=b${at}`)
    expect(readTree(bytes(...types, "", "x\r\n".repeat(1_000_000))).problem).toBe("fields")
  })

  test("a thousand parts with long parameters end as well", () => {
    for (const run of [";", "; ", ";a*0*=a", ';a="', ";a "]) {
      const part = `--a\r\nContent-Type: text/plain${run.repeat(7_000 / run.length)}\r\n\r\nx\r\n`
      const raw = `Content-Type: multipart/mixed; boundary=a\r\n\r\n${part.repeat(999)}--a--\r\n`
      expect(readTree(Buffer.from(raw)).leaves).toHaveLength(999)
    }
  })
})

test("whatever the bytes, reading never throws", () => {
  let seed = 7
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed / 2_147_483_648
  }
  for (let round = 0; round < 2_000; round++) {
    const copy = Buffer.from(NESTED)
    for (let change = 0; change < 8; change++) {
      copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256)
    }
    for (const leaf of readTree(copy.subarray(0, Math.floor(random() * copy.length))).leaves) {
      leafText(leaf)
    }
  }
})
