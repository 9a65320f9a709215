import { describe, expect, test } from "bun:test"
import { complaints, refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const strict = { "x-batch-validation": "strict" }
const permissive = { "x-batch-validation": "permissive" }

const good = mail({ subject: "good" })
const noAddress = mail({ to: "nobody" })
const noDomain = mail({ from: "a@other.test" })
const twoFaults = mail({ to: "nobody", subject: "" })

const rowsOf = async (project: { get: typeof service.anybody.get }, query = "") =>
  (await project.get(`/v1/emails${query}`)).body.data

describe("the object form", () => {
  test("takes the good ones and tells of the others, each for itself", async () => {
    const project = await service.project()
    const messages = [good, noAddress, noDomain, good, twoFaults, null, "text", []]
    const { status, body } = await project.post("/v1/emails/batch", { messages })
    expect(status).toBe(200)
    const { results, ...counts } = body.data
    expect(counts).toEqual({ id: body.id, total: 8, succeeded: 2, failed: 6 })
    expect(Object.keys(body).sort()).toEqual(["data", "id", "meta"])

    const told = results.map(({ index, id, status, error }: Record<string, never>) => {
      const { code, details } = (error ?? {}) as { code?: string; details?: object }
      return [index, id ? status : code, details]
    })
    const message = expect.any(String)
    const fields = [
      { path: "messages.4.to", code: "invalid_email", message },
      { path: "messages.4.subject", code: "invalid", message },
    ]
    expect(told.slice(0, 5)).toEqual([
      [0, "queued", undefined],
      [1, "invalid_email", { field: "messages.1.to", reason: message }],
      [2, "domain_not_verified", { domain: "other.test", domain_id: null }],
      [3, "queued", undefined],
      [4, "validation_error", { fields }],
    ])
    expect(told.slice(5).map(([, code]: string[]) => code)).toEqual(
      Array(3).fill("validation_error"),
    )

    for (const [index, , { fields }] of told.slice(5)) {
      const message = "A message must be a JSON object." // its fields are beside the point
      expect(fields).toEqual([{ path: `messages.${index}`, code: "invalid", message }])
    }

    const rows = await rowsOf(project, `?batch_id=${body.id}`)
    const ids = [results[3].id, results[0].id]
    expect(rows.map(({ id }: { id: string }) => id)).toEqual(ids)
    expect(rows.every(({ batch_id }: { batch_id: string }) => batch_id === body.id)).toBe(true)
  })

  test("is all or nothing when it is strict", async () => {
    const project = await service.project()
    const send = (...messages: unknown[]) => project.post("/v1/emails/batch", { messages }, strict)
    const fields = await send(good, noAddress, good, twoFaults)
    expect(refusal(fields)).toEqual([422, "validation_error"])
    expect(complaints(fields)).toEqual(["messages.1.to", "messages.3.to", "messages.3.subject"])

    const domain = await send(good, noDomain)
    expect(refusal(domain)).toEqual([400, "domain_not_verified"])
    const place = { index: 1, field: "messages.1", domain: "other.test" }
    expect(domain.body.error.details).toMatchObject(place)
    expect(await rowsOf(project)).toEqual([])
  })

  test("tells of every bad item, whatever is wrong with each", async () => {
    const project = await service.project()
    const messages = [noDomain, good, noAddress, twoFaults]
    const several = await project.post("/v1/emails/batch", { messages }, strict)
    expect(refusal(several)).toEqual([422, "validation_error"])
    expect(several.body.error.details.fields).toMatchObject([
      { path: "messages.0", code: "domain_not_verified" },
      { path: "messages.2.to", code: "invalid_email" },
      { path: "messages.3.to" },
      { path: "messages.3.subject" },
    ])
    const one = await project.post("/v1/emails/batch", { messages: [good, noAddress] }, strict)
    expect(refusal(one)).toEqual([422, "invalid_email"])
    expect(one.body.error.details).toMatchObject({ field: "messages.1.to" })
  })

  test.each<[string, object, string]>([
    ["one field", { ...good, subject: "two\nlines" }, "messages.1.subject"],
    ["two fields", twoFaults, "messages.1"],
  ])("names the place of the only bad item, where %s is wrong", async (_, bad, field) => {
    const project = await service.project()
    const { body } = await project.post("/v1/emails/batch", { messages: [good, bad] }, strict)
    expect(body.error).toMatchObject({ code: "validation_error", details: { field, index: 1 } })
  })

  test("accepts all where nothing is wrong", async () => {
    const project = await service.project()
    const send = (...messages: unknown[]) => project.post("/v1/emails/batch", { messages }, strict)
    expect(await rowsOf(project)).toEqual([])
    expect((await send(good, good)).body.data.succeeded).toBe(2)
  })

  test("may fail as a whole, and still has an answer", async () => {
    const project = await service.project()
    const { status, body } = await project.post("/v1/emails/batch", { messages: [noAddress] })
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ total: 1, succeeded: 0, failed: 1 })
  })
})

describe("the bare list", () => {
  test("is strict by itself", async () => {
    const project = await service.project()
    const refused = await project.post("/v1/emails/batch", [good, noAddress])
    expect(refusal(refused)).toEqual([422, "invalid_email"])
    expect(complaints(refused)).toEqual(["messages.1.to"])
    expect(await rowsOf(project)).toEqual([])
  })

  test("answers in the form that its clients expect", async () => {
    const project = await service.project()
    const { status, body } = await project.post("/v1/emails/batch", [good, good])
    expect(status).toBe(200)
    expect(body).toEqual({
      id: expect.any(String),
      data: [
        { id: expect.any(String), status: "queued", index: 0 },
        { id: expect.any(String), status: "queued", index: 1 },
      ],
      errors: [],
      meta: { request_id: expect.any(String), total: 2, succeeded: 2, failed: 0 },
    })
    expect(await rowsOf(project, `?batch_id=${body.id}`)).toHaveLength(2)
  })

  test("is permissive when asked", async () => {
    const project = await service.project()
    const list = [noAddress, good, noDomain]
    const { status, body } = await project.post("/v1/emails/batch", list, permissive)
    expect(status).toBe(200)
    expect(body.data).toEqual([{ id: expect.any(String), status: "queued", index: 1 }])
    const message = expect.any(String)
    expect(body.errors).toEqual([
      { index: 0, code: "invalid_email", message },
      { index: 2, code: "domain_not_verified", message },
    ])
    expect(body.meta).toMatchObject({ total: 3, succeeded: 1, failed: 2 })
  })
})

describe("a batch", () => {
  test.each<[unknown, string]>([
    [{}, "missing_required_field"],
    [{ messages: null }, "validation_error"],
    [{ messages: [] }, "validation_error"],
    [{ messages: "x" }, "validation_error"],
    [{ messages: Array(101).fill(good) }, "validation_error"],
    [[], "validation_error"],
    [Array(101).fill(good), "validation_error"],
  ])("of a wrong size or form is refused", async (body, code) => {
    const project = await service.project()
    for (const headers of [strict, permissive]) {
      const refused = await project.post("/v1/emails/batch", body, headers)
      expect(refusal(refused)).toEqual([422, code])
      expect(complaints(refused)).toEqual(["messages"])
    }
  })

  test("knows two modes", async () => {
    const project = await service.project()
    const headers = { "x-batch-validation": "lenient" }
    const refused = await project.post("/v1/emails/batch", [good], headers)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(["x-batch-validation"])
  })

  test("may hold a hundred, whose order is kept", async () => {
    const project = await service.project()
    const messages = Array.from({ length: 100 }, (_, at) => mail({ subject: String(at) }))
    const { body } = await project.post("/v1/emails/batch", { messages })
    expect(body.data).toMatchObject({ total: 100, succeeded: 100, failed: 0 })
    const rows = await rowsOf(project, "?per_page=100")
    const subjects = rows.map(({ subject }: { subject: string }) => Number(subject))
    expect(subjects).toEqual(Array.from({ length: 100 }, (_, at) => 99 - at))
  })

  test("limits each message, not their sum", async () => {
    const project = await service.project()
    const large = mail({ text: "x".repeat(10_485_760) })
    const larger = mail({ text: "x".repeat(10_485_761) })
    const { body } = await project.post("/v1/emails/batch", { messages: [large, larger, large] })
    expect(body.data).toMatchObject({ succeeded: 2, failed: 1 })
    expect(body.data.results[1].error).toMatchObject({
      code: "payload_too_large",
      details: { limit_bytes: 10_485_760, received_bytes: 10_485_761 },
    })
  })
})
