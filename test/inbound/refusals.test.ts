import { describe, expect, test } from "bun:test"
import { RECEIVER_POLICY, type SmtpPhase } from "../../src/emails/smtp/outcome"
import { ReplyReader } from "../../src/emails/smtp/wire"
import { readDsn } from "../../src/lib/dsn"
import { bounceSubtype } from "../../src/lib/dsn-recipient"
import { blameOf, type RefusalStage } from "../../src/lib/refusal"
import { OF_CONTENT, OF_NOTHING, OF_RECIPIENT, OF_US } from "../fixtures/refusals"
import { multipart, part, plain, seen } from "../fixtures/reports/mime"

const PHASES: Record<RefusalStage, SmtpPhase[]> = {
  connection: ["greeting", "EHLO", "STARTTLS"],
  sender: ["MAIL"],
  recipient: ["RCPT"],
  data: ["DATA"],
  message: ["message"],
}

const live = (text: string, stage: RefusalStage) =>
  PHASES[stage].map((phase) => {
    const [reply] = new ReplyReader().push(Buffer.from(`${text}\r\n`))
    return reply && RECEIVER_POLICY.meaningOf(reply, phase).bounce_subtype
  })

const HEAD = "From: MAILER-DAEMON@relay.test\nSubject: Undelivered Mail Returned to Sender"

/** How Postfix and Exim quote the stage. */
const QUOTED: Record<RefusalStage, [postfix: (reply: string) => string, exim: string]> = {
  connection: [(reply) => `host b.test refused to talk to me: ${reply}`, "initial connection"],
  sender: [(reply) => `host b.test said: ${reply} (in reply to MAIL FROM command)`, "MAIL FROM:<>"],
  recipient: [(reply) => `host b.test said: ${reply} (in reply to RCPT TO command)`, "RCPT TO:<>"],
  data: [(reply) => `host b.test said: ${reply} (in reply to DATA command)`, "DATA"],
  message: [
    (reply) => `host b.test said: ${reply} (in reply to end of DATA command)`,
    "end of data",
  ],
}

/** The stage stands in the words for people only, as Postfix writes it. */
const ofPostfix = (text: string, stage: RefusalStage) => {
  const [code] = /\b5\.\d+\.\d+/.exec(text) ?? ["5.0.0"]
  const status = `Reporting-MTA: dns; relay.test\n\nFinal-Recipient: rfc822; ann@b.test\nAction: failed\nStatus: ${code}\nDiagnostic-Code: smtp; ${text}`
  const words = `I could not deliver your message.\n\n<ann@b.test>: ${QUOTED[stage][0](text)}`
  return multipart(HEAD, "multipart/report; report-type=delivery-status", [
    part("Content-Type: text/plain", words),
    part("Content-Type: message/delivery-status", status),
  ])
}

const ofExim = (text: string, stage: RefusalStage) =>
  plain(
    HEAD,
    `A message that you sent could not be delivered.\n\n  ann@b.test\n    host b.test [192.0.2.9]\n    SMTP error from remote mail server after ${QUOTED[stage][1]}:\n    ${text}`,
  )

const reported = (raw: string) => readDsn(seen(raw, ""))?.recipients.map(bounceSubtype)

/** Only these may suppress the address; `General` does at the second one. */
const blames = (subtype: string) => blameOf(subtype) === "recipient"

describe.each([
  ["us", OF_US, false],
  ["the content", OF_CONTENT, false],
  ["the recipient", OF_RECIPIENT, true],
  ["nothing that it names", OF_NOTHING, true],
] as const)(
  "a refusal about %s means the same live, in a report and in words:",
  (_, rows, blame) => {
    test.each(rows.map((row) => [...row]))("%s", (text = "", subtype = "", at) => {
      const stage = (at ?? "recipient") as RefusalStage
      expect(live(text, stage)).toEqual(PHASES[stage].map(() => subtype))
      expect(reported(ofPostfix(text, stage))).toEqual([subtype])
      expect(reported(ofExim(text, stage))).toEqual([subtype])
      expect(blames(subtype)).toBe(blame)
    })
  },
)
