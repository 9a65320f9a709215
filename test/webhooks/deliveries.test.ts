import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { isoFrom, millis } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { LEASED } from "../../src/jobs/work-item"
import { deliveryRows } from "../../src/webhooks/delivery-rows"
import { deliveries } from "../../src/webhooks/tables"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { deliveriesOf, endpoint, happens, settleAs } from "./endpoints"

const service = await sharedService()
const clock = movableClock()
const { store } = service

const idsOf = (list: { id: string }[]) => list.map(({ id }) => id)

describe("the list", () => {
  async function three(project: TestProject) {
    const { id } = await endpoint(project)
    const first = await happens(project, "email.sent")
    clock.advance({ seconds: 30 })
    const since = isoFrom(millis() - 1000)
    await happens(project, "email.bounced")
    await happens(project, "sms.sent")
    return { id, first, since }
  }

  test("is newest first, and knows what to filter by", async () => {
    const project = await service.project()
    const { id, first, since } = await three(project)
    const types = async (query: string) =>
      (await deliveriesOf(project, id, query)).map(
        ({ event_type }: { event_type: string }) => event_type,
      )
    expect(await types("")).toEqual(["sms.sent", "email.bounced", "email.sent"])
    expect(await types(`?since=${since}`)).toEqual(["sms.sent", "email.bounced"])
    expect(await types("?event_type=email.bounced")).toEqual(["email.bounced"])
    expect(await types(`?event_id=${first.id}`)).toEqual(["email.sent"])
    expect(await types("?status=success")).toEqual([])
    expect(await types("?status=pending&event_type=sms.sent")).toEqual(["sms.sent"])
  })

  test("is not filtered by a type that is none: an empty list would hide the mistake", async () => {
    const project = await service.project()
    const { id } = await three(project)
    for (const type of ["email.bounce", "email.*", "*", "EMAIL.SENT", ""]) {
      const refused = await project.get(`/v1/webhooks/${id}/deliveries?event_type=${type}`)
      expect(refusal(refused)).toEqual([422, "validation_error"])
      expect(complaints(refused)).toEqual(["event_type"])
      expect(refused.body.error.details.fields[0].code).toBe("unknown_type")
    }
    await happens(project, "email.soft_bounced")
    const [one] = await deliveriesOf(project, id, "?event_type=email.delivery_delayed")
    expect(one).toMatchObject({ event_type: "email.soft_bounced" })
  })

  test("is paged by number, by cursor, and by limit and offset", async () => {
    const project = await service.project()
    const { id } = await three(project)
    const path = `/v1/webhooks/${id}/deliveries`
    const all = idsOf(await deliveriesOf(project, id))
    const paged = (await project.get(`${path}?per_page=2&page=2`)).body
    expect(idsOf(paged.data)).toEqual(all.slice(2))
    expect(paged.meta).toMatchObject({ page: 2, per_page: 2, total: 3, has_more: false })
    expect(paged.meta).not.toHaveProperty("limit")
    const part = (await project.get(`${path}?limit=2&offset=1`)).body
    expect(idsOf(part.data)).toEqual(all.slice(1, 3))
    expect(part.meta).toMatchObject({ limit: 2, offset: 1, total: 3, has_more: false })
    const begin = (await project.get(`${path}?limit=1`)).body
    expect(begin.meta).toMatchObject({ limit: 1, offset: 0, has_more: true })
    const more = (await project.get(`${path}?limit=1&cursor=${begin.meta.next_cursor}`)).body
    expect(idsOf(more.data)).toEqual(all.slice(1, 2))
  })

  test("links to what follows in the style that was asked in", async () => {
    const project = await service.project()
    const { id } = await three(project)
    const path = `/v1/webhooks/${id}/deliveries`
    const all = idsOf(await deliveriesOf(project, id))
    const linkOf = async (query: string) =>
      (await project.get(`${path}?${query}`)).headers.get("link")
    expect(await linkOf("per_page=1&page=2")).toBe(`<${path}?per_page=1&page=3>; rel="next"`)
    expect(await linkOf("limit=1&offset=1")).toBe(`<${path}?limit=1&offset=2>; rel="next"`)
    expect(await linkOf("limit=2&offset=1")).toBeNull()
    const second = (await project.get(`${path}?limit=1&page=2`)).body
    expect(idsOf(second.data)).toEqual(all.slice(1, 2))
    expect(second.meta).toMatchObject({ page: 2, limit: 1, offset: 1 })
  })

  test.each([
    ["since=yesterday", "since"],
    ["status=lost", "status"],
    ["limit=101", "per_page"],
    ["offset=-1", "offset"],
    ["page=1001&per_page=10", "page"],
  ])("refuses %s", async (query, path) => {
    const project = await service.project()
    const { id } = await endpoint(project)
    const refused = await project.get(`/v1/webhooks/${id}/deliveries?${query}`)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual([path])
  })
})

describe("one delivery", () => {
  test("shows what is to be sent, and after an attempt what came back", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    const event = await happens(project, "email.sent", { subject: "Zwölf 🎉" })
    const [delivery] = await deliveriesOf(project, id)
    const read = async () =>
      (await project.get(`/v1/webhooks/${id}/deliveries/${delivery.id}`)).body.data
    const fresh = await read()
    expect(fresh).toMatchObject({ ...delivery, payload: event, attempt_log: [], url: null })
    expect(fresh).toMatchObject({ msg_id: event.id, event_id: event.id, max_attempts: 6 })
    const entry = { attempt: 1, at: event.created_at, response_status: 500, error: "http_status" }
    const came = {
      url: "http://127.0.0.1:65000/hook",
      request_headers: { "webhook-signature": "***" },
      response_headers: { server: "x" },
      last_response_body: "no",
      attempt_log: [{ ...entry, error: "http_status" as const, latency_ms: 3 }],
    }
    await settleAs(service, project, { ...came, body: '{"own":true}' })
    expect(await read()).toMatchObject({ ...came, payload: { own: true } })
  })

  test("of another endpoint or project is absent", async () => {
    const [project, stranger] = [await service.project(), await service.project()]
    const { id } = await endpoint(project)
    const other = await endpoint(project, { events: ["sms.sent"] })
    const theirs = await endpoint(stranger)
    await happens(project, "email.sent")
    const [delivery] = await deliveriesOf(project, id)
    const asked = [
      project.get(`/v1/webhooks/${other.id}/deliveries/${delivery.id}`),
      project.get(`/v1/webhooks/${id}/deliveries/${NOBODY}`),
      project.get(`/v1/webhooks/${id}/deliveries/none`),
      stranger.get(`/v1/webhooks/${theirs.id}/deliveries/${delivery.id}`),
      stranger.post(`/v1/webhooks/${theirs.id}/deliveries/${delivery.id}/retry`),
    ]
    for (const answer of await Promise.all(asked)) {
      expect(refusal(answer)).toEqual([404, "not_found"])
    }
  })
})

describe("a retry", () => {
  async function one(project: TestProject, fields: object = {}) {
    const { id } = await endpoint(project, { ...fields })
    const event = await happens(project)
    const [delivery] = await deliveriesOf(project, id)
    const path = `/v1/webhooks/${id}/deliveries/${delivery.id}`
    return { id, event, path, retry: () => project.post(`${path}/retry`) }
  }

  test.each([
    ["exhausted", 6, 7],
    ["success", 1, 2],
    ["failed", 2, 7],
    ["held", 0, 7],
  ] as const)("makes one that is %s due at once, for one more attempt", async (...row) => {
    const [status, attempts, max_attempts] = row
    const project = await service.project()
    const { retry, path } = await one(project)
    await settleAs(service, project, { status, attempts })
    const answer = await retry()
    expect(answer.status).toBe(200)
    const due = { status: "pending", trigger: "manual", attempts, max_attempts }
    expect(answer.body.data).toMatchObject({ ...due, completed_at: null })
    expect(Date.parse(answer.body.data.next_attempt_at)).toBeLessThanOrEqual(millis())
    expect((await project.get(path)).body.data).toMatchObject(due)
  })

  test("is a conflict while an attempt runs, until that was lost", async () => {
    const project = await service.project()
    const { retry } = await one(project)
    await settleAs(service, project, { state: LEASED, owner: NOBODY })
    const refused = await retry()
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details.reason).toBe("running")
    await deliveryRows.freeOf(store, [NOBODY])
    expect((await retry()).status).toBe(200)
  })

  test("is a conflict when the event is gone, unless the body was kept", async () => {
    const project = await service.project()
    const { retry, event } = await one(project)
    await store.tx((tx) => tx.delete(events).where(eq(events.id, event.id)))
    const refused = await retry()
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details.reason).toBe("body_expired")
    await settleAs(service, project, { body: "{}" })
    expect((await retry()).status).toBe(200)
  })

  test("is made once for an idempotency key", async () => {
    const project = await service.project()
    const { path } = await one(project)
    const key = { "idempotency-key": "one" }
    const first = await project.post(`${path}/retry`, undefined, key)
    const second = await project.post(`${path}/retry`, undefined, key)
    expect(second.body.data).toEqual(first.body.data)
    expect((await project.get(path)).body.data.max_attempts).toBe(7)
  })

  test("is of this one delivery", async () => {
    const project = await service.project()
    const { retry } = await one(project)
    await happens(project)
    await settleAs(service, project, { status: "exhausted" })
    await retry()
    const ours = eq(deliveries.project_id, project.project_id)
    const rows = await store.read.select().from(deliveries).where(ours)
    expect(rows.map(({ status, by_hand }) => [status, by_hand]).sort()).toEqual([
      ["exhausted", false],
      ["pending", true],
    ])
  })
})
