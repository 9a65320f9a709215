import { describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { leafText, readTree } from "../../src/lib/mail-tree"
import { type MailToRead, readSubmitted, type SubmittedMail } from "../../src/smtp/submitted-mail"

const ID = "019a0000-0000-7000-8000-000000000001"

const given = (raw: string | Uint8Array, more: Partial<MailToRead> = {}): MailToRead => ({
  raw: typeof raw === "string" ? Buffer.from(raw.replaceAll("\n", "\r\n")) : raw,
  smtputf8: false,
  id: ID,
  host: "mx.belfry.test",
  received_at: "2026-11-22T10:00:00.000Z",
  ...more,
})

function read(raw: string | Uint8Array, more: Partial<MailToRead> = {}): SubmittedMail {
  const mail = readSubmitted(given(raw, more))
  if ("refused" in mail) throw new Error(mail.refused)
  return mail
}

const sent = (mail: SubmittedMail) => Buffer.from(mail.raw).toString()

/** Behind the field that this server adds at the top. */
const kept = (mail: SubmittedMail) => sent(mail).replace(/^Received: .*\r\n\t.*\r\n/, "")

const RECEIVED = `Received: by mx.belfry.test with ESMTPSA id ${ID};\r\n\tSun, 22 Nov 2026 10:00:00 +0000\r\n`

const PLAIN = `Received: from a by b; Sun, 22 Nov 2026 09:00:00 +0000
From: Bell <bell@example.test>
To: Ann <ann@example.test>,
\t"Doe, Ben" <ben@example.test>
Subject: Ding
 dong
Date: Sun, 22 Nov 2026 09:59:00 +0100
Message-ID:
 <one@client.test>
X-Odd:   spaces   stay  

Hello
.dots and  spaces  
`

test("what need not change stays byte for byte, behind one Received field", () => {
  const mail = read(PLAIN)
  expect(sent(mail)).toBe(RECEIVED + PLAIN.replaceAll("\n", "\r\n"))
  expect(mail).toMatchObject({
    from: { email: "bell@example.test", name: "Bell" },
    subject: "Ding dong",
    named: [
      { email: "ann@example.test", name: "Ann" },
      { email: "ben@example.test", name: "Doe, Ben" },
    ],
    rfc_message_id: "<one@client.test>",
    given_message_id: "<one@client.test>",
    idempotency_key: null,
    files: [],
    wide: false,
  })
})

describe("fields that must not leave", () => {
  const fields = [
    "Bcc: secret@example.test,\n more@example.test",
    "Resent-Bcc: secret@example.test",
    "Return-Path: <x@client.test>",
    "Delivered-To: x@client.test",
    "Authentication-Results: mx.client.test; spf=pass",
    "ARC-Seal: i=1; a=rsa-sha256",
    "ARC-Message-Signature: i=1",
    "DKIM-Signature: v=1; a=rsa-sha256;\n b=xyz",
    "X-SES-Configuration-Set: mine",
    "X-Svc-Tag: a",
    "x-svc-unknown: b",
    "Idempotency-Key: k",
  ]
  test.each(fields)("%p", (field) => {
    const head = "From: bell@example.test\nMessage-ID: <a@b>\nDate: today\n"
    expect(kept(read(`${field}\n${head}\nHi\n`))).toBe(`${head}\nHi\n`.replaceAll("\n", "\r\n"))
  })
})

test("headers of real clients stay, and make no refusal", () => {
  const fields = `From root Sun Nov 22 10:00:00 2026
Return-path: <root@client>
Received: from a (b [192.0.2.1]) by c
Sender: daemon@client.test
Resent-From: other@client.test
Resent-To: third@client.test
X-Original-To: a
X-Mailer: PHP/8.2
Content-Length: 3
Reply-To: Desk <desk@example.test>, two@example.test
From: bell@example.test (Cron Daemon)
To: undisclosed-recipients:;
Cc:
MIME-Version: 1.0
Content-Type: text/plain; charset="utf-8"
Errors-To: a@b.test
Subject : obsolete
`
  const mail = read(`${fields}\nHi\n`)
  expect(mail.from).toEqual({ email: "bell@example.test", name: "Cron Daemon" })
  expect(mail.reply_to.map(({ email }) => email)).toEqual(["desk@example.test", "two@example.test"])
  for (const line of fields.split("\n").slice(2)) expect(sent(mail)).toContain(line)
  expect(sent(mail)).not.toContain("From root")
  expect(mail.subject).toBe("obsolete")
})

test("Message-ID and Date are added where they are missing or empty", () => {
  const mail = read("From: bell@example.test\nMessage-ID:  \n\nHi\n")
  expect(mail.rfc_message_id).toBe(`<${ID}@example.test>`)
  expect(mail.given_message_id).toBeNull()
  expect(kept(mail)).toBe(
    `From: bell@example.test\r\nMessage-ID: <${ID}@example.test>\r\n` +
      "Date: Sun, 22 Nov 2026 10:00:00 +0000\r\n\r\nHi\r\n",
  )
})

test("8-bit text says its charset, where its program did not", () => {
  const head = "From: Käse <bell@example.test>\nSubject: Größe 日本\n"
  const labels = (charset: string) => [
    ...["MIME-Version: 1.0\r\n", `Content-Type: text/plain; charset=${charset}\r\n`],
    "Content-Transfer-Encoding: 8bit\r\n",
  ]
  const plain = read(`${head}\nGrüße 日本\n`)
  for (const line of labels("utf-8")) expect(sent(plain)).toContain(line)
  expect(sent(plain)).toEndWith("\r\n\r\nGrüße 日本\r\n")
  const [leaf] = readTree(plain.raw).leaves
  expect(leaf && leafText(leaf).trim()).toBe("Grüße 日本")
  const latin = read(Buffer.from("From: bell@example.test\r\n\r\nGr\xfc\xdfe\r\n", "latin1"))
  for (const line of labels("windows-1252")) expect(sent(latin)).toContain(line)

  const html = read(`MIME-Version: 1.0\nContent-Type: text/html;\n${head}\n<p>Grüße</p>\n`)
  expect(sent(html)).toContain(
    "MIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\nFrom:",
  )
  expect(sent(html).match(/mime-version|content-type/gi)).toHaveLength(2)
  const own =
    'MIME-Version: 1.0\nContent-Type: text/plain; Charset="utf-8"\nContent-Transfer-Encoding: 8bit\n'
  expect(kept(read(`${own}${head}\nGrüße\n`))).toStartWith(own.replaceAll("\n", "\r\n"))
  expect(sent(read(`${head}\nascii\n`))).not.toMatch(/mime-version|content-/i)
})

test("of a Message-ID only what an index can hold is remembered", () => {
  const given = `<${"ü".repeat(900)}@client.test>`
  const mail = read(`From: bell@example.test\nMessage-ID: ${given}\n\nHi\n`)
  expect(Buffer.byteLength(mail.rfc_message_id)).toBeLessThanOrEqual(1_000)
  expect(given).toStartWith(mail.rfc_message_id.slice(0, 400))
  expect(kept(mail)).toContain(given)
})

test("a message that is all header keeps its fields", () => {
  const mail = read(Buffer.from("From: bell@example.test\r\nSubject: no body"))
  expect(mail.subject).toBe("no body")
  expect(kept(mail)).toStartWith("From: bell@example.test\r\nSubject: no body\r\nMessage-ID: ")
  expect(kept(mail)).toEndWith("\r\n\r\n")
})

describe("refused with 554 5.6.0", () => {
  const from = "From: bell@example.test\n"
  const many = "X-A: b\n".repeat(1_001)
  const cases: [string, string][] = [
    ["no From", "To: a@b.test\n\nx\n"],
    ["two From fields", `${from}${from}\nx\n`],
    ["two mailboxes", "From: a@example.test, b@example.test\n\nx\n"],
    ["a group", "From: Team: a@example.test;\n\nx\n"],
    ["no address", "From: root (Cron Daemon)\n\nx\n"],
    ["text behind the address", "From: <a@example.test> b@evil.test\n\nx\n"],
    ["a route", "From: <@evil.test:a@example.test>\n\nx\n"],
    ["two Subject fields", `${from}Subject: a\nsubject: b\n\nx\n`],
    ["a line that is no field", `${from}not a field\n\nx\n`],
    ["a fold without a field", ` folded\n${from}\nx\n`],
    ["no header", "\nx\n"],
    ["a multipart without boundary", `${from}Content-Type: multipart/mixed\n\nx\n`],
    ["too many fields", `${from}${many}\nx\n`],
    ["too long a header", `${from}X-Long: ${"x".repeat(300_000)}\n\nx\n`],
  ]
  test.each(cases)("%s", (_, raw) => {
    const mail = readSubmitted(given(raw))
    expect(mail).toMatchObject({ refused: expect.any(String) })
  })
})

describe("a header outside ASCII", () => {
  const raw = "From: Jörg <bell@example.test>\nSubject: Grüße\nX-Note: naïve\n\nHallo\n"

  test("is written in ASCII where the client did not ask for SMTPUTF8", () => {
    const mail = read(raw)
    const [head = ""] = kept(mail).split("\r\n\r\n")
    expect(/^[\x00-\x7f]*$/.test(head)).toBe(true)
    expect(mail).toMatchObject({ subject: "Grüße", from: { name: "Jörg" }, wide: false })
    const again = read(Buffer.from(kept(mail)))
    expect(again).toMatchObject({ subject: "Grüße", from: { name: "Jörg" } })
  })

  test("stays as it is with SMTPUTF8, and then needs it", () => {
    const mail = read(raw, { smtputf8: true })
    expect(kept(mail)).toStartWith(raw.split("\n\n")[0]?.replaceAll("\n", "\r\n") ?? "?")
    expect(sent(mail)).toContain("with UTF8SMTPSA")
    expect(mail).toMatchObject({ subject: "Grüße", wide: true })
    expect(read(PLAIN, { smtputf8: true }).wide).toBe(false)
  })

  test("is read as Windows-1252 where it is not UTF-8", () => {
    const mail = read(Buffer.from(raw.replaceAll("\n", "\r\n"), "latin1"))
    expect(mail).toMatchObject({ subject: "Grüße", from: { name: "Jörg" }, wide: false })
  })

  test("with an address outside ASCII needs SMTPUTF8", () => {
    const mail = read("From: bell@example.test\nReply-To: jörg@example.test\n\nx\n")
    expect(mail.wide).toBe(true)
  })

  test("a domain outside ASCII goes as A-labels", () => {
    const mail = read("From: bell@example.test\nCc: Eve <eve@münchen.de>\n\nx\n")
    expect(kept(mail)).toContain("Cc: Eve <eve@xn--mnchen-3ya.de>\r\n")
    expect(mail.wide).toBe(false)
  })
})

test("a line over 998 bytes makes base64 of its part, which says the same", () => {
  const text = `Grüße ${"x".repeat(1_500)}\n`
  const mail = read(`From: bell@example.test\nContent-Type: text/plain; charset=utf-8\n\n${text}`)
  expect(sent(mail)).toContain("Content-Transfer-Encoding: base64\r\n")
  expect(
    Math.max(
      ...sent(mail)
        .split("\r\n")
        .map(({ length }) => length),
    ),
  ).toBeLessThan(100)
  const [leaf] = readTree(mail.raw).leaves
  expect(leaf && leafText(leaf)).toBe(text)
})

test("option headers are read, those of other features by name", () => {
  const mail = read(`From: bell@example.test
X-Svc-Tag: one
x-svc-tag: =?utf-8?Q?zw=C3=B6lf?=
X-Svc-Metadata-Order-Id: 42
X-Svc-Metadata-__proto__: a
X-Svc-Template-Id: welcome
Idempotency-Key: order-42

x
`)
  expect(mail.options.tags).toEqual(["one", "zwölf"])
  expect(JSON.stringify(mail.options.metadata)).toBe('{"Order-Id":"42","__proto__":"a"}')
  expect(mail.options.others).toEqual([["X-Svc-Template-Id", "welcome"]])
  expect(mail.idempotency_key).toBe("order-42")
})

test("files are listed with their decoded size and hash", () => {
  const mail = read(`From: bell@example.test
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

Hello
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="../r\u202Eport.pdf"
Content-Transfer-Encoding: base64

aGVsbG8=
--b
Content-Type: message/rfc822

From: x@y.test

inner
--b--
`)
  const sha256 = createHash("sha256").update("hello").digest("hex")
  expect(mail.files).toMatchObject([
    { filename: "r_port.pdf", content_type: "application/pdf", size: 5, sha256 },
    { filename: "message-2.eml", content_type: "message/rfc822" },
  ])
  expect(mail.decoded_bytes).toBe(5 + 5 + "From: x@y.test\r\n\r\ninner".length)
})

test("whatever the bytes, reading refuses or reads, and never throws", () => {
  let seed = 11
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed / 2_147_483_648
  }
  const whole = Buffer.from(PLAIN.replaceAll("\n", "\r\n"))
  for (let round = 0; round < 3_000; round++) {
    const copy = Buffer.from(whole)
    for (let change = 0; change < 6; change++) {
      copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256)
    }
    readSubmitted(given(copy, { smtputf8: random() < 0.5 }))
  }
})
