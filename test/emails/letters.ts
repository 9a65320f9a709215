import { generateKeyPairSync } from "node:crypto"
import type { MailToCompose, SigningKey } from "../../src/emails/compose-task"
import fc from "../harness/properties"
import { MAIL } from "./composed"

/** The sender of every letter, and what its DNS says. */
export const DOMAIN = "example.test"

export interface Letter extends Omit<MailToCompose, "attachments" | "dkim"> {
  files: { filename: string; content_type: string; bytes: Uint8Array }[]
}

const words = (length: number, word: string) =>
  word.repeat(Math.ceil(length / word.length)).slice(0, length)

const anyText = fc.string({ unit: "grapheme", maxLength: 300 }).map((text) => {
  const line = text.replace(/[\p{Cc}\u2028\u2029]/gu, "-").toWellFormed()
  return line === "" ? "x" : line
})

/** Every way in which a header line has to be folded, or must not be. */
const headerText = fc.oneof(
  fc.constantFrom("a", "Ding dong", "  led and trailed  ", "two  spaces   three", "=?utf-8?q?x?="),
  fc.constantFrom(words(998, "word "), words(998, "x"), words(998, "ü"), words(998, "名 前 ")),
  fc.constantFrom(`a${" ".repeat(900)}b`, 'quotes " and \\ slashes', "a: b; c, d (e) <f@g.test>"),
  fc.integer({ min: 50, max: 100 }).map((length) => words(length, "ab cde ")),
  fc.integer({ min: 50, max: 100 }).map((length) => words(length, "é")),
  anyText,
)

const headerValue = fc.oneof(headerText, fc.constantFrom("", " ", words(998, "https://a.test/")))

const body = fc.oneof(
  fc.constantFrom(
    "",
    "\n",
    "\n\n\n",
    "a\n\n\n\n",
    "a\r\n\r\n",
    " ",
    "a \n b\t\n \n\n",
    ".\n..\n.a",
  ),
  fc.constantFrom(
    "From here\nFrom \nfrom",
    words(5000, "long "),
    words(5000, "x"),
    words(998, "y"),
  ),
  fc.constantFrom(
    words(3000, "Grüße, "),
    words(30_000, "Straße\n"),
    words(997, "z"),
    words(999, "z"),
  ),
  fc.constantFrom("a\u0000b", "\u00e9\r\ra", "\u2028\u2029\u0085", "=3D=\n=", "\ufeffa", "\t\ta\t"),
  fc.string({ unit: fc.constantFrom("a", "ü", " ", "\t", "\n", "\r", ".", "=", "From ") }),
  fc.string({ unit: "grapheme", maxLength: 400 }).map((text) => text.toWellFormed()),
)

const mailbox = fc.record({
  email: fc.constantFrom(
    "ann@example.test",
    '"a, b"@example.test',
    "o'neil+x%y!z@example.test",
    "eve@münchen.de",
    "jörg@example.test",
    `${words(64, "long")}@${words(60, "label")}.${words(60, "label")}.test`,
  ),
  name: fc.option(headerText),
})

const file = fc.record({
  filename: fc.constantFrom("a.txt", "Rechnung März.pdf", 'odd "name".bin', words(200, "long")),
  content_type: fc.constantFrom("text/plain", "application/pdf", "message/rfc822", "image/png"),
  bytes: fc.uint8Array({ maxLength: 3000 }),
})

const fieldName = fc.constantFrom("X-A", "X-Bell-Tower", words(76, "X-Long"), "Precedence")

const headers = fc.record({
  own: fc.dictionary(fieldName, headerValue, { maxKeys: 3 }),
  list: fc.option(
    fc.constant({
      "List-Unsubscribe": "<https://a.test/u/1>, <mailto:u@a.test>",
      "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }),
  ),
})

/** Letters of every kind that the API may be given, and some that it would refuse. */
export const letters: fc.Arbitrary<Letter> = fc
  .record({
    number: fc.nat(),
    from: fc.option(headerText),
    to: mailbox,
    cc: fc.array(mailbox, { maxLength: 12 }),
    reply_to: fc.array(mailbox, { maxLength: 3 }),
    subject: headerText,
    text: fc.option(body),
    html: fc.option(body),
    headers,
    files: fc.oneof(fc.array(file, { maxLength: 0 }), fc.array(file, { maxLength: 3 })),
  })
  .map(({ number, from, headers: { own, list }, ...letter }) => ({
    ...letter,
    message_id: `019a0000-0000-7000-8000-${number.toString(16).padStart(12, "0")}`,
    domain: DOMAIN,
    created_at: MAIL.created_at,
    from: { email: `bell@${DOMAIN}`, name: from },
    headers: { ...own, ...list },
  }))

/** A key of each algorithm, and the records that publish them beside SPF and DMARC. */
export function publishedKeys() {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 })
  const ed25519 = generateKeyPairSync("ed25519")
  const der = { type: "spki", format: "der" } as const
  const pem = { type: "pkcs8", format: "pem" } as const
  const p = {
    rsa: rsa.publicKey.export(der).toString("base64"),
    ed25519: ed25519.publicKey.export(der).subarray(-32).toString("base64"),
  }
  const dkim: SigningKey[] = [
    {
      domain: DOMAIN,
      selector: "svc1",
      algorithm: "rsa",
      private_key: text(rsa.privateKey.export(pem)),
    },
    {
      domain: DOMAIN,
      selector: "svc1-ed",
      algorithm: "ed25519",
      private_key: text(ed25519.privateKey.export(pem)),
    },
  ]
  const records: Record<string, string> = {
    [`svc1._domainkey.${DOMAIN}`]: `v=DKIM1; k=rsa; p=${p.rsa}`,
    [`svc1-ed._domainkey.${DOMAIN}`]: `v=DKIM1; k=ed25519; p=${p.ed25519}`,
    [DOMAIN]: "v=spf1 ip4:192.0.2.10 -all",
    [`_dmarc.${DOMAIN}`]: "v=DMARC1; p=reject; adkim=s; aspf=s",
  }
  return { dkim, records }
}

const text = (pem: string | Buffer) => pem.toString()
