import { describe, expect, test } from "bun:test"
import { type AuthLetter, AuthMail } from "../../src/auth/mails"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { keep } from "../../src/mailbox/mailbox"
import { messageContents } from "../../src/messages/tables"
import { suppress } from "../../src/suppressions/suppressions"
import { newApplication } from "../harness/application"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import type { ProjectOptions } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const mail = new AuthMail(service.parts)

const CODE = "482913"

const letter: AuthLetter = {
  type: "email_otp",
  to: { email: "ada@mailbox.test" },
  variables: { code: CODE },
  ends_in_seconds: 600,
}

async function application(options: ProjectOptions = {}, settings = {}) {
  const project = await service.project(options)
  const app = await newApplication(service, project, { settings })
  const send = async (name: "live" | "test" = "live", own: Partial<AuthLetter> = {}) => {
    const ready = await mail.prepare(await app.environment(name), { ...letter, ...own })
    return service.store.tx((tx) => ready.accept(tx))
  }
  return { project, app, send }
}

const thrown = (work: Promise<unknown>) => work.then(String, ({ code, status }) => [status, code])

const paths = (id: string) => [
  ...["", "/content", "/raw", "/events", "/attempts", "/explain", "/tracking"].map(
    (end) => `/v1/emails/${id}${end}`,
  ),
  ...["/v1/emails", "/v1/emails?subject=code", "/v1/events"],
]

describe("mail for end users", () => {
  test("no read shows its code, which the recipient gets", async () => {
    const { project, send } = await application()
    const id = await send()
    const readAll = async () => {
      const answers = []
      for (const path of paths(id)) answers.push(await project.get(path))
      expect(JSON.stringify(answers)).not.toContain(CODE)
      return answers
    }
    const [waiting] = await readAll()
    const known = { stream: "auth", source: "auth", subject: "•••• is your code for Shop" }
    expect(waiting?.body.data).toMatchObject({ ...known, track_opens: false, sandbox: false })
    expect(JSON.stringify(await service.store.read.select().from(messageContents))).not.toContain(
      CODE,
    )
    const [handed] = await deliverAll(service)
    expect(Buffer.from(handed?.raw ?? []).toString()).toContain(CODE)
    const [over, content, raw] = await readAll()
    expect(over?.body.data).toMatchObject({
      status: "delivered",
      text: expect.stringContaining("••••"),
    })
    expect(content?.body.data.html).toContain("••••")
    expect(raw?.status).toBe(200)
    expect(JSON.stringify(await service.store.read.select().from(messageContents))).not.toContain(
      "sealed",
    )
  })

  test("its copies would show the code, so there are none", async () => {
    const { project, send } = await application()
    const id = await send("test")
    await deliverAll(service)
    expect(refusal(await project.post(`/v1/emails/${id}/resend`, {}))).toEqual([409, "conflict"])
    const mail_id = newId()
    const address = "ada@mailbox.test"
    const { account_id, project_id } = project
    await service.store.tx((tx) =>
      keep(tx, {
        ...{ id: mail_id, account_id, project_id, email_id: id, mail_from: address },
        ...{ recipients: [address], to_address: address, from_address: address },
        ...{ subject: CODE, raw: Buffer.from("Subject: x\r\n\r\n"), size: 14, created_at: now() },
      }),
    )
    const release = await project.post(`/v1/mailbox/${mail_id}/release`, {})
    expect(refusal(release)).toEqual([409, "conflict"])
    const caught = (await project.get(`/v1/mailbox/${mail_id}`)).body.data
    expect(caught).toMatchObject({ subject: CODE, release_refusal: "conflict" })
  })

  test("environment test counts in no quota and never leaves", async () => {
    const { project, send } = await application({ limits: { emails_per_month: 1 } })
    await send("test")
    const id = await send("test")
    expect((await project.get(`/v1/emails/${id}`)).body.data.sandbox).toBe(true)
    await send("live")
    expect(await thrown(send("live"))).toEqual([402, "payment_required"])
    expect((await project.get("/v1/usage")).body.data.email.used).toBe(1)
    await deliverAll(service)
  })

  test("the sender is the first that may send: of the environment, of the project, of the sink", async () => {
    const sender = { email: "login@example.test", name: "Shop" }
    const own = await application({}, { sender })
    const fromOf = async ({ project, send }: typeof own) =>
      (await project.get(`/v1/emails/${await send()}`)).body.data.from.email
    expect(await fromOf(own)).toBe("login@example.test")
    const unverified = { sender: { ...sender, email: "login@elsewhere.test" } }
    expect(await fromOf(await application({}, unverified))).toBe("auth@mailbox.test")
    await deliverAll(service)
    const { app } = await application()
    const real = { ...service.parts.rules, to_mailbox: false }
    const elsewhere = new AuthMail({ ...service.parts, rules: real })
    const refused = thrown(elsewhere.requireSender(await app.environment()))
    expect(await refused).toEqual([503, "email_not_configured"])
  })

  test("a suppressed address is accepted, and its message fails", async () => {
    const { project, send } = await application()
    const suppressing = { channel: "email", address: letter.to.email, reason: "manual" } as const
    await service.store.tx((tx) =>
      suppress(tx, project.project_id, { ...suppressing, origin: "api" }),
    )
    const id = await send()
    expect(await deliverAll(service)).toEqual([])
    const { status, status_reason } = (await project.get(`/v1/emails/${id}`)).body.data
    expect([status, status_reason]).toEqual(["failed", "suppressed_recipient"])
  })

  test("a code that ended while it waited does not leave", async () => {
    clock.freeze()
    const { project, send } = await application()
    const id = await send()
    clock.advance({ seconds: 601 })
    expect(await deliverAll(service)).toEqual([])
    const { status, status_reason } = (await project.get(`/v1/emails/${id}`)).body.data
    expect([status, status_reason]).toEqual(["failed", "expired"])
  })
})
