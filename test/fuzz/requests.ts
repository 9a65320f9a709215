import { mail, NOBODY } from "../harness/mail"
import fc from "../harness/properties"

/** What a service meets when somebody means it no good, or nothing at all. */
const NASTY = [
  "",
  " ",
  "\0",
  "\r\nBcc: evil@example.test",
  "\n.\r\n",
  "\u2028",
  "\ud800",
  "\u202etxt.exe",
  "__proto__",
  "constructor",
  "../../etc/passwd",
  "' OR 1=1 --",
  "%00%ff",
  "a@b",
  "a@b.test",
  "Ann <a@b.test>",
  '"a@b.test" <c@d.test>',
  "a@b.test, c@d.test",
  "group: a@b.test;",
  "(comment) a@b.test",
  "jürgen@münchen.test",
  "a@xn--.test",
  "=?utf-8?q?a?=",
  "<script>alert(1)</script>",
  "{{#if x}}",
  "x".repeat(999),
  "😀".repeat(300),
]

export const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...NASTY) },
  { weight: 2, arbitrary: fc.string({ maxLength: 40 }) },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
)

export const anything = fc.oneof(
  text,
  fc.constantFrom(null, true, 0, -1, 1e308, [], {}, [[]], [null], { email: null }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.array(text, { maxLength: 60 }),
  fc.dictionary(text, text, { maxKeys: 30 }),
)

const local = fc.stringMatching(/^[a-z]([a-z0-9.+-]{0,10}[a-z0-9])?$/)
const address = local.filter((name) => !name.includes("..")).map((name) => `${name}@example.test`)
const line = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 60 })
  .filter((one) => !/[\p{C}\u2028\u2029]/u.test(one) && one.trim() === one)
const mailbox = fc.oneof(
  address,
  fc.record({ email: address, name: line }, { requiredKeys: ["email"] }),
)

const file = fc.record({
  filename: fc.constantFrom("a.txt", "Ä.pdf", "請求書.pdf", "a b'c.bin"),
  content: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString("base64")),
  content_type: fc.constantFrom("text/plain", "image/png", "application/pdf"),
})

/** Still a character, because an empty text is no content. */
const withoutNul = (text: string) => text.replaceAll("\0", "0")

/** JSON that metadata may hold: no number is beyond what every reader of JSON keeps exactly. */
export const exactValue = fc
  .jsonValue({ maxDepth: 2 })
  .map((value) =>
    JSON.parse(JSON.stringify(value), (_, one) =>
      typeof one === "number" && Math.abs(one) > 2 ** 53 ? Math.sign(one) * 2 ** 53 : one,
    ),
  )

/** Requests that have to be taken. */
export const wellFormed = fc
  .record(
    {
      to: fc.oneof(
        mailbox,
        mailbox.map((one) => [one]),
      ),
      cc: fc.array(mailbox, { maxLength: 4 }),
      bcc: fc.array(mailbox, { maxLength: 4 }),
      subject: line,
      html: fc.string({ unit: "grapheme" }).map((inner) => `<p>${inner.replaceAll("\0", "")}</p>`),
      text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 2000 }).map(withoutNul),
      reply_to: fc.oneof(address, fc.array(mailbox, { maxLength: 10 })),
      tags: fc.array(line, { maxLength: 10 }),
      metadata: fc.dictionary(
        line.filter((key) => key !== "__proto__"),
        exactValue,
        {
          maxKeys: 5,
        },
      ),
      headers: fc.dictionary(fc.stringMatching(/^X-[A-Za-z0-9]{1,20}$/), line, { maxKeys: 5 }),
      attachments: fc.array(file, { maxLength: 3 }),
    },
    { requiredKeys: ["to", "subject", "text"] },
  )
  .map((fields): Record<string, unknown> => mail(fields))
  .filter((body) => !JSON.stringify(body).includes("__proto__"))

const FIELDS = [
  "from",
  "to",
  "cc",
  "bcc",
  "subject",
  "html",
  "text",
  "reply_to",
  "tags",
  "metadata",
  "headers",
  "attachments",
  "template_id",
  "scheduled_at",
]

/** Well-formed, but for one or two fields. */
export const nearly = fc
  .tuple(
    wellFormed,
    fc.array(fc.tuple(fc.constantFrom(...FIELDS), anything), { minLength: 1, maxLength: 2 }),
  )
  .map(([body, changes]): unknown => ({ ...body, ...Object.fromEntries(changes) }))

/** Bodies as text or bytes: broken JSON, JSON of other shapes, no JSON at all. */
export const hostile = fc.oneof(
  fc.tuple(wellFormed, fc.nat(), fc.nat({ max: 5 }), text).map(([body, place, removed, added]) => {
    const whole = JSON.stringify(body)
    const at = place % whole.length
    return whole.slice(0, at) + added.toWellFormed() + whole.slice(at + removed)
  }),
  fc.jsonValue({ maxDepth: 6 }).map((value) => JSON.stringify(value)),
  fc.uint8Array({ maxLength: 200 }),
  fc.constantFrom("", "null", "[[[[", `${"[".repeat(5000)}`, '{"to":{"to":{"to":1}}}', "\ufeff{}"),
  fc.nat({ max: 200 }).map((depth) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`),
)

const headerText = fc
  .string({ unit: "binary-ascii", maxLength: 30 })
  .map((one) => one.replace(/[^\t\x20-\x7e]/g, "ÿ"))

export const headers = fc.record(
  {
    "idempotency-key": fc.oneof(headerText, fc.constantFrom("a", "b", "c")),
    "x-strict": fc.constantFrom("1", "0", "yes"),
    "x-batch-validation": fc.oneof(fc.constantFrom("strict", "permissive"), headerText),
    "x-request-id": headerText,
    "content-type": fc.oneof(fc.constant("application/json"), headerText),
    "x-forwarded-for": headerText,
  },
  { requiredKeys: [] },
)

const QUERIES = [
  "status",
  "to",
  "from",
  "tag",
  "domain",
  "template_id",
  "subject",
  "stream",
  "batch_id",
  "created_after",
  "created_before",
  "page",
  "per_page",
  "cursor",
  "after",
  "types",
  "limit",
  "__proto__",
]

const queryValue = fc.oneof(
  text.map((one) => encodeURIComponent(one.toWellFormed())),
  fc.constantFrom(
    "1",
    "0",
    "-1",
    "1e9",
    "99999999999",
    "queued",
    "%",
    "%ff",
    "%00",
    "2026-01-01T00:00:00Z",
  ),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
)

export const query = fc
  .array(fc.tuple(fc.constantFrom(...QUERIES), queryValue), { maxLength: 5 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join("&"))

const segment = fc.oneof(
  fc.constantFrom(NOBODY, "batch", "%00", "%ff", "%", ".", "..", "%2e%2e", "%2f", "x", "events"),
  text.map((one) => encodeURIComponent(one.toWellFormed())),
)

export const path = fc
  .tuple(
    fc.constantFrom("emails", "mailbox", "api-keys", "events"),
    fc.array(segment, { maxLength: 3 }),
  )
  .map(([area, rest]) => ["/v1", area, ...rest].join("/"))

export const method = fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
