import { describe, expect, test } from "bun:test"
import type { EmailProvider, OutgoingMail } from "../../src/emails/providers/provider"
import { outcomeOf } from "../../src/emails/smtp/outcome"
import type { RecipientOutcome } from "../../src/providers/provider"
import { type NewSuppression, suppress } from "../../src/suppressions/suppressions"
import { refusal } from "../harness/client"
import { deliverBy } from "../harness/delivery"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { testSubmission } from "../harness/submission"

const service = await sharedService()
const { store } = service

const bounce = (address: string, fields: Partial<NewSuppression> = {}): NewSuppression => ({
  ...{ channel: "email", address, reason: "bounce", origin: "event" },
  ...fields,
})

const add = ({ project_id }: TestProject, address: string, fields: Partial<NewSuppression> = {}) =>
  store.tx((tx) => suppress(tx, project_id, bounce(address, fields)))

const accepted: Omit<RecipientOutcome, "address"> = {
  status: "sent",
  reason: null,
  bounce_subtype: null,
  code: null,
  reply: { smtp_code: 250, enhanced_code: "2.0.0", response: "250 ok", mx: "mx.test", tls: null },
}

/** Delivers what waits, and tells what the provider was handed of this project. */
async function delivered({ project_id }: TestProject) {
  const handed: OutgoingMail[] = []
  const provider: EmailProvider = {
    name: "smtp",
    schedule: () => undefined,
    send: async (one) => {
      handed.push(one)
      const each = one.to.map((address) => ({ ...accepted, address }))
      return outcomeOf(each, { provider: "smtp", schedule: () => undefined })
    },
    close: async () => {},
  }
  await deliverBy(service.parts, provider)
  return handed.filter((one) => one.project_id === project_id)
}

const record = async (project: TestProject, id: string) =>
  (await project.get(`/v1/emails/${id}`)).body.data

type Listed = Record<"email" | "kind" | "status", string> & { status_reason: string | null }

const statuses = ({ recipients }: { recipients: Listed[] }): (string | null)[][] =>
  recipients.map(({ email, kind, status, status_reason }) => [email, kind, status, status_reason])

describe("a send to a suppressed address", () => {
  test("is refused, and says since when and why", async () => {
    const project = await service.project()
    const row = await add(project, "ann@example.test")
    const refused = await project.post("/v1/emails", mail({ to: "Ann <ANN@Example.test>" }))
    expect(refusal(refused)).toEqual([422, "suppressed_recipient"])
    expect(refused.body.error.details).toEqual({
      address: "ann@example.test",
      reason: "bounce",
      scope: { type: "project", key: null },
      suppressed_at: row?.created_at,
    })
    expect(refused.body.error.message).toContain(`DELETE /v1/suppressions/${row?.id}`)
    expect((await project.get("/v1/emails")).body.data).toEqual([])
    expect((await project.post("/v1/emails", mail({ to: "ben@example.test" }))).status).toBe(201)
    const other = await service.project()
    expect((await other.post("/v1/emails", mail())).status).toBe(201)
  })

  test("is accepted once the suppression is removed", async () => {
    const project = await service.project()
    const row = await add(project, "ann@example.test")
    expect((await project.post("/v1/emails", mail())).status).toBe(422)
    await project.call("DELETE", `/v1/suppressions/${row?.id}`)
    expect((await project.post("/v1/emails", mail())).status).toBe(201)
  })

  test("is refused before its attachments are fetched, and after its domain is checked", async () => {
    const project = await service.project()
    await add(project, "ann@example.test")
    const attachments = [{ filename: "a.pdf", path: "https://127.0.0.1/a.pdf" }]
    const refused = await project.post("/v1/emails", mail({ attachments }))
    expect(refusal(refused)).toEqual([422, "suppressed_recipient"])
    const foreign = await project.post("/v1/emails", mail({ from: "a@unverified.test" }))
    expect(refusal(foreign)).toEqual([400, "domain_not_verified"])
  })

  test("does not count: neither the quota nor the usage", async () => {
    const project = await service.project()
    await add(project, "ann@example.test")
    await project.post("/v1/emails", mail())
    const left = mail({ to: "ben@example.test", cc: ["ann@example.test", "cay@example.test"] })
    await project.post("/v1/emails", left)
    expect((await project.get("/v1/usage")).body.data.email.used).toBe(2)
  })

  test("is one bad item of a batch", async () => {
    const project = await service.project()
    await add(project, "ann@example.test")
    const messages = [mail({ to: "ben@example.test" }), mail(), mail({ to: "cay@example.test" })]
    const { body } = await project.post("/v1/emails/batch", { messages })
    expect(body.data).toMatchObject({ total: 3, succeeded: 2, failed: 1 })
    expect(body.data.results[1]).toMatchObject({
      index: 1,
      error: { code: "suppressed_recipient", details: { address: "ann@example.test" } },
    })
    const strict = await project.post("/v1/emails/batch", messages)
    expect(refusal(strict)).toEqual([422, "suppressed_recipient"])
    expect(strict.body.error.details).toMatchObject({ index: 1, address: "ann@example.test" })
  })

  test("by resending is refused, to whatever address", async () => {
    const project = await service.project()
    const { id } = (await project.post("/v1/emails", mail({ to: "ben@example.test" }))).body
    await add(project, "ann@example.test")
    const other = await project.post(`/v1/emails/${id}/resend`, { to: "ann@example.test" })
    expect(refusal(other)).toEqual([422, "suppressed_recipient"])
    await add(project, "ben@example.test")
    expect(refusal(await project.post(`/v1/emails/${id}/resend`))).toEqual([
      422,
      "suppressed_recipient",
    ])
  })

  test("in the simulator's domain says how to try again", async () => {
    const project = await service.project()
    await add(project, "bounce@mailbox.test")
    const refused = await project.post("/v1/emails", mail({ to: "bounce@mailbox.test" }))
    expect(refused.body.error.message).toContain("bounce+2@mailbox.test")
  })
})

describe("a suppressed copy", () => {
  test("is left out, and stands in the record with its reason", async () => {
    const project = await service.project()
    await add(project, "cay@example.test")
    await add(project, "dan@example.test")
    const sent = await project.post(
      "/v1/emails",
      mail({ cc: ["ben@example.test", "Cay <cay@example.test>"], bcc: "dan@example.test" }),
    )
    expect(sent.status).toBe(201)
    const handed = await delivered(project)
    expect(handed.map(({ to }) => to)).toEqual([["ann@example.test", "ben@example.test"]])
    expect(Buffer.from(handed[0]?.raw ?? "").toString()).not.toContain("cay@")
    const email = await record(project, sent.body.id)
    expect(email.status).toBe("sent")
    expect(email.cc).toEqual([{ email: "ben@example.test", name: null }])
    expect(email.bcc).toEqual([])
    expect(statuses(email)).toEqual([
      ["ann@example.test", "to", "sent", null],
      ["ben@example.test", "cc", "sent", null],
      ["cay@example.test", "cc", "failed", "suppressed_recipient"],
      ["dan@example.test", "bcc", "failed", "suppressed_recipient"],
    ])
    const told = email.timeline.filter(({ type }: { type: string }) => type === "email.failed")
    expect(told.map((one: { recipient_email: string }) => one.recipient_email)).toEqual([
      "cay@example.test",
      "dan@example.test",
    ])
  })

  test("gets the mail when it is sent again after the suppression ended", async () => {
    const project = await service.project()
    const row = await add(project, "ben@example.test")
    const { id } = (await project.post("/v1/emails", mail({ cc: "ben@example.test" }))).body
    const still = (await project.post(`/v1/emails/${id}/resend`)).body
    expect(still.data.recipients).toEqual([{ email: "ann@example.test", kind: "to" }])
    await project.call("DELETE", `/v1/suppressions/${row?.id}`)
    const again = (await project.post(`/v1/emails/${id}/resend`)).body
    expect(again.data.recipients).toEqual([
      { email: "ann@example.test", kind: "to" },
      { email: "ben@example.test", kind: "cc" },
    ])
    expect(statuses(await record(project, again.id))).toHaveLength(2)
  })
})

describe("an address that is suppressed between accept and send", () => {
  test("gets nothing: the message ends failed", async () => {
    const project = await service.project()
    const { id } = (await project.post("/v1/emails", mail({ cc: "ben@example.test" }))).body
    await add(project, "ann@example.test", { reason: "complaint" })
    expect(await delivered(project)).toEqual([])
    const email = await record(project, id)
    expect([email.status, email.status_reason]).toEqual(["failed", "suppressed_recipient"])
    expect(email.error).toMatchObject({ code: "suppressed_recipient" })
    expect(email.error.message).toContain("ann@example.test is suppressed")
    expect(statuses(email)).toEqual([
      ["ann@example.test", "to", "failed", "suppressed_recipient"],
      ["ben@example.test", "cc", "failed", "suppressed_recipient"],
    ])
    const list = (await project.get("/v1/emails?status=failed")).body
    expect(list.meta.total).toBe(1)
  })

  test("is left out where it is a copy", async () => {
    const project = await service.project()
    const copies = { cc: "ben@example.test", bcc: "cay@example.test" }
    const { id } = (await project.post("/v1/emails", mail(copies))).body
    await add(project, "ben@example.test")
    const handed = await delivered(project)
    expect(handed.map(({ to }) => to)).toEqual([["ann@example.test", "cay@example.test"]])
    const email = await record(project, id)
    expect(email.status).toBe("sent")
    expect(statuses(email)).toEqual([
      ["ann@example.test", "to", "sent", null],
      ["ben@example.test", "cc", "failed", "suppressed_recipient"],
      ["cay@example.test", "bcc", "sent", null],
    ])
  })

  test("gets its mail if the suppression expired meanwhile", async () => {
    const project = await service.project()
    await project.post("/v1/emails", mail())
    const expires_at = new Date(Date.now() - 1000).toISOString()
    await add(project, "ann@example.test", { expires_at })
    expect((await delivered(project)).map(({ to }) => to)).toEqual([["ann@example.test"]])
  })

  test("never gets mail after its suppression was answered, whichever comes first", async () => {
    const project = await service.project()
    const count = 20
    const addresses = Array.from({ length: count }, (_, at) => `${at}@race.test`)
    const sends = addresses.map((to) => project.post("/v1/emails", mail({ to })))
    const ends = addresses.map((email) => project.post("/v1/suppressions", { email }))
    await Promise.all([...sends, ...ends])
    expect(await delivered(project)).toEqual([])
    const { data } = (await project.get("/v1/emails?per_page=100")).body
    for (const email of data) expect(email.status_reason).toBe("suppressed_recipient")
  })
})

describe("a submitted mail", () => {
  const RAW = "From: bell@example.test\nTo: ann@example.test\nSubject: Ding\n\nDong\n"

  test("to a suppressed address is refused at RCPT, alone", async () => {
    const project = await service.project()
    await add(project, "ann@example.test")
    const { handlers, login, submit } = testSubmission(service)
    const session = await login(project.key)
    await handlers.onSender({ address: "a@b.test", size: undefined }, session)
    const refused = handlers.onRecipient("Ann@example.test", session)
    await expect(refused).rejects.toMatchObject({
      code: 550,
      enhanced: "5.7.1",
      message: expect.stringContaining("suppressed_recipient: ann@example.test is suppressed"),
    })
    await handlers.onRecipient("ben@example.test", session)
    expect(await submit(session, { to: "ben@example.test", raw: RAW })).toStartWith("2.0.0 Ok")
  })

  test("whose recipient is suppressed before DATA is refused, or fails beside others", async () => {
    const project = await service.project()
    const { handlers, login } = testSubmission(service)
    const session = await login(project.key)
    const received = {
      raw: new Uint8Array(Buffer.from(RAW.replaceAll("\n", "\r\n"))),
      ...{ from: "a@b.test", smtputf8: false, eight_bit: false },
      received_at: new Date().toISOString(),
    }
    await handlers.onSender({ address: "a@b.test", size: undefined }, session)
    await handlers.onRecipient("ann@example.test", session)
    await handlers.onRecipient("ben@example.test", session)
    await add(project, "ann@example.test")
    const alone = handlers.onMail({ ...received, to: ["ann@example.test"] }, session)
    await expect(alone).rejects.toMatchObject({ code: 550, enhanced: "5.7.1" })
    await handlers.onMail({ ...received, to: ["ann@example.test", "ben@example.test"] }, session)
    expect((await delivered(project)).map(({ to }) => to)).toEqual([["ben@example.test"]])
    const { data } = (await project.get("/v1/emails?status=failed")).body
    expect(data.map((one: { status_reason: string }) => one.status_reason)).toEqual([
      "suppressed_recipient",
    ])
  })
})
