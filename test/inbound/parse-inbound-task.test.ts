import { describe, expect, test } from "bun:test"
import { mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openBlobs } from "../../src/core/blobs"
import { readInbound } from "../../src/inbound/parse-inbound-task"
import { parseMail } from "../../src/mailbox/parse-task"

const blobs_dir = mkdtempSync(join(tmpdir(), "odd-mail-"))
openBlobs(blobs_dir)
const verdicts = { spf: "none", dkim: "none", dmarc: "none", arc: "none", verified: true } as const

const read = (mail: Uint8Array) =>
  readInbound({ mail, blobs_dir, mail_from: "ann@ext.example", verdicts, whole: true })

/** Lines end with CRLF, as those of all mail that this server takes. A character is a byte. */
const wire = (text: string) => Buffer.from(text.replace(/\r?\n/g, "\r\n"), "latin1")

const stored = (name: string) =>
  wire(readFileSync(join(import.meta.dir, `../fixtures/odd-mail/${name}.eml`), "latin1"))

async function bodiesOf(mail: Uint8Array) {
  const { content, subject, parse_error } = await read(mail)
  if ("sha256" in content) throw new Error("the bodies are in a file")
  const { text_body, html_body } = content
  const caught = parseMail(mail)
  expect([caught.text?.trim(), caught.html?.trim()]).toEqual([text_body?.trim(), html_body?.trim()])
  expect(caught.parse_error !== null).toBe(parse_error)
  return { text: text_body?.trim() ?? null, html: html_body?.trim() ?? null, subject, parse_error }
}

describe("odd mail, received and caught", () => {
  test.each([
    ["c32", "日本語"],
    ["i01", "お問い合わせありがとうございます。田中です。"],
    ["g01", "Grüße aus Köln, 日本語\n-- \nm\ufffdller list footer"],
    ["i50", "髙橋①"],
    ["c100", "你好吗"],
    ["c101", "안녕 똠"],
    ["c104", "Größe é"],
    ["c108", "日本語"],
    ["c116", "日本語"],
    ["c01", "안녕하세요"],
    ["i52", "Hi Mom ☺!"],
  ])("%p has the text %p", async (name, text) => {
    expect(await bodiesOf(stored(name))).toMatchObject({ text, parse_error: false })
  })

  test.each([
    ["i43", "料金改定のお知らせ"],
    ["c30", "髙橋様"],
    ["e11", "会议通知"],
  ])("%p has the subject %p", async (name, subject) => {
    const mail = stored(name)
    expect(await bodiesOf(mail)).toMatchObject({ subject })
    expect(parseMail(mail).headers.subject).toBe(subject)
  })

  test("html names its charset, and of two types the one counts whose boundary occurs", async () => {
    expect((await bodiesOf(stored("c35"))).html).toContain("<body>Привет мир</body>")
    const two = { text: "plain", html: "<p>x</p>", parse_error: false }
    expect(await bodiesOf(stored("i19"))).toMatchObject(two)
  })

  test("padding within base64 ends nothing, and text behind it is no content", async () => {
    expect((await read(stored("i13"))).files).toMatchObject([{ filename: "a.zip", size: 21 }])
    const listed = "Content-Transfer-Encoding: base64\n\naGk=\n-- \nA list of ours\n"
    expect((await bodiesOf(wire(listed))).text).toBe("hi")
  })

  test("up to 1,000 addresses are kept, and more are told", async () => {
    expect(await read(stored("e17"))).toMatchObject({ to: { length: 600 }, truncated: false })
    expect(await read(stored("g05"))).toMatchObject({ to: { length: 300 }, truncated: false })
    const many = Array.from({ length: 1_001 }, (_, at) => `u${at}@x.example`).join(",\n ")
    const mail = await read(wire(`Cc: ${many}\n\nhi`))
    expect(mail).toMatchObject({ cc: { length: 1_000 }, truncated: true })
    expect(await read(wire(`X-A: ${"a".repeat(300_000)}\n\nhi`))).toMatchObject({ truncated: true })
  })

  test("an address may have its scheme", async () => {
    expect((await read(stored("e20"))).from).toEqual({ email: "a@x.example", name: "Ann" })
  })
})

const mixed = (rest: string) => wire(`Content-Type: multipart/mixed; boundary="b"\n${rest}`)

describe("a damaged mail is read as far as it goes", () => {
  test.each([
    ["no empty line before the boundary", "--b\nContent-Type: text/plain\n\nhi\n--b--\n"],
    ["no empty line in a part", "\n--b\nContent-Type: text/plain\nhi\n--b--\n"],
    ["a part without a field", "\n--b\nhi\n--b--\n"],
    ["spaces behind the boundary", "\n--b  \n\nhi\n--b \t\n\n\n--b-- \n"],
    ["no end", "\n--b\n\nhi"],
    ["a part behind the end", "\n--b\n\n\n--b--\n--b\n\nhi\n--b--\n"],
    ["another boundary", "\n--c\nContent-Type: text/plain\n\nhi\n--c--\n"],
    [
      "a boundary that needs quotes",
      "Content-Type: multipart/mixed; boundary=c;d\n\n--c;d\nContent-A: b\n\nhi\n--c;d--\n",
    ],
    ["a second type", "Content-Type: multipart/mixed; boundary=c\n\n--c\n\nhi\n--c--\n"],
    ["base64 around it all", `Content-Transfer-Encoding: base64\n\n${btoa("--b\r\n\r\nhi")}\n`],
    [
      "a parameter without its indentation",
      "\n--b\nContent-Type: text/plain;\nname=\n\nhi\n--b--\n",
    ],
  ])("%s", async (_, rest) => {
    const { text, parse_error } = await bodiesOf(mixed(rest))
    expect({ text, parse_error }).toEqual({ text: "hi", parse_error: false })
  })

  test.each([
    "Content-Type: multipart/mixed\n\nhi",
    "Content-Type: multipart/mixed; boundary=b\n\nhi",
  ])("%p has its text and a parse error", async (mail) => {
    expect(await bodiesOf(wire(mail))).toMatchObject({ text: "hi", parse_error: true })
  })

  test("a multipart without anything is a parse error", async () => {
    const nothing = await bodiesOf(wire("Content-Type: multipart/mixed; boundary=b\n\n"))
    expect(nothing).toMatchObject({ text: null, parse_error: true })
  })

  test.each([
    ["Content-Type: text/html charset=windows-1251\n\n\xcf", { html: "П", text: null }],
    ["Content-Type: text/html (a page); charset = windows-1251\n\n\xcf", { html: "П" }],
    ["Content-Type:\n\nhi", { text: "hi" }],
    ["Content-Type: text; charset=koi8-r\n\n\xf0", { text: "П" }],
    ['Content-Transfer-Encoding: "Base64";\n\naGk=', { text: "hi" }],
    ["Content-Transfer-Encoding: base64\n\na!!G*k=", { text: "hi" }],
    ["Content-Transfer-Encoding: base64\n\nHi, it is (not) so.", { text: "Hi, it is (not) so." }],
    ["Content-Transfer-Encoding: base64\n\nÄÖÜ", { text: "ÄÖÜ" }],
    ["Content-Transfer-Encoding: 7bit\nContent-Transfer-Encoding: base64\n\naGk=", { text: "hi" }],
    ["Subject: a\nhi\nthere", { text: "hi\nthere", subject: "a" }],
    ["Subject: a\nno field\nX-A: b\n\nhi", { text: "hi", subject: "a" }],
    ["Subject: \xf0\n\n--x\nContent-Type: text/plain; charset=koi8-r\n", { subject: "П" }],
    ["Subject: \x1b$BF|K\\\x1b(B\n\nhi", { subject: "日本" }],
  ])("%p", async (mail, found) => {
    expect(await bodiesOf(wire(mail))).toMatchObject({ parse_error: false, ...found })
  })

  test("names of files in every form", async () => {
    const named = async (field: string) =>
      (await read(wire(`${field}\nSubject: a; charset=gbk\n\nx`))).files.map((one) => one.filename)
    const type = "Content-Type: application/pdf;"
    expect(await named(`${type} name="=?cp932?B?7uCLtA==?=.pdf"`)).toEqual(["髙橋.pdf"])
    expect(await named(`${type} name=\xc4\xe3\xba\xc3.pdf`)).toEqual(["你好.pdf"])
    expect(await named(`${type}\n name*0*=cp866''%8F%E0;\n name*1=a;\n name*2*=%A8`)).toEqual([
      "Прaи",
    ])
    expect(await named(`${type} name*=iso-2022-jp''%1B$BF|%1B%28B`)).toEqual(["日"])
    expect(await named(`${type} name*=utf-8''a%0D%0ABcc:b`)).toEqual(["a Bcc:b"])
    expect(await named(`${type} name*0="it's a 'b' c"`)).toEqual(["it's a 'b' c"])
  })

  test("lines that flow are joined, except quoted ones of another depth and the signature", async () => {
    const flowed = "Content-Type: text/plain; format=flowed; delsp=yes\n\n"
    const lines = "> a \n> b\n>> c\n d \ne\n-- \nAnn"
    expect((await bodiesOf(wire(flowed + lines))).text).toBe("> ab\n>> c\nde\n-- \nAnn")
  })
})

/** The same each time. */
function randoms(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
}

test("no mail is empty and without a parse error, whatever is changed in it", async () => {
  const next = randoms(27)
  const signs = ["\n", "\n\n", "--", ";", "=", '"', ":", " ", "b", "\x1b$B", "\xff", "\0"]
  const base = `Subject: a
Content-Type: multipart/mixed; boundary="bb"

--bb
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/plain; charset=gbk

needle
--b
Content-Type: text/html

<p>needle</p>
--b--

--bb
Content-Type: text/csv; name=a.csv
Content-Transfer-Encoding: quoted-printable

needle
--bb--
`
  for (let round = 0; round < 1_000; round++) {
    let mail = base
    for (let change = 0; change < 4; change++) {
      const at = next(mail.length)
      mail = mail.slice(0, at) + (signs[next(signs.length)] ?? "") + mail.slice(at + next(12))
    }
    const { text, html, attachments, parse_error } = parseMail(wire(mail))
    const is_empty = !text?.trim() && !html?.trim() && attachments.every(({ size }) => size === 0)
    if (is_empty && parse_error === null && /needle/.test(mail)) throw new Error(mail)
  }
})
