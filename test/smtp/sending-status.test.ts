import { afterAll, expect, test } from "bun:test"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { openSubmission } from "../harness/submission"
import { sent } from "../reputation/mail-counts"

quietLog()
const service = await sharedService()
const server = await openSubmission(service)
afterAll(() => server[Symbol.asyncDispose]())

const MAIL = "From: bell@example.test\r\nSubject: Hi\r\n\r\nhello\r\n."

/** A client behind STARTTLS and its login. */
async function client(key: string) {
  const it = await SmtpDialogue.open(server.port)
  await it.say("EHLO me.test")
  await it.starttls()
  await it.say("EHLO me.test")
  expect(await it.say(plainLogin("svc", key))).toStartWith("235 ")
  return it
}

/** One mail; the reply to the command that ended it. */
async function send(it: SmtpDialogue, to = ["ann@example.test"]): Promise<string> {
  await it.say("MAIL FROM:<a@b.test>")
  for (const address of to) {
    const reply = await it.say(`RCPT TO:<${address}>`)
    if (!reply.startsWith("250 ")) {
      await it.say("RSET")
      return reply
    }
  }
  expect(await it.say("DATA")).toStartWith("354 ")
  return it.say(MAIL)
}

test("a frozen account is refused at RCPT with 550 5.7.1, and may log in", async () => {
  const project = await service.project()
  await sent(service.store, project, { sent: 500, bounced: 50 })
  using it = await client(project.key)
  const reply = await send(it)
  expect(reply).toStartWith("550 5.7.1 account_frozen: The account is frozen (bounce_rate=10%;")
  expect(reply).toMatch(/\(req_[0-9a-f]{32}\)$/)
})

test("the share of a throttled account is refused at the end of DATA with 451 4.7.1", async () => {
  const project = await service.project()
  await sent(service.store, project, { sent: 1000, bounced: 75 })
  using it = await client(project.key)
  const replies: string[] = []
  for (let n = 0; n < 60; n++) replies.push(await send(it))
  const refused = replies.filter((reply) => reply.startsWith("451 4.7.1 account_throttled: "))
  const accepted = replies.filter((reply) => reply.startsWith("250 2.0.0 "))
  expect(refused.length + accepted.length).toBe(60)
  expect(refused.length).toBeGreaterThan(15) // 57.5 % of 60 are 34
  expect(accepted.length).toBeGreaterThan(8)
})

test("a mail to several recipients is refused or accepted as a whole", async () => {
  const project = await service.project()
  await sent(service.store, project, { sent: 1000, bounced: 75 })
  using it = await client(project.key)
  const to = ["ann@example.test", "ben@example.test", "eve@example.test"]
  let accepted = 0
  for (let n = 0; n < 20; n++) accepted += (await send(it, to)).startsWith("250 ") ? 1 : 0
  const { total } = (await project.get("/v1/emails")).body.meta
  expect(total).toBe(3 * accepted)
})
