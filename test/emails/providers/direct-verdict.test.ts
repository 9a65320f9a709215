import { describe, expect, test } from "bun:test"
import {
  asksForLess,
  blameOf,
  directVerdict,
  type Phase,
} from "../../../src/emails/providers/direct-verdict"
import { ReplyReader, type SmtpReply } from "../../../src/emails/providers/smtp-reply"

function reply(text: string): SmtpReply {
  const [found] = new ReplyReader().push(Buffer.from(`${text}\r\n`))
  if (!found) throw new Error("no reply")
  return found
}

const BOUNCES: [subtype: string, blame: string, texts: string[]][] = [
  [
    "NoEmail",
    "recipient",
    [
      "550 5.1.1 <ann@b.test>: Recipient address rejected: User unknown in virtual mailbox table",
      "550 5.1.1 The email account that you tried to reach does not exist.",
      "550-5.1.1 The email account that you tried to reach does not exist.\r\n550 5.1.1 host 192.0.2.7",
      "551 5.1.6 mailbox has moved, no forwarding",
      "550 5.1.0 Address rejected",
      "550 5.1.2 bad destination system",
      "553 5.1.3 bad destination mailbox address syntax",
      "556 5.1.10 Recipient address has null MX",
      "550 5.4.1 Recipient address rejected: Access denied. AS(201806281)",
      "550 5.5.0 Requested action not taken: mailbox unavailable",
      "550 No such user here",
      "550 Unknown user",
      "554 5.0.0 user unknown",
    ],
  ],
  [
    "MailboxFull",
    "recipient",
    [
      "552 5.2.2 The email account that you tried to reach is over quota",
      "552 4.2.2 mailbox full, though it says 4",
      "550 5.2.2 mailbox full",
      "552 Requested mail action aborted: exceeded storage allocation",
    ],
  ],
  [
    "General",
    "recipient",
    [
      "550 5.2.1 The email account that you tried to reach is disabled",
      "550 5.2.0 other mailbox status",
      "554 5.4.6 too many hops",
      "554 5.4.14 hop count exceeded",
      "550 5.3.0 other mail system problem",
      "554 Transaction failed",
      "550 5.5.1 invalid command",
    ],
  ],
  [
    "MessageTooLarge",
    "content",
    [
      "552 5.3.4 Message size exceeds fixed limit",
      "552 5.2.3 message length exceeds administrative limit",
      "552 message exceeds fixed maximum message size",
      "550 5.2.3 too long for this mailbox",
    ],
  ],
  [
    "ContentRejected",
    "content",
    [
      "554 5.6.0 Message content not acceptable",
      "550 5.6.1 media not supported",
      "554 message rejected as spam",
      "554 virus found",
    ],
  ],
  [
    "AttachmentRejected",
    "content",
    [
      "552 5.7.0 This message was blocked because its attachment may hold a virus",
      "550 5.7.1 file type not allowed: attachment rejected",
    ],
  ],
  [
    "PolicyRejected",
    "infrastructure",
    [
      "550 5.7.1 Message refused by policy",
      "550 5.7.1 Relaying denied",
      "554 5.7.1 Sender address rejected: not welcome",
      "550 5.7.0 Message rejected under suspicion of SPAM",
      "550 5.1.8 Sender address rejected: Domain not found",
      "553 5.1.7 bad sender's mailbox address syntax",
      "530 5.7.0 Must issue a STARTTLS command first",
      "535 5.7.8 Authentication credentials invalid",
      "554 Relay access denied",
    ],
  ],
  [
    "InfrastructureRejected",
    "infrastructure",
    [
      "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org",
      "550 5.7.1 [192.0.2.1 12] Our system has detected that this message is likely unsolicited",
      "550 5.7.1 Our system has detected an unusual rate of mail originating from your IP address",
      "550 5.7.25 [192.0.2.1] The IP address sending this message does not have a PTR record",
      "550 5.7.26 This message does not have authentication information or fails to pass checks",
      "550 5.7.26 Unauthenticated email from a.test is not accepted due to domain's DMARC policy",
      "550 5.7.23 SPF validation failed",
      "550 5.7.20 no passing DKIM signature found",
      "550 5.7.27 sender address has null MX",
      "550 5.7.509 Access denied, sending domain a.test does not pass DMARC verification",
      "550 5.7.515 Access denied, sending domain does not meet the required authentication level",
      "550 5.7.606 Access denied, banned sending IP [192.0.2.1]",
      "550 5.7.1 Email rejected per SPF policy",
      "553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1",
      "550 SC-001 Mail rejected for policy reasons: IP reputation",
      "554 Your access has been rejected due to the sending MTA's poor reputation",
      "550 blocked using barracudacentral: listed in a blocklist",
      "550 5.1.1 blocked: your host is on our blacklist",
    ],
  ],
]

const RETRIES = [
  "421 4.3.2 Service shutting down",
  "421 4.7.0 Try again later, closing connection",
  "421-4.7.28 unusual rate of unsolicited mail\r\n421 4.7.28 originating from your IP",
  "450 4.1.1 unverified recipient",
  "450 4.2.0 Greylisted, come back in 5 minutes",
  "450 4.2.1 The user is receiving mail too quickly",
  "450 4.7.1 Client host rejected: cannot find your reverse hostname",
  "451 4.3.0 local error in processing",
  "451 4.3.2 Please try again later",
  "451 4.4.1 no answer from host",
  "451 4.7.500 Server busy",
  "452 4.2.2 over quota",
  "452 4.3.1 insufficient system storage",
  "452 4.5.3 too many recipients",
  "454 4.7.0 TLS not available",
  "455 4.5.1 parameters not supported",
  "450 mailbox busy",
  "499 what?",
]

const count = BOUNCES.reduce((sum, [, , texts]) => sum + texts.length, RETRIES.length)

test("the tables hold more than sixty replies", () => {
  expect(count).toBeGreaterThanOrEqual(60)
})

describe.each(BOUNCES)("%s, which is about %s:", (bounce_subtype, blame, texts) => {
  test.each(texts)("%s", (text) => {
    const found = directVerdict(reply(text), "RCPT")
    expect(found).toEqual({ status: "bounced", bounce_subtype, code: null })
    expect(blameOf(bounce_subtype) as string).toBe(blame)
  })
})

test.each(RETRIES)("%s comes again", (text) => {
  for (const phase of ["greeting", "MAIL", "RCPT", "DATA", "message"] satisfies Phase[]) {
    expect(directVerdict(reply(text), phase).status).toBe("retry")
  }
})

test.each<[Phase, string, string]>([
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
  expect(directVerdict(reply(text), phase)).toMatchObject({ status: "bounced", bounce_subtype })
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
