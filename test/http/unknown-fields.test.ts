import { describe, expect, test } from "bun:test"
import type { Reply } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

const warned = ({ body }: Reply) =>
  (body.meta.warnings ?? []).map(({ code, field, message }: Record<string, string>) => {
    expect(code).toBe("unknown_field")
    return `${field}: ${/Did you mean (\w+)\?$/.exec(message ?? "")?.[1]}`
  })

describe("a field that is almost a known one is told, and ignored", () => {
  test.each<[object, string[]]>([
    [{ replyTo: "a@b.test" }, ["replyTo: reply_to"]],
    [{ "reply-to": "a@b.test" }, ["reply-to: reply_to"]],
    [{ Html: "x" }, ["Html: html"]],
    [{ subjct: "x" }, ["subjct: subject"]],
    [{ form: "x" }, ["form: from"]],
    [{ tag: ["x"] }, ["tag: tags"]],
    [
      { scheduledAt: "x", templateID: "y" },
      ["scheduledAt: scheduled_at", "templateID: template_id"],
    ],
    [
      { attachments: [{ filename: "a.txt", content: "YWJj", contentType: "text/html" }] },
      ["attachments.0.contentType: content_type"],
    ],
    [{ to: { email: "a@b.test", nmae: "x" } }, ["to.nmae: name"]],
    [{ mood: "good", id: "x", note: "x" }, []],
    [{ metadata: { sbject: 1 }, variables: { subjct: 2 }, headers: { "X-Subjct": "x" } }, []],
  ])("%j", async (fields, expected) => {
    const project = await service.project()
    const sent = await project.post("/v1/emails", mail(fields as Record<string, unknown>))
    expect([sent.status, warned(sent)]).toEqual([201, expected])
    if (expected.length > 0) {
      const strict = await project.post("/v1/emails", { ...mail(), ...fields }, { "x-strict": "1" })
      expect(strict.status).toBe(422)
    } else expect(sent.body.meta.warnings).toBeUndefined()
  })

  test("in a batch, a query, a change and a refusal", async () => {
    const project = await service.project()
    const messages = [mail(), mail({ subjct: "x" })]
    expect(warned(await project.post("/v1/emails/batch", { messages }))).toEqual([
      "messages.1.subjct: subject",
    ])
    expect(warned(await project.post("/v1/emails/batch", messages))).toEqual(["1.subjct: subject"])
    expect(warned(await project.get("/v1/emails?perpage=5"))).toEqual(["perpage: per_page"])
    const refused = await project.post("/v1/emails", mail({ subject: undefined, subjct: "Ding" }))
    expect([refused.status, warned(refused)]).toEqual([422, ["subjct: subject"]])
    const made = await project.post("/v1/subscribers", { external_id: "a", metdata: {} })
    expect(warned(made)).toEqual(["metdata: metadata"])
    const path = `/v1/subscribers/${made.body.data.id}`
    const changed = await project.call("PATCH", path, { body: { naem: "Ann" } })
    expect([changed.status, warned(changed)]).toEqual([422, ["naem: name"]])
  })

  test("again with a stored answer, and never more than a few", async () => {
    const project = await service.project()
    const headers = { "idempotency-key": "once" }
    const send = () => project.post("/v1/emails", mail({ subjct: "x" }), headers)
    expect(warned(await send())).toEqual(warned(await send()))
    const many = Object.fromEntries(
      Array.from({ length: 2000 }, (_, at) => [`html${at % 10}${"_".repeat(at)}`, 1]),
    )
    const { length } = warned(await project.post("/v1/emails", mail(many)))
    expect(length).toBeGreaterThan(0)
    expect(length).toBeLessThanOrEqual(100)
  })
})
