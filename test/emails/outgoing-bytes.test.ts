import { expect, test } from "bun:test"
import { simpleParser } from "mailparser"
import PostalMime from "postal-mime"
import { isUncomposable } from "../../src/emails/compose-email"
import type { MailToCompose } from "../../src/emails/compose-task"
import { canonical } from "../../src/lib/mail-text"
import fc from "../harness/properties"
import { sizes } from "../harness/sizes"
import { MAIL, rawOf } from "./composed"
import { type Letter, letters, publishedKeys } from "./letters"

const { dkim } = publishedKeys()
const ed25519 = dkim.filter(({ algorithm }) => algorithm === "ed25519")

/** Whatever a program may hold in a string, with what breaks lines more often than by chance. */
const wildest = fc.string({
  unit: fc.oneof(
    fc.constantFrom("\r", "\n", "\0", "\r\n", "\r\n\r\n", ":", " ", "\t", "\u0085", "\u2028"),
    fc.constantFrom("Bcc: e@e.test", "=?utf-8?q?x?=", "\ud800", '"', "<", ">", ",", "\\", "a", "ü"),
    fc.string({ unit: "binary", maxLength: 5 }),
  ),
  maxLength: 60,
})

/** Often enough harmless, so that what is wrong in one place meets the other places, too. */
const anything = fc.oneof({ weight: 9, arbitrary: fc.constantFrom("Ding", "ü <a>", "") }, wildest)

const email = fc.oneof({ weight: 9, arbitrary: fc.constant("ann@example.test") }, wildest)
const mailbox = fc.record({ email, name: fc.option(anything) })

const wild: fc.Arbitrary<MailToCompose> = fc.record({
  message_id: fc.constant(MAIL.message_id),
  domain: fc.constant(MAIL.domain),
  created_at: fc.constant(MAIL.created_at),
  from: mailbox,
  to: mailbox,
  cc: fc.array(mailbox, { maxLength: 2 }),
  reply_to: fc.array(mailbox, { maxLength: 2 }),
  subject: anything,
  text: fc.option(wildest),
  html: fc.option(wildest),
  headers: fc.dictionary(fc.oneof(fc.constantFrom("X-A", "X-B"), anything), anything, {
    maxKeys: 2,
  }),
  attachments: fc.constant([]),
  dkim: fc.constantFrom([], ed25519),
})

const fieldsIn = (head: string) => head.split("\r\n").filter((line) => !/^[ \t]/.test(line))

/** Not through our own reading of a header: the count must be that of the bytes. */
function expectExactly(raw: Uint8Array, mail: MailToCompose) {
  const text = Buffer.from(raw).toString("latin1")
  expect(text.replaceAll("\r\n", "")).not.toMatch(/[\r\n\0]/)
  const fields = fieldsIn(text.slice(0, text.indexOf("\r\n\r\n")))
  const names = fields.map((line) => line.slice(0, line.indexOf(":")).toLowerCase())
  const asked = [
    ...mail.dkim.map(() => "dkim-signature"),
    ...["from", "to", "subject", "message-id", "date", "mime-version", "content-type"],
    ...(mail.html ? [] : ["content-transfer-encoding"]),
    ...(mail.cc.length > 0 ? ["cc"] : []),
    ...(mail.reply_to.length > 0 ? ["reply-to"] : []),
    ...Object.keys(mail.headers).map((name) => name.toLowerCase()),
  ]
  expect(names.sort()).toEqual(asked.sort())
}

test("whatever comes in, what goes out is what was asked for, or nothing", async () => {
  let composed = 0
  await fc.assert(
    fc.asyncProperty(wild, async (mail) => {
      try {
        expectExactly(await rawOf(mail), mail)
        composed += 1
      } catch (error) {
        if (!isUncomposable(error)) throw error
      }
    }),
    { numRuns: sizes.fuzz },
  )
  expect(composed).toBeGreaterThan(sizes.fuzz / 100)
})

/** Parsers differ in the line ends at the end, and drop a byte order mark at the beginning. */
const visible = (text: string | undefined) => canonical(text ?? "").replace(/^\ufeff|(\r\n)+$/g, "")

/** Readers take white space around a text away; a name has none there at the API either. */
const shown = (text: string) => text.trim()

test("two parsers read every letter as it was written", async () => {
  const plain = letters.filter(({ files }) => files.length === 0)
  await fc.assert(
    fc.asyncProperty(plain, async ({ files: _, ...letter }) => {
      const raw = Buffer.from(await rawOf({ ...letter, attachments: [], dkim: [] }))
      const mail = await PostalMime.parse(raw)
      expect(shown(mail.subject ?? "")).toBe(shown(letter.subject))
      expect(shown(mail.from?.name ?? "")).toBe(shown(letter.from.name ?? ""))
      expect(mail.cc?.map(({ name }) => shown(name)) ?? []).toEqual(
        letter.cc.map(({ name }) => shown(name ?? "")),
      )
      expectBodies(letter, { text: mail.text, html: mail.html })

      const second = await simpleParser(raw, { skipHtmlToText: true, skipTextToHtml: true })
      expect(shown(second.subject ?? "")).toBe(shown(letter.subject))
      expectBodies(letter, { text: second.text, html: second.html || undefined })
    }),
    { numRuns: sizes.letters },
  )
})

interface Bodies {
  text: string | undefined
  html: string | undefined
}

function expectBodies(letter: Omit<Letter, "files">, read: Bodies) {
  if (letter.text !== null) expect(visible(read.text)).toBe(visible(letter.text))
  if (letter.html) expect(visible(read.html)).toBe(visible(letter.html))
}
