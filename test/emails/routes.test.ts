import { describe, expect, test } from "bun:test"
import { complaints, refusal } from "../harness/client"
import { bounced, deliverAll } from "../harness/delivery"
import { mail, NOBODY } from "../harness/mail"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe("a send", () => {
  test("is answered 201 once it is stored", async () => {
    const project = await service.project()
    const sent = await project.post("/v1/emails", mail({ to: "Ann <Ann@Example.test>" }))
    expect(sent.status).toBe(201)
    const { id } = sent.body
    expect(sent.body).toEqual({
      id: expect.stringMatching(UUID),
      data: {
        id,
        status: "queued",
        rfc_message_id: `<${id}@example.test>`,
        to: { email: "Ann@Example.test", name: "Ann" },
        scheduled_at: null,
        created_at: expect.stringMatching(TIME),
      },
      meta: { request_id: expect.any(String) },
    })
    expect((await project.get(`/v1/emails/${id}`)).body.data.status).toBe("queued")
  })

  test("is refused by fields, then sender, then domain, then size", async () => {
    const project = await service.project()
    const huge = "x".repeat(10_485_761)
    const cases: [Record<string, unknown>, number, string][] = [
      [{ to: "no", from: undefined, text: huge }, 422, "invalid_email"],
      [{ from: undefined, text: huge }, 400, "sender_not_configured"],
      [{ from: "a@other.test", text: huge }, 400, "domain_not_verified"],
      [{ text: huge }, 413, "payload_too_large"],
    ]
    for (const [fields, status, code] of cases) {
      expect(refusal(await project.post("/v1/emails", mail(fields)))).toEqual([status, code])
    }
    expect((await project.get("/v1/emails")).body.meta.total).toBe(0)
  })

  test("names the domain that is not verified", async () => {
    const project = await service.project()
    for (const domain of ["other.test", "sub.example.test", "example.test.evil.test"]) {
      const refused = await project.post("/v1/emails", mail({ from: `a@${domain}` }))
      expect(refusal(refused)).toEqual([400, "domain_not_verified"])
      expect(refused.body.error.details).toEqual({ domain, domain_id: null })
    }
    for (const from of ["a@EXAMPLE.test", "a@mailbox.test"]) {
      expect((await project.post("/v1/emails", mail({ from }))).status).toBe(201)
    }
  })

  test("tells the bytes of a message that is too large, attachments included", async () => {
    const project = await service.project()
    const content = Buffer.alloc(10_485_760 - 4, 1).toString("base64")
    const files = [{ filename: "a.bin", content, content_type: "application/octet-stream" }]
    const most = await project.post("/v1/emails", mail({ text: "Dong", attachments: files }))
    expect(most.status).toBe(201)
    const over = await project.post("/v1/emails", mail({ text: "Dong!", attachments: files }))
    expect(refusal(over)).toEqual([413, "payload_too_large"])
    const details = { limit_bytes: 10_485_760, received_bytes: 10_485_761 }
    expect(over.body.error.details).toEqual(details)
  })

  test("counts bytes, not characters", async () => {
    const project = await service.project()
    const html = "ü".repeat(5_242_881)
    const refused = await project.post("/v1/emails", mail({ html }))
    expect(refused.body.error.details.received_bytes).toBe(10_485_762 + 4)
  })

  test("complains about a path in dot form", async () => {
    const project = await service.project()
    const bad = mail({ to: { email: "no" }, cc: ["a@b.test", { name: "x" }], tags: ["\n"] })
    const refused = await project.post("/v1/emails", bad)
    expect(complaints(refused)).toEqual(["to.email", "cc.1.email", "tags.0"])
  })
})

describe("without a provider for everybody", () => {
  test("only the mailbox' own domain is taken", async () => {
    await using serve = await testService({ rules: { mailbox_takes_all: false } })
    const project = await serve.project()
    const outside = [
      mail(),
      mail({ to: "a@mailbox.test", cc: "b@example.test" }),
      mail({ to: "a@mailbox.test", bcc: "b@example.test" }),
    ]
    for (const one of outside) {
      const refused = await project.post("/v1/emails", one)
      expect(refusal(refused)).toEqual([503, "service_unavailable"])
      expect(refused.body.error.details.reason).toBe("no_provider")
    }
    const inside = await project.post("/v1/emails", mail({ to: "a@mailbox.test" }))
    expect(inside.status).toBe(201)
    const again = await project.post(`/v1/emails/${inside.body.id}/resend`, {
      to: "b@example.test",
    })
    expect(refusal(again)).toEqual([503, "service_unavailable"])
  })

  test("a relay has no domain for tries", async () => {
    await using relay = await testService({
      rules: { to_mailbox: false, mailbox_takes_all: false },
    })
    const project = await relay.project()
    const refused = await project.post("/v1/emails", mail({ from: "a@mailbox.test" }))
    expect(refusal(refused)).toEqual([400, "domain_not_verified"])
    expect((await project.post("/v1/emails", mail())).status).toBe(201)
  })
})

describe("cancel", () => {
  test("ends an email that waits, once", async () => {
    await using own = await testService()
    const project = await own.project()
    const { id } = (await project.post("/v1/emails", mail())).body
    const cancelled = await project.post(`/v1/emails/${id}/cancel`)
    expect(cancelled.status).toBe(200)
    expect(cancelled.body.data).toMatchObject({
      id,
      status: "failed",
      status_reason: "cancelled",
      last_event: { type: "email.failed" },
    })
    const again = await project.post(`/v1/emails/${id}/cancel`)
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toEqual({ reason: "not_queued", id })
    expect(await deliverAll(own)).toEqual([])

    const { events } = (await project.get(`/v1/emails/${id}/events`)).body.data
    const types = events.map(({ type }: { type: string }) => type)
    expect(types).toEqual(["email.queued", "email.failed"])
  })

  test("comes too late for one that was sent", async () => {
    await using own = await testService()
    const project = await own.project()
    const { id } = (await project.post("/v1/emails", mail())).body
    await deliverAll(own)
    expect(refusal(await project.post(`/v1/emails/${id}/cancel`))).toEqual([409, "conflict"])
    expect((await project.get(`/v1/emails/${id}`)).body.data.status).toBe("delivered")
  })
})

describe("resend", () => {
  test("sends the same content under a new id, to everybody again or to one alone", async () => {
    await using own = await testService()
    const project = await own.project()
    const file = { filename: "a.txt", content: "YWJj", content_type: "text/plain" }
    const original = mail({
      to: "Ann <ann@example.test>",
      cc: "Copy <copy@example.test>",
      bcc: "hidden@example.test",
      html: "<p>Dong</p>",
      headers: { "X-Kind": "bell" },
      tags: ["t"],
      metadata: { a: 1 },
      reply_to: "desk@example.test",
      attachments: [file],
    })
    const { id } = (await project.post("/v1/emails", original)).body
    await deliverAll(own, bounced)

    const same = await project.post(`/v1/emails/${id}/resend`)
    const other = await project.post(`/v1/emails/${id}/resend`, { to: "Bob <bob@example.test>" })
    expect([same.status, other.status]).toEqual([201, 201])
    expect(new Set([id, same.body.id, other.body.id]).size).toBe(3)
    expect(same.body.data.to).toEqual({ email: "ann@example.test", name: "Ann" })
    expect(other.body.data.to).toEqual({ email: "bob@example.test", name: "Bob" })

    expect(same.body.data.recipients).toEqual([
      { email: "ann@example.test", kind: "to" },
      { email: "copy@example.test", kind: "cc" },
      { email: "hidden@example.test", kind: "bcc" },
    ])
    expect(other.body.data.recipients).toEqual([{ email: "bob@example.test", kind: "to" }])

    const everybody = (await project.get(`/v1/emails/${same.body.id}`)).body.data
    const waiting = { status: "queued", status_reason: null }
    expect(everybody.recipients).toEqual(
      same.body.data.recipients.map((one: object) => ({ ...one, ...waiting })),
    )
    expect(everybody.cc).toEqual([{ email: "copy@example.test", name: "Copy" }])
    const before = (await project.get(`/v1/emails/${id}`)).body.data
    const after = (await project.get(`/v1/emails/${other.body.id}`)).body.data
    const kept = [
      "subject",
      "html",
      "text",
      "headers",
      "tags",
      "metadata",
      "reply_to",
      "attachments",
    ]
    for (const name of kept) expect([name, after[name]]).toEqual([name, before[name]])
    expect(after).toMatchObject({
      status: "queued",
      status_reason: null,
      rfc_message_id: `<${other.body.id}@example.test>`,
      attempts: 0,
      error: null,
      bounced_at: null,
      cc: [],
    })
    const handed = await deliverAll(own)
    expect(handed.map(({ to }) => to).sort()).toEqual([
      ["ann@example.test", "copy@example.test", "hidden@example.test"],
      ["bob@example.test"],
    ])
  })

  test("repeated with the same key is answered as before", async () => {
    const project = await service.project()
    const cc = "copy@example.test"
    const { id } = (await project.post("/v1/emails", mail({ cc }))).body
    const ask = () => project.post(`/v1/emails/${id}/resend`, {}, { "idempotency-key": "again" })
    const [first, second] = [await ask(), await ask()]
    expect(second.headers.get("idempotent-replayed")).toBe("true")
    expect(second.body.data).toEqual(first.body.data)
    expect(second.body.data.recipients).toHaveLength(2)
  })

  test.each([["no"], [5], [{}], [{ email: "no" }], [[]], [["a@b.test", "c@d.test"]]])(
    "is refused to %j",
    async (to) => {
      const project = await service.project()
      const { id } = (await project.post("/v1/emails", mail())).body
      const refused = await project.post(`/v1/emails/${id}/resend`, { to })
      expect([refused.status, complaints(refused)[0]?.split(".")[0]]).toEqual([422, "to"])
    },
  )

  test.each(["null", "[]", "5", '"a@b.test"'])("is refused with a body of %s", async (body) => {
    const project = await service.project()
    const { id } = (await project.post("/v1/emails", mail())).body
    expect((await project.post(`/v1/emails/${id}/resend`, body)).status).toBe(422)
  })

  test("of nothing is 404, but a bad body is told first", async () => {
    const project = await service.project()
    expect(refusal(await project.post(`/v1/emails/${NOBODY}/resend`))).toEqual([404, "not_found"])
    const bad = await project.post(`/v1/emails/${NOBODY}/resend`, { to: "no" })
    expect(refusal(bad)).toEqual([422, "invalid_email"])
  })
})
