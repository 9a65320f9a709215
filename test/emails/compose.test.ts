import { describe, expect, test } from "bun:test"
import { decodeWords, type Email } from "postal-mime"
import { openWorkers } from "../../src/core/workers"
import { compose } from "../../src/emails/compose-email"
import type { MailToCompose } from "../../src/emails/compose-task"

import { canonical } from "../../src/lib/mail-text"
import fc from "../harness/properties"
import { attachable, MAIL, rawOf, read } from "./composed"

const names = ({ headers }: Email) => headers.map(({ key }) => key).sort()

const STANDARD = [
  "content-transfer-encoding",
  "content-type",
  "date",
  "from",
  "message-id",
  "mime-version",
  "subject",
  "to",
]

describe("the header", () => {
  test("has exactly the fields that were asked for", async () => {
    const mail = await read({})
    expect(names(mail)).toEqual(STANDARD)
    expect(mail).toMatchObject({
      messageId: "<019a0000-0000-7000-8000-000000000001@example.test>",
      subject: "Ding",
      date: "2026-01-02T03:04:05.000Z",
      from: { address: "bell@example.test", name: "" },
      to: [{ address: "ann@example.test", name: "" }],
    })
  })

  test("has cc, reply-to and custom fields, and nothing of the rest", async () => {
    const mail = await read({
      cc: [
        { email: "bob@example.test", name: "Bob" },
        { email: "eve@münchen.de", name: null },
      ],
      reply_to: [
        { email: "desk@example.test", name: "Desk, Ding" },
        { email: "jörg@example.test", name: null },
      ],
      headers: { "X-Tower": "Grüße, Turm", "x-count": "7" },
    })
    expect(names(mail)).toEqual([...STANDARD, "cc", "reply-to", "x-count", "x-tower"].sort())
    expect(mail.cc).toMatchObject([
      { address: "bob@example.test", name: "Bob" },
      { address: "eve@xn--mnchen-3ya.de" },
    ])
    expect(mail.replyTo).toMatchObject([
      { address: "desk@example.test", name: "Desk, Ding" },
      { address: "jörg@example.test" },
    ])
    const tower = mail.headers.find(({ key }) => key === "x-tower")?.value ?? ""
    expect(decodeWords(tower)).toBe("Grüße, Turm")
  })

  test.each([
    "Jörg Müller",
    'Bell, Ann "the bell"',
    "x@y.test",
    "<x@y.test>, c@z.test",
    "Friends: a@b.test;",
    "名前".repeat(40),
    "back\\slash (comment)",
  ])("keeps the name %p, and the address next to it", async (name) => {
    const mail = await read({ to: { email: "ann@example.test", name } })
    expect(mail.to).toEqual([{ address: "ann@example.test", name }])
  })

  test.each(['"a, b"@example.test', '"a@b.test"@example.test', "o'neil+x%y!z@example.test"])(
    "keeps the address %p",
    async (email) => {
      const raw = Buffer.from(await rawOf({ ...MAIL, to: { email, name: null } })).toString()
      expect(raw).toMatch(/^To: .*$/m)
      const [, written = ""] = /^To: (.*)$/m.exec(raw.replaceAll("\r", "")) ?? []
      expect(written.replace(/^<|>$/g, "")).toBe(email)
    },
  )

  test("cannot be given another field by any text", async () => {
    const evil = "x\r\nBcc: eve@example.test"
    const cases: Partial<MailToCompose>[] = [
      { subject: evil },
      { headers: { "X-A": evil } },
      { headers: { [evil]: "a" } },
      { from: { email: "bell@example.test", name: evil } },
      { to: { email: evil, name: null } },
      { to: { email: "a@b.test, c@d.test", name: null } },
      { reply_to: [{ email: evil, name: null }] },
      { reply_to: [{ email: "a@b.test", name: evil }] },
      { reply_to: [{ email: "a@b.test, c@d.test", name: null }] },
      { subject: "x\u2028y" },
    ]
    for (const mail of cases) expect(rawOf({ ...MAIL, ...mail })).rejects.toThrow()
  })

  test("keeps any subject, name and body", async () => {
    const line = fc
      .string({ unit: "grapheme", maxLength: 200 })
      .filter((text) => !/[\p{C}\p{Z}]/u.test(text.replace(/ /g, "")) && text === text.trim())
      .filter((text) => !/ {2}|^$|=\?/.test(text))
    const body = fc.string({ unit: fc.constantFrom("a", "ü", "\n", "\r", ".", " ", "=") })
    await fc.assert(
      fc.asyncProperty(line, line, body, async (subject, name, text) => {
        const mail = await read({ subject, to: { email: "ann@example.test", name }, text })
        expect(mail.subject).toBe(subject)
        expect(mail.to?.[0]?.name?.replaceAll("\\", "")).toBe(name.replaceAll("\\", ""))
        const lines = (value: string) => canonical(value).replace(/(\r\n)+$/, "")
        expect(lines(mail.text ?? "").replaceAll("\r", "")).toBe(lines(text).replaceAll("\r", ""))
      }),
      { numRuns: 60 },
    )
  })
})

describe("the body", () => {
  test("has the text of the html where no other was given", async () => {
    const mail = await read({ text: null, html: "<p>Ding &amp; <b>dong</b></p>" })
    expect(mail.html?.trim()).toBe("<p>Ding &amp; <b>dong</b></p>")
    expect(mail.text?.trim()).toBe("Ding & dong")
  })

  test.each([1, 50_000])(
    "of %d lines arrives whole, whichever way it is encoded",
    async (count) => {
      const html = `<p>Grüße und ${"sehr ".repeat(30)}lange Zeilen</p>\n`.repeat(count)
      const mail = await read({ text: null, html })
      expect(mail.html?.replaceAll("\r", "").trimEnd()).toBe(html.trimEnd())
    },
  )

  test("is free of bare line ends, whatever came in", async () => {
    const mail = await read({ text: "a\rb\nc\r\nd\n\re\u0000f", html: "<p>\r</p>\n" })
    expect(mail.text?.replaceAll("\r", "").trimEnd()).toBe("a\nb\nc\nd\n\ne\u0000f")
  })
})

describe("the bytes", () => {
  test("are the same every time, in the worker too, and others for another message", async () => {
    using folder = attachable()
    const path = folder.file("a", Buffer.from("a"))
    const part = { filename: "a", content_type: "text/plain", content_id: null, path }
    const full: MailToCompose = { ...MAIL, html: "<p>ü</p>", attachments: [part] }
    const workers = openWorkers({ size: 1 })
    const once = await rawOf(full)
    const again = await rawOf(structuredClone(full))
    const { raw: there, recipe } = await compose(workers, full)
    await workers.close()
    expect(Buffer.compare(once, again)).toBe(0)
    expect(Buffer.compare(once, there)).toBe(0)
    expect(Buffer.compare(once, await rawOf({ ...full, recipe }))).toBe(0)
    const other = await rawOf({ ...full, message_id: "019a0000-0000-7000-8000-000000000002" })
    expect(Buffer.from(other).toString()).not.toContain(boundaryOf(once))
  })

  const boundaryOf = (raw: Uint8Array) =>
    /boundary="([^"]+)"/.exec(Buffer.from(raw).toString())?.[1] ?? "none"
})
