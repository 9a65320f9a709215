import { describe, expect, test } from "bun:test"
import { Problems } from "../../src/core/errors"
import { readSendEmail } from "../../src/emails/fields"
import { mail } from "../harness/mail"

const long = (length: number) => "x".repeat(length)

/** What was understood, and the complaints as `path code`. */
function read(fields: Record<string, unknown>) {
  const problems = new Problems()
  const email = readSendEmail(mail(fields), problems)
  return { email, complaints: problems.list.map(({ path, code }) => `${path} ${code}`) }
}

describe("attachments", () => {
  const file = (fields: Record<string, unknown> = {}) => ({
    filename: "a.txt",
    content: "YWJj",
    content_type: "text/plain",
    ...fields,
  })

  test("are decoded, and have a type when none is given", () => {
    const { email, complaints } = read({
      attachments: [
        file(),
        file({ content_type: undefined, content: "" }),
        file({ content_id: "logo@x", content_type: "text/plain; charset=utf-8" }),
        file({ content: [0, 97, 255], filename: "a", content_type: null }),
        file({ content: Buffer.from("abc").toJSON(), inline_content_id: "<logo@x>" }),
      ],
    })
    expect(complaints).toEqual([])
    expect(email.attachments).toMatchObject([
      { filename: "a.txt", content_type: "text/plain", content_id: null },
      { content_type: "text/plain" },
      { content_id: "logo@x" },
      { filename: "a", content_type: "application/octet-stream" },
      { content_id: "logo@x" },
    ])
    const texts = email.attachments.map((file) =>
      "bytes" in file ? Buffer.from(file.bytes).toString("latin1") : "",
    )
    expect(texts).toEqual(["abc", "", "abc", "\0a\xff", "abc"])
  })

  test.each([
    ["a.pdf", "application/pdf"],
    ["REPORT.final.CSV", "text/csv"],
    ["invite.ics", "text/calendar"],
    ["Größe 日本.png", "image/png"],
    ["photo.heic", "image/heic"],
    ["mail.eml", "message/rfc822"],
    ["data.json", "application/json"],
    ["a.tar.gz", "application/gzip"],
    ["pdf", "application/octet-stream"],
    ["a.unheard", "application/octet-stream"],
    ["a.", "application/octet-stream"],
  ])("called %s are of the type %s", (filename, content_type) => {
    const { email } = read({ attachments: [file({ filename, content_type: undefined })] })
    expect(email.attachments).toMatchObject([{ filename, content_type }])
  })

  test.each(["<logo@x>", "logo@x"])("have the content id %s without brackets", (content_id) => {
    const { email } = read({ attachments: [file({ content_id })] })
    expect(email.attachments).toMatchObject([{ content_id: "logo@x" }])
  })

  const NO_FILES: unknown[] = [
    ...["YWJ", "YWJj\n", " YWJj", "YW Jj", "YWJj=", "YR==", "YW-_", "YWJj====", "ü"],
    ...[
      5,
      null,
      [256],
      [-1],
      [1.5],
      ["97"],
      [[97]],
      { type: "Buffer" },
      { type: "Buffer", data: [256] },
    ],
    { type: "Blob", data: [97] },
  ]
  test.each(NO_FILES.map((content) => ({ content })))(
    "are strict base64 or bytes, so not %j",
    ({ content }) => {
      expect(read({ attachments: [file({ content })] }).complaints).toEqual([
        "attachments.0.content invalid",
      ])
    },
  )

  test.each([
    "",
    "../a",
    "a/b",
    "a\\b",
    'a"b',
    "a\u202eb",
    "a\u2066b",
    ".",
    "..",
    long(256),
    5,
    null,
  ])("are never called %j", (filename) => {
    expect(read({ attachments: [file({ filename })] }).complaints).toEqual([
      "attachments.0.filename invalid",
    ])
  })

  test.each<[unknown, string[]]>([
    ["x", ["attachments invalid"]],
    [Array(51).fill(file()), ["attachments too_many"]],
    [
      ["x", null],
      ["attachments.0 invalid", "attachments.1 invalid"],
    ],
    [[{}], ["attachments.0.filename required", "attachments.0.content required"]],
    [[file({ content_type: "text" })], ["attachments.0.content_type invalid"]],
    [[file({ content_id: "<a@b" })], ["attachments.0.content_id invalid"]],
    [[file({ content_id: "<a b>" })], ["attachments.0.content_id invalid"]],
  ])("%j are refused", (attachments, expected) => {
    expect(read({ attachments }).complaints).toEqual(expected)
  })

  test("may be fifty, with names in any script", () => {
    const names = ["Bericht über Ämter.pdf", "請求書.pdf", "a b.txt", "x'y.txt", ".env", "a..b"]
    const many = Array.from({ length: 50 }, (_, at) => file({ filename: names[at % 6] }))
    expect(read({ attachments: many }).complaints).toEqual([])
  })
})
