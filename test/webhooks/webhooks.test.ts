import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { isSecret } from "../../src/lib/signature"
import { webhooks } from "../../src/webhooks/tables"
import { complaints, refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { endpoint, hook, NOWHERE } from "./endpoints"

const service = await sharedService()
const { store } = service

describe("a new endpoint", () => {
  test("has the defaults of the contract, and shows its secret this once", async () => {
    const project = await service.project()
    const { status, body } = await project.post("/v1/webhooks", hook())
    expect(status).toBe(201)
    const { secret, warnings, ...shown } = body.data
    expect(isSecret(secret)).toBe(true)
    expect(warnings).toEqual([])
    expect(shown).toMatchObject({
      project_id: project.project_id,
      url: NOWHERE,
      events: ["*"],
      description: null,
      headers: {},
      header_format: "standard",
      retry_policy: { max_attempts: 6, intervals: [60, 300, 1800, 7200, 43_200, 86_400] },
      rate_limit: null,
      filter: null,
      transform: null,
      metadata: {},
      version: "2026-02-01",
      status: "active",
      enabled: true,
      consecutive_failures: 0,
      disabled_reason: null,
      held_count: 0,
    })
    const read = await project.get(`/v1/webhooks/${shown.id}`)
    expect(read.body.data).toEqual(shown)
    expect(read.text + (await project.get("/v1/webhooks")).text).not.toContain(secret)
    expect(shown.secret_hint).toBe(`whsec_…${secret.replace(/=+$/, "").slice(-4)}`)
  })

  test("keeps everything that it is given", async () => {
    const project = await service.project()
    const fields = {
      events: ["email.*", "webhook.disabled"],
      description: "Orders",
      headers: { Authorization: "Bearer x", "X-Shop": "7" },
      header_format: "both",
      retry_policy: { max_attempts: 3, intervals: [1, 2] },
      rate_limit: 5,
      filter: { field: "data.recipient_email", op: "contains", value: "@example.com" },
      transform: '{"id": "{{id}}"}',
      metadata: { team: "shop", deep: { a: [1] } },
      version: "2026-02-01",
    }
    const made = await endpoint(project, fields)
    const read = { ...fields, headers: { Authorization: "****", "X-Shop": "****" } }
    expect(made).toMatchObject(read)
    expect((await project.get(`/v1/webhooks/${made.id}`)).body.data).toMatchObject(read)
  })

  test("fills what a retry policy leaves out, and takes a pattern once", async () => {
    const project = await service.project()
    const made = await endpoint(project, {
      events: ["email.*", "email.*", "sms.sent"],
      retry_policy: { max_attempts: 2 },
    })
    expect(made.events).toEqual(["email.*", "sms.sent"])
    expect(made.retry_policy).toEqual({
      max_attempts: 2,
      intervals: [60, 300, 1800, 7200, 43_200, 86_400],
    })
  })

  test("takes a secret of one's own; the database holds it sealed", async () => {
    const project = await service.project()
    const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`
    const made = await endpoint(project, { secret })
    expect(made.secret).toBe(secret)
    const [row] = await store.read.select().from(webhooks).where(eq(webhooks.id, made.id))
    expect(JSON.stringify(row)).not.toContain(secret.slice(6, 20))
  })

  test("is made once for an idempotency key, and the repetition shows the secret again", async () => {
    const project = await service.project()
    const key = { "idempotency-key": "one" }
    const [first, second] = [
      await project.post("/v1/webhooks", hook(), key),
      await project.post("/v1/webhooks", hook(), key),
    ]
    expect(second.body.data).toEqual(first.body.data)
    expect(second.headers.get("idempotent-replayed")).toBe("true")
    expect((await project.get("/v1/webhooks")).body.meta.total).toBe(1)
    const other = await project.post("/v1/webhooks", hook({ events: ["email.*"] }), key)
    expect(refusal(other)).toEqual([422, "validation_error"])
  })
})

describe("changes", () => {
  test.each(["PATCH", "PUT"])("%s changes what is named and leaves the rest", async (method) => {
    const project = await service.project()
    const { secret: _, ...made } = await endpoint(project, { description: "a", rate_limit: 5 })
    const changes = { events: ["sms.*"], rate_limit: null, headers: { "X-A": "b" } }
    const { status, body } = await project.call(method, `/v1/webhooks/${made.id}`, {
      body: changes,
    })
    expect(status).toBe(200)
    const { updated_at } = body.data
    expect(body.data).toEqual({ ...made, ...changes, headers: { "X-A": "****" }, updated_at })
    const path = `/v1/webhooks/${made.id}`
    const same = await project.call(method, path, { body: { status: "active" } })
    expect(same.body.data).toEqual(body.data)
  })

  test("the secret is not among them", async () => {
    const project = await service.project()
    const { id, secret } = await endpoint(project)
    const refused = await project.call("PATCH", `/v1/webhooks/${id}`, { body: { secret } })
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(["secret"])
  })

  test("a deletion is told once; then there is nothing", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    const { body } = await project.call("DELETE", `/v1/webhooks/${id}`)
    expect(body.data).toEqual({ id, deleted: true })
    const again = await project.call("DELETE", `/v1/webhooks/${id}`)
    expect(refusal(again)).toEqual([404, "webhook_not_found"])
    expect((await project.get("/v1/webhooks")).body).toMatchObject({ data: [], meta: { total: 0 } })
  })

  test("each change is in the audit log, without secrets or values of headers", async () => {
    const project = await service.project()
    const { id, secret } = await endpoint(project, { headers: { "X-Token": "opensesame" } })
    await project.call("PATCH", `/v1/webhooks/${id}`, { body: { description: "b" } })
    for (const verb of ["rotate-secret", "pause", "enable", "disable"]) {
      await project.post(`/v1/webhooks/${id}/${verb}`)
    }
    await project.call("DELETE", `/v1/webhooks/${id}`)
    const entries = store.read.select().from(auditLog).where(eq(auditLog.target_id, id))
    const rows = await entries.orderBy(auditLog.id)
    expect(rows.map(({ action }) => action)).toEqual([
      "webhook.created",
      "webhook.updated",
      "webhook.secret_rotated",
      "webhook.paused",
      "webhook.enabled",
      "webhook.disabled",
      "webhook.deleted",
    ])
    const text = JSON.stringify(rows)
    expect(text).toContain("X-Token")
    expect(text).not.toContain("opensesame")
    expect(text).not.toContain(secret.slice(6, 30))
  })
})

test("the list is paged, newest first, and filtered by status", async () => {
  const project = await service.project()
  const ids: string[] = []
  for (let number = 0; number < 3; number++) ids.unshift((await endpoint(project)).id)
  await project.post(`/v1/webhooks/${ids[1]}/pause`)
  const all = await project.get("/v1/webhooks?per_page=2")
  expect(all.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2))
  expect(all.body.meta).toMatchObject({ total: 3, total_pages: 2, has_more: true })
  const rest = await project.get(`/v1/webhooks?per_page=2&cursor=${all.body.meta.next_cursor}`)
  expect(rest.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2))
  const disabled = await project.get("/v1/webhooks?status=disabled")
  expect(disabled.body.data.map(({ id }: { id: string }) => id)).toEqual([ids[1]])
  expect(disabled.body.meta.total).toBe(1)
  expect(refusal(await project.get("/v1/webhooks?status=odd"))).toEqual([422, "validation_error"])
})

test.each([
  ["GET", ""],
  ["PATCH", ""],
  ["PUT", ""],
  ["DELETE", ""],
  ["POST", "/rotate-secret"],
  ["POST", "/enable"],
  ["POST", "/disable"],
  ["POST", "/pause"],
  ["POST", "/test"],
  ["GET", "/deliveries"],
  ["GET", "/stats"],
  ["POST", "/deliveries/bulk-retry"],
  ["POST", "/replay"],
])("%s …%s of another project is as absent as one that never was", async (method, rest) => {
  const [owner, stranger] = [await service.project(), await service.project()]
  const { id } = await endpoint(owner)
  const change = { since: "2026-01-01T00:00:00Z", enabled: true }
  const body = method === "GET" ? {} : { body: change }
  const answers = [id, NOBODY, "no-uuid"].map((one) =>
    stranger.call(method, `/v1/webhooks/${one}${rest}`, body),
  )
  const [foreign, absent, odd] = await Promise.all(answers)
  expect(refusal(foreign!)).toEqual([404, "webhook_not_found"])
  expect(foreign?.body.error).toEqual(absent?.body.error)
  expect(foreign?.body.error).toEqual(odd?.body.error)
})

describe("a rotation", () => {
  test("gives a new secret, and lets the one before count for 24 hours", async () => {
    const project = await service.project()
    const made = await endpoint(project)
    const { status, body } = await project.post(`/v1/webhooks/${made.id}/rotate-secret`)
    expect(status).toBe(200)
    expect(isSecret(body.data.secret)).toBe(true)
    expect(body.data.secret).not.toBe(made.secret)
    const left = Date.parse(body.data.previous_secret_expires_at) - Date.now()
    expect(Math.round(left / 60_000)).toBe(24 * 60)
    const { secret_hint } = (await project.get(`/v1/webhooks/${made.id}`)).body.data
    expect(secret_hint.slice(-4)).toBe(body.data.secret.replace(/=+$/, "").slice(-4))
  })

  test("ends the one before at once when asked to", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    const asked = { expire_previous_now: true }
    const { body } = await project.post(`/v1/webhooks/${id}/rotate-secret`, asked)
    expect(body.data.previous_secret_expires_at).toBeNull()
    const [row] = await store.read.select().from(webhooks).where(eq(webhooks.id, id))
    expect(row?.previous_secret).toBeNull()
  })
})

test("fields of a retry policy that nobody knows are ignored, and not stored", async () => {
  const project = await service.project()
  const retry_policy = { max_attempts: 3, "<script>": "x", intervals: [1, 2] }
  const made = await endpoint(project, { retry_policy })
  expect(made.retry_policy).toEqual({ max_attempts: 3, intervals: [1, 2] })
})
