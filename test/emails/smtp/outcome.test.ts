import { describe, expect, test } from "bun:test"
import {
  asksForLess,
  NOWHERE,
  RECEIVER_POLICY,
  relayPolicy,
  replied,
  type SmtpPhase,
} from "../../../src/emails/smtp/outcome"
import { ReplyReader, type SmtpReply } from "../../../src/emails/smtp/wire"
import { blameOf, subtypeOf } from "../../../src/lib/refusal"
import { smtpSink } from "../../fakes/smtp-sink"
import { a, directOn, mx, type Names } from "../providers/direct-fixture"
import { BOUNCES, RETRIES } from "./refusals"

function reply(text: string): SmtpReply {
  const [read] = new ReplyReader().push(Buffer.from(`${text}\r\n`))
  if (!read) throw new Error("half a reply")
  return read
}

const { meaningOf: relayMeaning } = relayPolicy("sent")
const { meaningOf: receiverMeaning } = RECEIVER_POLICY

const FAILED = { status: "failed", bounce_subtype: null, code: "provider_error" }

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
  ["552 5.2.2 daily quota of this mailbox exceeded", "MailboxFull"],
  ["552 5.2.2 over quota, try sending later", "MailboxFull"],
  ["552 5.2.2 try sending later: the mailbox is over quota", "MailboxFull"],
  ["552 5.3.4 message size exceeds the limit for outgoing mail", "MessageTooLarge"],
  ["552 message too long", "MessageTooLarge"],
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
  ["550 5.2.1 mailbox disabled", "General"],
])("%p is a bounce of kind %s", (text, bounce_subtype) => {
  const { fault, ...status } = relayMeaning(reply(text), "RCPT")
  expect(status).toEqual({ status: "bounced", bounce_subtype, code: null })
  expect(subtypeOf(reply(text), "recipient")).toBe(bounce_subtype)
  expect(fault).toBeUndefined()
})

test.each([
  ["554 5.7.1 Service unavailable; client host [192.0.2.1] blocked", "InfrastructureRejected"],
  [
    "550 5.7.1 Our system has detected that your IP has a poor reputation",
    "InfrastructureRejected",
  ],
  ["550 5.7.25 no PTR record", "InfrastructureRejected"],
  ["554 denied, see the blocklist of 192.0.2.1", "InfrastructureRejected"],
  ["554 5.4.6 loop", "InfrastructureRejected"],
  ["503 Bad sequence of commands", "InfrastructureRejected"],
  ["554 Service unavailable", "InfrastructureRejected"],
  ["554 transaction failed", "InfrastructureRejected"],
  ["550 5.4.5 Daily user sending quota exceeded.", "InfrastructureRejected"],
  ["552 5.2.2 sending quota exceeded for this account", "InfrastructureRejected"],
  ["550 Daily SMTP relay sending limit exceeded for customer", "InfrastructureRejected"],
  ["550 5.7.1 Daily SMTP relay limit exceeded for customer", "InfrastructureRejected"],
  ["554 5.2.0 Submission quota exceeded", "InfrastructureRejected"],
  [
    "550 Domain a.test has exceeded the max emails per hour (50/50) allowed",
    "InfrastructureRejected",
  ],
  ["550 You have reached a limit for sending mail", "InfrastructureRejected"],
  ["550 Maximum credits exceeded", "InfrastructureRejected"],
  ["554 relay access denied", "PolicyRejected"],
  ["554 5.7.1 <ann@b.test>: Relay access denied", "PolicyRejected"],
  ["550 5.7.1 Unable to relay", "PolicyRejected"],
])("%p of a relay is a refusal of us, and no bounce (of a mail host: %s)", (text, of_host) => {
  const { fault, ...status } = relayMeaning(reply(text), "RCPT")
  expect(status).toEqual(FAILED as typeof status)
  expect(fault).toBe("infrastructure")
  expect(subtypeOf(reply(text), "recipient")).toBe(of_host)
})

test.each([
  ["452 4.5.3 sending quota exceeded for this account", "infrastructure"],
  ["454 4.3.0 Daily message quota exceeded", "infrastructure"],
  ["452 4.2.2 mailbox over quota", undefined],
  ["450 4.2.1 The user is receiving mail too quickly, over its rate limit", undefined],
])("%p comes again, and is a fault of the relay: %p", (text, fault) => {
  const found = relayMeaning(reply(text), "RCPT")
  expect(found.status).toBe("retry")
  expect(found.fault).toBe(fault as "infrastructure")
})

test.each([
  ["552 message size exceeds fixed maximum message size", "MessageTooLarge"],
  ["552 5.2.3 message too long", "MessageTooLarge"],
  ["550 5.3.4 too much", "MessageTooLarge"],
  ["552 5.2.2 sending quota exceeded for this account", null],
  ["552 exceeded storage allocation", null],
])("%p at MAIL is about the size of the message: %p", (text, bounce_subtype) => {
  expect(relayMeaning(reply(text), "MAIL")).toMatchObject(
    bounce_subtype === null ? FAILED : { status: "bounced", bounce_subtype },
  )
})

test.each(["421 4.3.2 closing", "450 4.2.1 greylisted", "452 4.5.3 too many recipients"])(
  "%p may be better tomorrow",
  (text) => {
    expect(relayMeaning(reply(text), "RCPT").status).toBe("retry")
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

const count = BOUNCES.reduce((sum, [, , texts]) => sum + texts.length, RETRIES.length)

test("the tables hold more than sixty replies", () => {
  expect(count).toBeGreaterThanOrEqual(60)
})

describe.each(BOUNCES)("%s, which is about %s:", (bounce_subtype, blame, texts) => {
  test.each(texts)("%s", (text) => {
    const { fault: _, ...status } = receiverMeaning(reply(text), "RCPT")
    expect(status).toEqual({ status: "bounced", bounce_subtype, code: null })
    expect(blameOf(bounce_subtype) as string).toBe(blame)
  })
})

test.each(RETRIES)("%s comes again", (text) => {
  for (const phase of ["greeting", "MAIL", "RCPT", "DATA", "message"] satisfies SmtpPhase[]) {
    expect(receiverMeaning(reply(text), phase).status).toBe("retry")
  }
})

test("each of them, over the wire: outcome, the server's words, its codes and the next attempt", async () => {
  const all = [
    ...BOUNCES.flatMap(([subtype, , texts]) => texts.map((text) => ({ subtype, text }))),
    ...RETRIES.map((text) => ({ subtype: null, text })),
  ]
  const numberOf = (line: string) => Number(/@d(\d+)\./.exec(line)?.[1])
  using sink = smtpSink({ RCPT: (line) => all[numberOf(line)]?.text })
  const names: Names = Object.fromEntries(
    all.flatMap((_, at) => [
      [`MX d${at}.test`, mx([10, "mx.d.test"])],
      ["A mx.d.test", a("127.0.0.1")],
    ]),
  )
  await using it = await directOn(names, { port: sink.port })
  for (const [at, { subtype, text }] of all.entries()) {
    const outcome = await it.send(`ann@d${at}.test`)
    const { code, enhanced, text: reason } = reply(text)
    expect(outcome).toMatchObject({
      status: subtype === null ? "retry" : "bounced",
      bounce_subtype: subtype,
      code: null,
      reason,
      reply: { smtp_code: code, enhanced_code: enhanced, response: reason, mx: "mx.d.test" },
    })
    // What another server of ours might do better, and only that, is a fault.
    const is_ours = subtype === "InfrastructureRejected" || code === 421
    expect([text, outcome.fault]).toEqual([text, is_ours ? "infrastructure" : undefined])
    if (subtype !== null) continue
    expect(outcome.schedule(1, 0)).toBeWithin(54, 66.1)
    expect(outcome.schedule(9, 48 * 3600)).toBeUndefined()
  }
  expect(sink.received).toEqual([])
})

test.each<[SmtpPhase, string, string]>([
  ["greeting", "554 5.1.1 no", "InfrastructureRejected"],
  ["greeting", "554 mx.b.test", "InfrastructureRejected"],
  ["greeting", "521 does not accept mail", "InfrastructureRejected"],
  ["EHLO", "550 user unknown", "InfrastructureRejected"],
  ["STARTTLS", "554 5.7.1 no", "InfrastructureRejected"],
  ["MAIL", "550 5.1.1 user unknown", "PolicyRejected"],
  ["MAIL", "550 whatever", "PolicyRejected"],
  ["MAIL", "550 5.7.1 your IP is blocked", "InfrastructureRejected"],
  ["MAIL", "552 5.3.4 too large", "MessageTooLarge"],
])("at %s no recipient is to blame for %p", (phase, text, bounce_subtype) => {
  expect(receiverMeaning(reply(text), phase)).toMatchObject({ status: "bounced", bounce_subtype })
  expect(blameOf(bounce_subtype)).not.toBe("recipient")
})

test.each<[string, boolean]>([
  ["421 4.3.2 closing", true],
  ["421 too many connections from you", true],
  ["450 4.7.1 rejected for now", true],
  ["451 4.7.500 server busy", true],
  ["451 rate limit exceeded", true],
  ["452 too many messages in this session", true],
  ["450 4.7.1 Greylisted for 300 seconds", false],
  ["451 4.7.1 Graylisting in action", false],
  ["450 4.2.0 try again", false],
  ["450 4.2.1 receiving mail too quickly", false],
  ["452 4.5.3 too many recipients", false],
  ["452 4.2.2 mailbox full", false],
  ["451 4.3.0 local error", false],
  ["550 5.7.1 rate limit exceeded", false],
  ["250 ok", false],
])("%p slows its domain down: %p", (text, expected) => {
  expect(asksForLess(reply(text))).toBe(expected)
})

test.each<[string, SmtpPhase, true | undefined]>([
  ["452 4.2.2 mailbox full", "RCPT", true],
  ["450 4.1.1 unverified recipient", "RCPT", true],
  ["451 4.2.0 not ready", "RCPT", true],
  ["451 4.2.0 not ready", "DATA", undefined],
  ["450 4.2.0 Greylisted, come back in 5 minutes", "RCPT", undefined],
  ["450 4.2.1 The user gets mail at a rate that is too high", "RCPT", undefined],
  ["452 4.5.3 too many recipients", "RCPT", undefined],
  ["450 sender address could not be verified, rejected for now", "RCPT", undefined],
  ["451 Please try again later", "RCPT", undefined],
])("%p at %s counts against the recipient when it is given up: %p", (text, phase, is_soft) => {
  expect(replied(RECEIVER_POLICY, reply(text), phase, NOWHERE).is_soft).toBe(is_soft as true)
})
