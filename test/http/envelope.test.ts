import { describe, expect, test } from "bun:test"
import { now } from "../../src/core/time"
import { setState, stateForUpdate } from "../../src/operations/backup/backup-state"
import { refusal } from "../harness/client"
import { mail, NOBODY } from "../harness/mail"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

const REQUEST_ID = /^req_[0-9a-f]{32}$/

describe("the request id", () => {
  test("is made, and stands in body and header of every answer", async () => {
    const project = await service.project()
    const { id } = (await project.post("/v1/emails", mail())).body
    const seen = new Set<string>()
    for (const answer of [
      await project.get("/v1/emails"),
      await project.get(`/v1/emails/${id}`),
      await project.get("/v1/emails/none"),
      await project.post("/v1/emails", "{"),
      await service.anybody.get("/v1/emails"),
      await service.anybody.get("/nowhere"),
    ]) {
      const own = answer.body.meta.request_id
      expect(own).toMatch(REQUEST_ID)
      expect(answer.headers.get("x-request-id")).toBe(own)
      seen.add(own)
    }
    expect(seen.size).toBe(6)
    expect((await service.anybody.get("/docs")).headers.get("x-request-id")).toMatch(REQUEST_ID)
  })

  test.each(["abcd1234", "A-Z_09-az", "x".repeat(64)])("is taken over: %s", async (own) => {
    for (const path of ["/v1/emails", "/v1/health", "/nowhere"]) {
      const { headers, body } = await service.anybody.get(path, { "x-request-id": own })
      expect([headers.get("x-request-id"), body.meta.request_id]).toEqual([own, own])
    }
  })

  test.each(["short", "x".repeat(65), "with space", "semi;colon", "dots.dots", "<script>"])(
    "is not taken over: %s",
    async (own) => {
      const { headers } = await service.anybody.get("/v1/health", { "x-request-id": own })
      expect(headers.get("x-request-id")).toMatch(REQUEST_ID)
    },
  )
})

describe("the form of an answer", () => {
  test("is data and meta", async () => {
    const project = await service.project()
    const { body, headers } = await project.get(`/v1/api-keys/${project.key_id}`)
    expect(Object.keys(body).sort()).toEqual(["data", "meta"])
    expect(body.meta).toEqual({ request_id: headers.get("x-request-id") })
    expect(headers.get("content-type")).toStartWith("application/json")
  })

  test("is error and meta, with an object of details", async () => {
    const project = await service.project()
    const { body } = await project.get(`/v1/emails/${NOBODY}`)
    expect(Object.keys(body).sort()).toEqual(["error", "message", "meta", "name", "statusCode"])
    expect(body.error).toEqual({ code: "not_found", message: expect.any(String), details: {} })
    expect(Object.keys(body.meta)).toEqual(["request_id", "docs"])
  })

  test.each([
    ["/v1/emails/none", 404],
    ["/v1/domains/none", 404],
    ["/v1/api-keys/none", 404],
    ["/v1/webhooks/none?a=b", 404],
    ["/v1/templates/none", 404],
    ["/v1/topics/none", 404],
    ["/v1/emails?page=0", 422],
  ])("is told at the top too, for clients that look there: %s", async (path, status) => {
    const { body, ...answer } = await (await service.project()).get(path)
    expect(answer.status).toBe(status)
    const { code: name, message } = body.error
    expect(body).toMatchObject({ name, message, statusCode: status })
  })

  test.each(["/v1/projects/none", "/v1/emailsx", "/nowhere"])(
    "is told in one place elsewhere: %s",
    async (path) => {
      const { body } = await (await service.project()).get(path)
      expect(Object.keys(body).sort()).toEqual(["error", "meta"])
    },
  )

  test("of one missing field has a code of its own, of more a list", async () => {
    const project = await service.project()
    const one = await project.post("/v1/emails", mail({ subject: undefined }))
    expect(refusal(one)).toEqual([422, "missing_required_field"])
    expect(one.body.error.details).toEqual({ field: "subject", reason: expect.any(String) })

    const two = await project.post("/v1/emails", mail({ subject: undefined, to: "nobody" }))
    expect(refusal(two)).toEqual([422, "validation_error"])
    const details = [
      { path: "to", code: "invalid_email", message: expect.any(String) },
      { path: "subject", code: "required", message: expect.any(String) },
    ]
    expect(two.body.error.details).toEqual({ fields: details })
  })
})

describe("an unknown field", () => {
  const strict = { "x-strict": "1" }

  test("is ignored, unless strictness is asked for", async () => {
    const project = await service.project()
    const wide = mail({ to: { email: "ann@example.test", age: 7 }, colour: "red" })
    expect((await project.post("/v1/emails", wide)).status).toBe(201)
    expect((await project.post("/v1/emails", wide, { "x-strict": "0" })).status).toBe(201)

    const refused = await project.post("/v1/emails", wide, strict)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    const { fields } = refused.body.error.details
    expect(fields.map(({ path, code }: Record<string, string>) => [path, code]).sort()).toEqual([
      ["colour", "unknown_field"],
      ["to.age", "unknown_field"],
    ])
    expect((await project.post("/v1/emails", mail(), strict)).status).toBe(201)
  })

  test("is found where a route knows no field at all", async () => {
    const project = await service.project()
    const { id } = (await project.post("/v1/emails", mail())).body
    const one = `/v1/emails/${id}`
    expect((await project.get(`${one}?colour=red`)).status).toBe(200)
    for (const refused of [
      await project.get(`${one}?colour=red`, strict),
      await project.post(`${one}/events`, { colour: "red" }, strict),
      await project.post(`${one}/cancel`, { colour: "red" }, strict),
    ]) {
      expect(refusal(refused)).toEqual([422, "validation_error"])
    }
    expect((await project.post(`${one}/cancel`, undefined, strict)).status).toBe(200)
  })

  test("is found in lists, in batches and in the query", async () => {
    const project = await service.project()
    const file = { filename: "a.txt", content: "YQ==", size: 1 }
    const pathOf = async (path: string, body: unknown) => {
      const refused = await project.post(path, body, strict)
      expect(refused.status).toBe(422)
      return refused.body.error.details.fields[0].path
    }
    expect(await pathOf("/v1/emails", mail({ attachments: [file] }))).toBe("attachments.0.size")
    const [good, bad] = [mail(), mail({ colour: "red" })]
    expect(await pathOf("/v1/emails/batch", [good, bad])).toBe("1.colour")
    expect(await pathOf("/v1/emails/batch", { messages: [bad] })).toBe("messages.0.colour")

    const query = await project.get("/v1/emails?pages=2", strict)
    expect(query.body.error.details.fields).toMatchObject([
      { path: "pages", code: "unknown_field" },
    ])
    expect((await project.get("/v1/emails?pages=2")).status).toBe(200)
  })

  test("inside of free objects is nobody's business", async () => {
    const project = await service.project()
    const free = mail({ metadata: { any: { thing: 1 } }, headers: { "X-Any": "thing" } })
    expect((await project.post("/v1/emails", free, strict)).status).toBe(201)
  })
})

describe("a server that is unwell", () => {
  test("refuses to write without storage, and still reads", async () => {
    await using unwell = await testService()
    const project = await unwell.project()
    const { id } = (await project.post("/v1/emails", mail())).body
    unwell.disk.healthy = false
    for (const refused of [
      await project.post("/v1/emails", mail()),
      await project.post("/v1/emails/batch", [mail()]),
      await project.post(`/v1/emails/${id}/cancel`),
      await project.post("/v1/api-keys", {}),
      await project.call("DELETE", "/v1/mailbox"),
    ]) {
      expect(refusal(refused)).toEqual([503, "service_unavailable"])
      const { retry_after } = refused.body.error.details
      expect(refused.headers.get("retry-after")).toBe(String(retry_after))
    }
    expect((await project.get("/v1/emails")).status).toBe(200)
    expect((await project.post(`/v1/emails/${id}/events`)).status).toBe(200)
    expect((await unwell.anybody.get("/healthz")).status).toBe(200)
    const ready = await unwell.anybody.get("/readyz")
    expect([ready.status, ready.body.checks.database]).toEqual([503, "not writable"])
    expect((await unwell.anybody.post("/v1/emails", mail())).status).toBe(401)

    unwell.disk.healthy = true
    expect((await project.post("/v1/emails", mail())).status).toBe(201)
    expect((await unwell.anybody.get("/readyz")).body.status).toBe("ok")
  })

  test("sends nothing on a disk that is almost full, but takes what frees it", async () => {
    await using unwell = await testService()
    const project = await unwell.project()
    const { id } = (await project.post("/v1/emails", mail())).body
    unwell.disk.low = true
    expect(refusal(await project.post("/v1/emails", mail()))).toEqual([503, "service_unavailable"])
    const key = { name: "k", scopes: ["email:read"] }
    expect((await project.post("/v1/api-keys", key)).status).toBe(201)
    expect((await project.call("DELETE", "/v1/mailbox")).status).toBe(200)
    expect((await project.post(`/v1/emails/${id}/cancel`)).status).toBe(200)
    for (const path of ["/v1/emails/batch", `/v1/emails/${id}/resend`]) {
      expect((await project.post(path, { messages: [mail()] })).status).toBe(503)
    }
    expect((await project.get("/v1/emails")).status).toBe(200)
    expect((await unwell.anybody.get("/readyz")).status).toBe(503)
  })

  test("works on where its backups fail, and is degraded", async () => {
    await using unwell = await testService()
    const { store } = unwell
    await store.tx(async (tx) =>
      setState(tx, { ...(await stateForUpdate(tx)), failing_since: now() }),
    )
    const ready = await unwell.anybody.get("/readyz")
    expect([ready.status, ready.body.status]).toEqual([200, "degraded"])
    expect(ready.body.warnings).toEqual([expect.stringContaining("Backups fail since 20")])
    expect((await unwell.anybody.get("/v1/health")).body.data.status).toBe("degraded")
    const project = await unwell.project()
    expect((await project.post("/v1/emails", mail())).status).toBe(201)
  })

  test("takes nothing more while it stops", async () => {
    await using unwell = await testService()
    const project = await unwell.project()
    unwell.health.drain()
    expect(refusal(await project.post("/v1/emails", mail()))).toEqual([503, "service_unavailable"])
    expect((await unwell.anybody.get("/healthz")).status).toBe(200)
    const ready = await unwell.anybody.get("/readyz")
    expect([ready.status, ready.body.status]).toEqual([503, "draining"])
  })
})

test("a request that takes too long is 504", async () => {
  await using slow = await testService({ time_limit_ms: 50 })
  const project = await slow.project()
  const refused = await project.get("/v1/events?wait=25")
  expect(refusal(refused)).toEqual([504, "timeout"])
  expect(refused.headers.get("x-request-id")).toBe(refused.body.meta.request_id)
})

test("what breaks inside tells nothing about it", async () => {
  await using broken = await testService()
  const project = await broken.project()
  const boom = new Error("secret canary at /srv/belfry.db: SELECT * FROM api_keys")
  broken.parts.intake.submit = () => Promise.reject(boom)
  const refused = await project.post("/v1/emails", mail())
  expect(refusal(refused)).toEqual([500, "internal_error"])
  expect(refused.text).not.toMatch(/canary|SELECT|\.db|\bat\b.*\.ts/)

  broken.parts.intake.submit = () =>
    Promise.reject(Object.assign(new Error("disk is full"), { code: "SQLITE_FULL" }))
  expect(refusal(await project.post("/v1/emails", mail()))).toEqual([503, "service_unavailable"])
})

test("health tells status, version and time", async () => {
  const { body } = await service.anybody.get("/v1/health")
  expect(body.data).toEqual({
    status: "ok",
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  })
  const alive = await service.anybody.get("/healthz")
  expect(alive.body).toEqual({
    status: "ok",
    version: body.data.version,
    uptime_seconds: expect.any(Number),
  })
  const ready = await service.anybody.get("/readyz")
  const checks = { database: "ok", jobs: "ok", disk: "ok", smtp: "ok" }
  expect([ready.status, ready.body]).toEqual([200, { status: "ok", checks }])
})
