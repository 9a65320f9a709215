import { describe, expect, test } from "bun:test"
import {
  asksForLess,
  blameOf,
  directVerdict,
  type Phase,
} from "../../../src/emails/providers/direct-verdict"
import { ReplyReader, type SmtpReply } from "../../../src/emails/smtp/reply"
import { smtpSink } from "../../fakes/smtp-sink"
import { a, directOn, mx, type Names } from "./direct-fixture"
import { BOUNCES, RETRIES } from "./refusals"

function reply(text: string): SmtpReply {
  const [found] = new ReplyReader().push(Buffer.from(`${text}\r\n`))
  if (!found) throw new Error("no reply")
  return found
}

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
