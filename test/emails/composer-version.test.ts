import { expect, test } from "bun:test"
import {
  COMPOSER,
  composeMail,
  type MailToCompose,
  type MailToSign,
} from "../../src/emails/compose-task"
import type { HtmlTracking } from "../../src/tracking/tracked-html"
import { attachable, MAIL } from "./composed"

const HTML =
  '<html><body><h1>Größe &amp; "Maß"</h1><p><a href="https://shop.test/a?x=1&amp;y=2">more</a> <a href="https://bell.test/u/1">out</a></p><ul><li>one<li>two</ul></body></html>'

const track: HtmlTracking = {
  ...{ message_id: MAIL.message_id, key: new Uint8Array(32).fill(7), opens: true, clicks: true },
  base_url: "https://bell.test",
  untracked: { urls: [], prefixes: ["https://bell.test/u/"] },
}

const WIDE = {
  from: { email: "bell@example.test", name: 'Glocke, "der" Türme' },
  to: {
    email: "ann@münchen.test",
    name: "李小龍 and a name that is folded, because it is long enough",
  },
  cc: [MAIL.to, { email: "eve@example.test", name: "Eve" }],
  reply_to: [{ email: "desk@example.test", name: "Žofie" }],
  subject: `Größe, ${"a subject that is folded ".repeat(5)}`,
}

const HEADERS = {
  "X-Svc-Email-Id": "1; mac=abc",
  "List-Unsubscribe": "<https://bell.test/u/1>, <mailto:u+1@mx.bell.test>",
  "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
  "X-Note": "ünder und über ".repeat(8),
}

const SUBMITTED = `From: a@b.test\r\nSubject: x\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${HTML}\r\n`

const submitted: MailToSign = {
  ...{ message_id: MAIL.message_id, created_at: MAIL.created_at, dkim: [] },
  bytes: Buffer.from(SUBMITTED),
  fields: "X-Svc-Email-Id: 1; mac=abc\r\n",
}

const part = { content_type: "text/plain", content_id: null }

/** What each mail has been since version 1; `file` writes one to attach. */
const mails = (
  file: (name: string, text: string) => string,
): Record<string, Partial<MailToCompose> | MailToSign> => ({
  plain: {},
  empty: { text: "" },
  wide: { ...WIDE, text: "Grüße\n.\n..\nFrom here\n\n\n" },
  html: { text: null, html: HTML },
  alternative: { html: HTML, text: "Größe", headers: HEADERS },
  "long lines": { html: `<p>${"long ".repeat(500)}</p>`, text: "x".repeat(3000) },
  large: { html: `${HTML}${"<p>Grüße</p>\n".repeat(3000)}`, text: null },
  tracked: { html: HTML, text: null, track },
  files: {
    ...{ ...WIDE, html: '<img src="cid:logo">', text: null, headers: HEADERS },
    attachments: [
      { ...part, filename: "Rechnung März.txt", path: file("a", "Grüße\n") },
      { ...part, filename: "long".repeat(40), path: file("b", "a\0b") },
      { filename: "l.png", content_type: "image/png", content_id: "logo", path: file("c", "png") },
      {
        ...part,
        filename: "m.eml",
        content_type: "message/rfc822",
        path: file("d", "A: b\r\n\r\n"),
      },
    ],
  },
  "files of a large mail": {
    text: "Grüße\n".repeat(5000),
    attachments: [{ ...part, filename: "a.txt", path: file("e", "x".repeat(2000)) }],
  },
  submitted,
  "submitted and tracked": { ...submitted, track },
  "submitted in a file": { ...submitted, bytes: file("f", SUBMITTED) },
})

/** Of each version that may be kept: the hashes of these mails. They never change. */
const HASHES: Record<number, Record<string, string>> = {
  1: {
    plain: "2af2164442df5814",
    empty: "2fc8143ea90ba2f7",
    wide: "07fdc554c0133738",
    html: "12042ee68e8464b4",
    alternative: "d1a2bc89deb363b4",
    "long lines": "1ce373878df28d49",
    large: "13472b7a846ebb4f",
    tracked: "6b01e9c4317aa3be",
    files: "9f8dda2a3e0afc99",
    "files of a large mail": "63c53109c64975be",
    submitted: "e1a63c5aefc8e8da",
    "submitted and tracked": "5c3cb0ec13e93475",
    "submitted in a file": "e1a63c5aefc8e8da",
  },
}

/**
 * Where this fails, mail that waits would never leave, and mail that left could not be shown. Leave the hashes as
 * they are: add the new composer to COMPOSERS under the next number, raise COMPOSER, and keep the one before.
 */
test.each(Object.keys(HASHES).map(Number))(
  "version %d composes what it always has",
  async (version) => {
    using folder = attachable()
    const all = mails((name, text) => folder.file(name, Buffer.from(text)))
    const made: Record<string, string> = {}
    for (const [name, mail] of Object.entries(all)) {
      const whole = "bytes" in mail ? mail : { ...MAIL, ...mail }
      const recipe = { version, signatures: new Uint8Array() }
      const { raw } = await composeMail({ ...(whole as MailToCompose), recipe })
      made[name] = (Bun.SHA256.hash(raw) as Uint8Array).toHex().slice(0, 16)
    }
    expect(made).toEqual(HASHES[version] ?? {})
  },
)

test("new mail has the last version, whose hashes are known", () => {
  expect(Object.keys(HASHES).map(Number)).toContain(COMPOSER)
})
