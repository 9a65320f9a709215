import { expect, test } from "bun:test"
import { smtp } from "../../../src/emails/providers/smtp"
import { ReplyReader } from "../../../src/emails/smtp/wire"
import { mailTo } from "../../contracts/email-provider"
import { WHOLE_FLOOD } from "../../fakes/flood"
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

/** What the buffers of two sockets may hold, though nobody reads them. */
const UNREAD = WHOLE_FLOOD / 4

test("a server that floods replies instead of greeting is cut off", async () => {
  await using it = open({ greeting: "flood" })

  expect(await it.provider.send(mail)).toMatchObject({ status: "retry" })
  expect(await it.sink.poured()).toBeLessThan(UNREAD)
})

test.each(["EHLO", "MAIL", "DATA"])(
  "a server that floods replies instead of answering %s is cut off",
  async (command) => {
    await using it = open({ [command]: "flood" })

    expect(await it.provider.send(mail)).toMatchObject({ status: "retry" })
    expect(await it.sink.poured()).toBeLessThan(UNREAD)
  },
)

test("a server that took a message and floods replies later is cut off, and the mail is sent", async () => {
  await using it = open()

  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  it.sink.pour()
  expect(await it.sink.poured()).toBeLessThan(UNREAD)
  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  expect(it.sink.connections()).toBe(2)
})

test("a server that floods replies instead of saying goodbye is cut off", async () => {
  await using it = open({ QUIT: "flood" })

  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  await it.provider.close()
  expect(await it.sink.poured()).toBeLessThan(UNREAD)
})

test("no more replies are read than were asked for", () => {
  const reader = new ReplyReader()
  const flood = Buffer.from("250 ok\r\n".repeat(5_000))
  expect(reader.push(flood, 3)).toHaveLength(3)
  expect(reader.fault).toBe("the server spoke out of turn")
  expect(reader.push(flood, 3)).toEqual([])
})

test("a flood of consent to a message is consent, and is cut off", async () => {
  await using it = open({ end: "flood" })

  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  expect(await it.sink.poured()).toBeLessThan(UNREAD)
})
