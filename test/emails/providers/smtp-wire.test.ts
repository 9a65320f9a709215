import { expect, test } from "bun:test"
import { smtp } from "../../../src/emails/providers/smtp"
import { mailTo } from "../../contracts/email-provider"
import { type Script, smtpSink } from "../../fakes/smtp-sink"
import { PATIENT } from "../../harness/waits"

const mail = mailTo("ann@example.test")

function open(script: Script = {}) {
  const sink = smtpSink(script)
  const server = { host: "127.0.0.1", port: sink.port, tls: "none" as const }
  const provider = smtp({ ...server, timeouts: PATIENT })
  return {
    sink,
    provider,
    async [Symbol.asyncDispose]() {
      await provider.close()
      sink[Symbol.dispose]()
    },
  }
}

test.each([
  ["no SMTP", "garbage"],
  ["an empty line", ""],
  ["another reply", "250 2.0.0 ok queued"],
  ["a goodbye", "421 4.4.2 bye"],
  ["half a reply", "250-and"],
  ["a line without end", "x".repeat(100_000)],
])("a message that was taken is sent, though %s follows in one breath", async (_, rest) => {
  await using it = open({ end: `250 2.0.0 ok queued\r\n${rest}` })

  const outcome = { status: "sent", reply: { response: "250 2.0.0 ok queued" } }
  expect(await it.provider.send(mail)).toMatchObject(outcome)
  expect(await it.provider.send(mail)).toMatchObject(outcome)
  expect(it.sink.connections()).toBe(2) // nobody knows what such a server says next
})

test("a refusal that was spoken counts, though no SMTP follows it in one breath", async () => {
  for (const RCPT of ["550 5.1.1 nobody\r\ngarbage", "550 5.1.1 nobody\r\n\r\n"]) {
    await using it = open({ RCPT })
    const outcome = { status: "bounced", bounce_subtype: "NoEmail" }
    expect(await it.provider.send(mail)).toMatchObject(outcome)
  }
})

test.each(["greeting", "EHLO", "MAIL", "DATA"])(
  "no message goes to a server that follows its reply to %s with no SMTP",
  async (command) => {
    const usual = { greeting: "220 hi", EHLO: "250 hi", MAIL: "250 ok", DATA: "354 go" }[command]
    await using it = open({ [command]: `${usual}\r\ngarbage` })

    expect(await it.provider.send(mail)).toMatchObject({
      status: "retry",
      reason: expect.stringMatching(/not an SMTP reply: garbage|spoke out of turn/),
    })
    expect(it.sink.received).toEqual([])
  },
)
