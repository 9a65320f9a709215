import { expect, test } from "bun:test"
import { ReplyReader } from "../../../src/emails/providers/smtp-reply"
import { verdict } from "../../../src/emails/providers/smtp-verdict"

function reply(text: string) {
  const [read] = new ReplyReader().push(Buffer.from(`${text}\r\n`))
  if (!read) throw new Error("half a reply")
  return read
}

test.each([
  ["550 5.1.1 <ann@example.test>: unknown", "NoEmail"],
  ["550 5.1.10 null MX", "NoEmail"],
  ["553 5.1.3 bad address syntax", "NoEmail"],
  ["550 No such user here", "NoEmail"],
  ["550 Requested action not taken: mailbox unavailable", "NoEmail"],
  ["550 because I say so", "General"],
  ["550 5.1.8 sender domain does not exist", "PolicyRejected"],
  ["552 5.2.2 mailbox full", "MailboxFull"],
  ["552 quota used up", "MailboxFull"],
  ["550 5.2.2 over quota", "MailboxFull"],
  ["552 5.3.4 too big", "MessageTooLarge"],
  ["552 message exceeds fixed maximum message size", "MessageTooLarge"],
  ["552 5.2.2 message size exceeds the limit", "MessageTooLarge"],
  ["550 5.2.3 message length", "MessageTooLarge"],
  ["554 5.6.0 malformed", "ContentRejected"],
  ["554 message rejected as spam", "ContentRejected"],
  [
    "552-5.7.0 blocked because of a potential security issue with\r\n552 5.7.0 the attachment",
    "AttachmentRejected",
  ],
  ["550 5.7.1 Refused by policy", "PolicyRejected"],
  ["554 relay access denied", "PolicyRejected"],
  ["554 5.7.1 Service unavailable; client host [192.0.2.1] blocked", "InfrastructureRejected"],
  [
    "550 5.7.1 Our system has detected that your IP has a poor reputation",
    "InfrastructureRejected",
  ],
  ["550 5.7.25 no PTR record", "InfrastructureRejected"],
  ["554 denied, see the blocklist of 192.0.2.1", "InfrastructureRejected"],
  ["550 5.2.1 mailbox disabled", "General"],
  ["554 5.4.6 loop", "InfrastructureRejected"],
  ["554 transaction failed", "General"],
])("%p is a bounce of kind %s", (text, bounce_subtype) => {
  expect(verdict(reply(text))).toEqual({ status: "bounced", bounce_subtype, code: null })
})

test.each(["421 4.3.2 closing", "450 4.2.1 greylisted", "452 4.5.3 too many recipients"])(
  "%p may be better tomorrow",
  (text) => {
    expect(verdict(reply(text)).status).toBe("retry")
  },
)

test("a reply of many lines is one text, without control characters", () => {
  expect(reply("550-5.1.1 no\u0007body\r\n550-5.1.1 of\r\n550 5.1.1 this name")).toMatchObject({
    code: 550,
    enhanced: "5.1.1",
    text: "550 5.1.1 no?body 5.1.1 of 5.1.1 this name",
  })
})

test("replies are found whatever way their bytes are cut", () => {
  const reader = new ReplyReader()
  const bytes = Buffer.from("250-grüße\r\n250 two\r\n354 go\r\n")
  const replies = [...bytes].flatMap((byte) => reader.push(Buffer.from([byte])))
  expect(replies.map(({ text }) => text)).toEqual(["250 grüße two", "354 go"])
  expect(reader.halfway).toBe(false)
})

test.each([
  "hello\r\n",
  "150 early\r\n",
  "250ok\r\n",
  "250-a\r\n".repeat(200),
  "x".repeat(70_000),
  `250-${"x".repeat(40_000)}\r\n`.repeat(2),
])("what is no SMTP is refused, also without end", (text) => {
  const reader = new ReplyReader()
  expect(reader.push(Buffer.from(text))).toEqual([])
  expect(reader.fault).toBeTruthy()
})

test("what came whole before the rest was no SMTP is a reply all the same", () => {
  const reader = new ReplyReader()
  const replies = reader.push(Buffer.from("250 2.0.0 queued\r\ngarbage\r\n250 again\r\n"))
  expect(replies.map(({ text }) => text)).toEqual(["250 2.0.0 queued"])
  expect(reader.fault).toBe("not an SMTP reply: garbage")
  expect(reader.push(Buffer.from("250 and again\r\n"))).toEqual([])
})
