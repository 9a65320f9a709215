import { describe, expect, test } from "bun:test"
import { Problems } from "../../src/core/errors"
import { readSendEmail } from "../../src/emails/fields"
import { mail } from "../harness/mail"

/** What was understood, and the complaints as `path code`. */
function read(fields: Record<string, unknown>) {
  const problems = new Problems()
  const email = readSendEmail(mail(fields), problems)
  return { email, complaints: problems.list.map(({ path, code }) => `${path} ${code}`) }
}

const copies = (count: number) => Array.from({ length: count }, (_, at) => `c${at}@example.test`)
const ann = { email: "ann@example.test", name: null }
const long = (length: number) => "x".repeat(length)
const entries = (count: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`X-${at}`, value]))

/** What no single line may hold. */
const CONTROLS = ["\r\nBcc: x@y.test", "\n", "\0", "\t", "\x1b", "\x7f", "\x85", "\u2028", "\ud800"]

describe("what is understood", () => {
  test.each<[Record<string, unknown>, object]>([
    [{ to: "ann@example.test" }, { to: ann }],
    [{ to: " ann@example.test " }, { to: ann }],
    [{ to: ["ann@example.test"] }, { to: ann }],
    [{ to: { email: "ann@example.test" } }, { to: ann }],
    [{ to: { email: "ann@example.test", name: null } }, { to: ann }],
    [{ to: [{ email: "ann@example.test", name: "Ann" }] }, { to: { ...ann, name: "Ann" } }],
    [{ to: "Ann Bell <ann@example.test>" }, { to: { ...ann, name: "Ann Bell" } }],
    [{ to: '"Bell, Ann" <ann@example.test>' }, { to: { ...ann, name: "Bell, Ann" } }],
    [{ to: "jürgen@münchen.test" }, { to: { email: "jürgen@münchen.test", name: null } }],
    [{ from: undefined }, { from: undefined }],
    [{ from: null }, { from: undefined }],
    [{ cc: "ann@example.test" }, { cc: [ann] }],
    [
      { cc: [], bcc: null },
      { cc: [], bcc: [] },
    ],
    [{ cc: copies(24), bcc: copies(25) }, { subject: "Ding" }],
    [{ subject: long(998) }, { subject: long(998) }],
    [{ subject: "🔔".repeat(998) }, { subject: "🔔".repeat(998) }],
    [{ tags: ["🔔".repeat(100)] }, { tags: ["🔔".repeat(100)] }],
    [{ html: "<p>x</p>", text: "" }, { text: "" }],
    [
      { html: "<p>x</p>", text: undefined },
      { html: "<p>x</p>", text: null },
    ],
    [
      { html: null, text: "x" },
      { html: null, text: "x" },
    ],
    [{ text: "line\r\nline\ttab" }, { text: "line\r\nline\ttab" }],
    [{ reply_to: "ann@example.test" }, { reply_to: [{ email: "ann@example.test", name: null }] }],
    [
      { reply_to: ["Ann <ann@example.test>", { email: "bob@example.test", name: "Bob" }] },
      {
        reply_to: [
          { email: "ann@example.test", name: "Ann" },
          { email: "bob@example.test", name: "Bob" },
        ],
      },
    ],
    [{ reply_to: copies(10) }, { subject: "Ding" }],
    [{ reply_to: [] }, { reply_to: [] }],
    [{ reply_to: null }, { reply_to: [] }],
    [{ topic_id: null, topicId: null, region: null, template: null }, { subject: "Ding" }],
    [{ tags: ["a", "b"] }, { tags: ["a", "b"] }],
    [{ tags: [{ name: "kind", value: "welcome" }] }, { tags: ["kind:welcome"] }],
    [{ tags: [long(100)] }, { tags: [long(100)] }],
    [{ metadata: { a: { b: [1, null] } } }, { metadata: { a: { b: [1, null] } } }],
    [{ metadata: entries(50, 1) }, { metadata: entries(50, 1) }],
    [{ headers: { "X-A": "b", "List-Id": "c" } }, { headers: { "X-A": "b", "List-Id": "c" } }],
    [{ headers: entries(25, long(998)) }, { headers: entries(25, long(998)) }],
    [{ attachments: null }, { attachments: [] }],
  ])("%j", (fields, expected) => {
    const { email, complaints } = read(fields)
    expect(complaints).toEqual([])
    expect(email).toMatchObject(expected)
  })
})

describe("recipients", () => {
  test.each<[Record<string, unknown>, string[]]>([
    [{ to: undefined }, ["to required"]],
    [{ to: null }, ["to required"]],
    [{ to: "" }, ["to invalid_email"]],
    [{ to: "nobody" }, ["to invalid_email"]],
    [{ to: "a@b.test, c@d.test" }, ["to invalid_email"]],
    [{ to: "a@b.test\r\nBcc: c@d.test" }, ["to invalid_email"]],
    [{ to: [] }, ["to invalid"]],
    [{ to: ["a@b.test", "c@d.test"] }, ["to invalid"]],
    [{ to: 5 }, ["to invalid"]],
    [{ to: [["a@b.test"]] }, ["to invalid"]],
    [{ to: {} }, ["to.email required"]],
    [{ to: { email: 5 } }, ["to.email invalid_email"]],
    [{ to: { email: "Ann <a@b.test>" } }, ["to.email invalid_email"]],
    [{ to: { email: "a@b.test", name: 5 } }, ["to.name invalid"]],
    [{ to: { email: "a@b.test", name: "A\r\nBcc: c@d.test" } }, ["to.name invalid"]],
    [{ from: "nobody" }, ["from invalid_email"]],
    [{ from: ["a@b.test"] }, ["from invalid"]],
    [{ cc: ["a@b.test", "no"] }, ["cc.1 invalid_email"]],
    [{ bcc: "no" }, ["bcc invalid_email"]],
    [{ cc: copies(50) }, ["cc too_many"]],
    [{ cc: copies(25), bcc: copies(25) }, ["cc too_many"]],
    [{ reply_to: "no" }, ["reply_to invalid_email"]],
    [{ reply_to: ["a@b.test", "no"] }, ["reply_to.1 invalid_email"]],
    [{ reply_to: copies(11) }, ["reply_to too_many"]],
  ])("%j is refused", (fields, expected) => {
    expect(read(fields).complaints).toEqual(expected)
  })

  test("several are pointed at the batch", () => {
    const problems = new Problems()
    readSendEmail(mail({ to: copies(2) }), problems)
    expect(problems.list[0]?.message).toContain("/v1/emails/batch")
  })
})

describe("contents", () => {
  test.each<[Record<string, unknown>, string[]]>([
    [{ subject: undefined }, ["subject required"]],
    [{ subject: "" }, ["subject invalid"]],
    [{ subject: 5 }, ["subject invalid"]],
    [{ subject: long(999) }, ["subject invalid"]],
    [{ html: undefined, text: undefined }, ["html required"]],
    [{ html: null, text: null }, ["html required"]],
    [{ html: null, text: "" }, ["html required"]],
    [{ html: "", text: "" }, ["html required"]],
    [{ html: 5 }, ["html invalid"]],
    [{ text: ["x"] }, ["text invalid"]],
    [{ text: "a\0b" }, ["text invalid"]],
  ])("%j is refused", (fields, expected) => {
    expect(read(fields).complaints).toEqual(expected)
  })

  test.each(["topic_id", "topicId", "region"])("%s is refused rather than ignored", (name) => {
    expect(read({ [name]: false }).complaints).toEqual([`${name} not_available`])
    expect(read({ [name]: null }).complaints).toEqual([])
  })

  test.each(["news", "a", "0", "product_news-2", "x".repeat(64)])("the category %j", (category) => {
    const { email, complaints } = read({ category })
    expect([email.category, complaints]).toEqual([category, []])
  })

  test("any other category is refused", () => {
    const wrong = ["", "News", "-news", "_news", "a b", "a.b", "ä", long(65), "news\n", 5, ["a"]]
    for (const category of wrong) {
      expect([category, ...read({ category }).complaints]).toEqual([category, "category invalid"])
    }
  })

  test.each(["List-Unsubscribe", "list-unsubscribe-post"])(
    "with a category, the header %s is refused, because the service writes it",
    (name) => {
      const headers = { [name]: "<https://example.test/out>" }
      expect(read({ headers }).complaints).toEqual([])
      expect(read({ headers, category: "news" }).complaints).toEqual([`headers.${name} invalid`])
    },
  )

  test.each([{ template: { id: "welcome" } }, { template_id: "welcome" }])(
    "%j stands for subject, html and text",
    (fields) => {
      const { email, complaints } = read({ subject: "a\nb", html: 5, text: "x", ...fields })
      expect(complaints).toEqual([])
      expect(email).toMatchObject({ template: "welcome", subject: "", html: null, text: null })
    },
  )

  test("a template that is no object has one problem", () => {
    expect(read({ template: "welcome" }).complaints).toEqual(["template invalid"])
    expect(read({ template: {} }).complaints).toEqual(["template.id required"])
  })

  test("with variables the subject is Handlebars, which may be longer than a subject", () => {
    const subject = `{{! ${long(1000)} }}{{name}}`
    expect(read({ subject }).complaints).toEqual(["subject invalid"])
    expect(read({ subject, variables: {} }).complaints).toEqual([])
  })
})

describe("extras", () => {
  test.each<[Record<string, unknown>, string[]]>([
    [{ tags: "a" }, ["tags invalid"]],
    [{ tags: Array(11).fill("a") }, ["tags invalid"]],
    [{ tags: ["a", "", 5, long(101)] }, ["tags.1 invalid", "tags.2 invalid", "tags.3 invalid"]],
    [{ tags: [{ name: "a" }] }, ["tags.0 invalid"]],
    [{ tags: [{ name: "n".repeat(60), value: "v".repeat(60) }] }, ["tags.0 invalid"]],
    [{ metadata: [] }, ["metadata invalid"]],
    [{ metadata: "a" }, ["metadata invalid"]],
    [{ metadata: entries(51, 1) }, ["metadata too_many"]],
    [{ metadata: { [long(65)]: 1 } }, ["metadata invalid"]],
    [{ metadata: { a: long(16_384) } }, ["metadata too_large"]],
    [{ headers: [] }, ["headers invalid"]],
    [{ headers: entries(26, "a") }, ["headers too_many"]],
    [{ headers: { "X-A": 5 } }, ["headers.X-A invalid"]],
    [{ headers: { "X-A": long(999) } }, ["headers.X-A invalid"]],
    [{ headers: { "X A": "b" } }, ["headers invalid"]],
    [{ headers: { "": "b" } }, ["headers invalid"]],
    [{ headers: { "X-A:\r\nBcc": "b" } }, ["headers invalid"]],
    [{ headers: { [long(77)]: "b" } }, ["headers invalid"]],
  ])("%j is refused", (fields, expected) => {
    expect(read(fields).complaints).toEqual(expected)
  })

  test.each([
    "From",
    "to",
    "CC",
    "Bcc",
    "Subject",
    "Date",
    "Sender",
    "Reply-To",
    "Return-Path",
    "Received",
    "Message-ID",
    "DKIM-Signature",
    "MIME-Version",
    "Content-Type",
    "content-transfer-encoding",
    "ARC-Seal",
    "DomainKey-Signature",
    "Resent-From",
    "resent-to",
    "Authentication-Results",
    "Received-SPF",
    "X-SES-CONFIGURATION-SET",
    "Delivered-To",
    "Errors-To",
  ])("the header %s is the service's own", (name) => {
    expect(read({ headers: { [name]: "x" } }).complaints).toEqual([`headers.${name} invalid`])
  })

  test.each(["List-Id", "X-SESSION", "Precedence", "X-Received", "Auto-Submitted"])(
    "the header %s is anybody's",
    (name) => expect(read({ headers: { [name]: "x" } }).complaints).toEqual([]),
  )

  test.each(CONTROLS)("a single line never holds %j", (bad) => {
    const text = `a${bad}b`
    expect(read({ subject: text }).complaints).toEqual(["subject invalid"])
    expect(read({ tags: [text] }).complaints).toEqual(["tags.0 invalid"])
    expect(read({ headers: { "X-A": text } }).complaints).toEqual(["headers.X-A invalid"])
    expect(read({ to: { email: "a@b.test", name: text } }).complaints).toEqual(["to.name invalid"])
    expect(read({ to: `${text} <a@b.test>` }).complaints).toEqual(["to invalid_email"])
    const file = { filename: text, content: "YQ==", content_type: text, content_id: text }
    expect(read({ attachments: [file] }).complaints).toEqual([
      "attachments.0.filename invalid",
      "attachments.0.content_type invalid",
      "attachments.0.content_id invalid",
    ])
  })
})

test.each([[null], [[]], ["text"], [5], [true]])("a body of %j is no object", (body) => {
  const problems = new Problems()
  readSendEmail(body, problems)
  expect(problems.list[0]).toMatchObject({ path: "body", code: "invalid" })
})

test("many problems are told together, up to fifty", () => {
  const problems = new Problems()
  readSendEmail(mail({ cc: Array(49).fill("no"), to: "no", subject: "", html: 5 }), problems)
  expect(problems.list).toHaveLength(50)
})
