import { afterAll, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { mail, NOBODY } from "../harness/mail"
import { testService } from "../harness/service"

const clock = movableClock()
const service = await testService()
afterAll(() => service[Symbol.asyncDispose]())

const DAY = 86_400

type Project = Awaited<ReturnType<typeof service.project>>

async function schedule(project: Project, scheduled_at: unknown, more: object = {}) {
  const reply = await project.post("/v1/emails", mail({ scheduled_at, ...more }))
  return { reply, id: reply.body.id as string }
}

const typesOf = async (id: string) =>
  (await service.store.read.select().from(events).where(eq(events.subject_id, id))).map(
    ({ type }) => type,
  )

test("a scheduled email is accepted at once, counted at once, and sent at its time", async () => {
  const project = await service.project()
  clock.freeze()
  const scheduled_at = secondsFromNow(3600)
  const { reply, id } = await schedule(project, scheduled_at.replace("Z", "+00:00"))
  expect(reply.status).toBe(201)
  expect(reply.body.data).toMatchObject({ status: "queued", scheduled_at })
  const usage = (await project.get("/v1/usage")).body.data
  expect(JSON.stringify(usage)).toContain('"email"')
  const before = (await project.get(`/v1/emails/${id}`)).body.data
  expect(before).toMatchObject({
    status: "queued",
    scheduled_at,
    queued_at: null,
    last_event: null,
    timeline: [],
    next_attempt_at: scheduled_at,
  })
  const listed = (await project.get("/v1/scheduled")).body
  const record = { id, channel: "email", to: "ann@example.test", scheduled_at }
  expect(listed.data).toEqual([{ ...record, status: "scheduled", created_at: before.created_at }])
  expect(listed.meta.total).toBe(1)
  const one = (await project.get(`/v1/scheduled/${id}`)).body.data
  expect(one).toMatchObject({ ...record, seconds_until_send: 3600 })

  clock.advance({ seconds: 3600 })
  const [handed] = await deliverAll(service)
  const sent = Buffer.from(handed?.raw ?? "").toString()
  expect(sent).toContain(`Date: ${new Date(scheduled_at).toUTCString().replace("GMT", "+0000")}`)
  const after = (await project.get(`/v1/emails/${id}`)).body.data
  expect(after).toMatchObject({ status: "delivered", scheduled_at, queued_at: scheduled_at })
  expect(await typesOf(id)).toEqual(["email.queued", "email.sent", "email.delivered"])
  expect((await project.get("/v1/scheduled")).body.data).toEqual([])
  expect(refusal(await project.get(`/v1/scheduled/${id}`))).toEqual([404, "not_found"])
  expect(refusal(await project.call("DELETE", `/v1/scheduled/${id}`))).toEqual([409, "conflict"])
})

test("a time in the past sends now, and is no scheduled email", async () => {
  const project = await service.project()
  const { reply, id } = await schedule(project, secondsFromNow(-5))
  expect(reply.body.data.scheduled_at).toBeNull()
  await deliverAll(service)
  expect((await project.get(`/v1/emails/${id}`)).body.data).toMatchObject({
    status: "delivered",
    scheduled_at: null,
  })
})

test.each([
  ["2027-01-01T00:00:00", "invalid"],
  ["in 1 min", "invalid"],
  ["2099-01-01T00:00:00Z", "too_late"],
])("%s is refused", async (value, code) => {
  const project = await service.project()
  const { reply } = await schedule(project, value)
  expect(refusal(reply)).toEqual([422, "validation_error"])
  expect(complaints(reply)).toEqual(["scheduled_at"])
  expect(reply.body.error.details.fields[0].code).toBe(code)
})

test("each email of a batch has its own time", async () => {
  const project = await service.project()
  const at = [secondsFromNow(DAY), null, secondsFromNow(2 * DAY)]
  const list = at.map((scheduled_at) => mail({ scheduled_at }))
  const reply = await project.post("/v1/emails/batch", { messages: list })
  expect(reply.body.data.succeeded).toBe(3)
  const emails = (await project.get("/v1/emails")).body.data
  expect(emails.map((email: { scheduled_at: string | null }) => email.scheduled_at)).toEqual(
    at.toReversed(),
  )
  expect((await project.get("/v1/scheduled")).body.meta.total).toBe(2)
})

test("PATCH moves a scheduled email, and refuses one that was released", async () => {
  const project = await service.project()
  const { id } = await schedule(project, secondsFromNow(DAY))
  const at = secondsFromNow(20)
  const patch = (body: object, of = id) => project.call("PATCH", `/v1/emails/${of}`, { body })
  expect((await patch({ scheduled_at: at })).body.data).toMatchObject({ id, scheduled_at: at })
  expect(complaints(await patch({ scheduled_at: null }))).toEqual(["scheduled_at"])
  expect((await patch({ at })).body.error).toMatchObject({
    code: "validation_error",
    details: { fields: [{ path: "body", code: "nothing_to_change" }] },
  })
  expect(refusal(await patch({ scheduled_at: secondsFromNow(91 * DAY) }))[0]).toBe(422)
  expect(refusal(await patch({ scheduled_at: at }, NOBODY))).toEqual([404, "not_found"])
  const moved = await patch({ scheduled_at: "2020-01-01T00:00:00Z" }) // now
  expect(moved.status).toBe(200)
  await deliverAll(service)
  expect(await typesOf(id)).toEqual(["email.queued", "email.sent", "email.delivered"])
  expect(refusal(await patch({ scheduled_at: secondsFromNow(DAY) }))).toEqual([409, "conflict"])
  const plain = (await project.post("/v1/emails", mail())).body.id
  expect(refusal(await patch({ scheduled_at: at }, plain))).toEqual([409, "conflict"])
})

test("a scheduled email is cancelled by either route, once", async () => {
  const project = await service.project()
  const [first, second] = [
    await schedule(project, secondsFromNow(DAY)),
    await schedule(project, secondsFromNow(DAY)),
  ]
  const gone = await project.call("DELETE", `/v1/scheduled/${first.id}`)
  expect(gone.body.data).toMatchObject({ id: first.id, status: "cancelled", deleted: true })
  const again = await project.call("DELETE", `/v1/scheduled/${first.id}`)
  expect(refusal(again)).toEqual([409, "conflict"])
  const other = await project.post(`/v1/emails/${second.id}/cancel`)
  expect(other.body.data).toMatchObject({ status_reason: "cancelled", queued_at: null })
  expect(await typesOf(second.id)).toEqual(["email.failed"])
  const cancelled = await project.get("/v1/scheduled?status=cancelled")
  expect(cancelled.body.meta.total).toBe(2)
  expect((await project.get("/v1/scheduled?status=scheduled")).body.data).toEqual([])
})

test("the list is filtered by status and channel, and read page by page", async () => {
  const project = await service.project()
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.unshift((await schedule(project, secondsFromNow(DAY + n))).id)
  const page = (await project.get("/v1/scheduled?limit=2")).body
  expect(page.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2))
  const next = await project.get(`/v1/scheduled?limit=2&cursor=${page.meta.next_cursor}`)
  expect(next.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2, 4))
  for (const status of ["processing", "queued", "cancelled", "failed"]) {
    expect((await project.get(`/v1/scheduled?status=${status}`)).body.data).toEqual([])
  }
  expect((await project.get("/v1/scheduled?channel=email")).body.meta.total).toBe(5)
  for (const channel of ["push", "in_app"]) {
    expect((await project.get(`/v1/scheduled?channel=${channel}`)).body.data).toEqual([])
  }
  expect(refusal(await project.get("/v1/scheduled?status=sent"))[0]).toBe(422)
})

test("a caller sees the channels that it may read, and no other project's messages", async () => {
  const project = await service.project()
  const { id } = await schedule(project, secondsFromNow(DAY))
  const { key } = await project.addKey({ scopes: ["sms:read", "sms:send"] })
  const as = { "x-api-key": key }
  expect((await project.get("/v1/scheduled", as)).body.data).toEqual([])
  expect(refusal(await project.get("/v1/scheduled?channel=email", as))).toEqual([403, "forbidden"])
  expect(refusal(await project.get(`/v1/scheduled/${id}`, as))).toEqual([404, "not_found"])
  const removal = await project.call("DELETE", `/v1/scheduled/${id}`, { headers: as })
  expect(refusal(removal)).toEqual([404, "not_found"])
  const stranger = await service.project()
  expect(refusal(await stranger.get(`/v1/scheduled/${id}`))).toEqual([404, "not_found"])
  expect((await stranger.get("/v1/scheduled")).body.data).toEqual([])
})

test("an email that is sent again goes out at once", async () => {
  const project = await service.project()
  const { id } = await schedule(project, secondsFromNow(3600))
  clock.advance({ seconds: 3600 })
  await deliverAll(service)
  const again = await project.post(`/v1/emails/${id}/resend`)
  expect(again.body.data.scheduled_at).toBeNull()
  const copy = (await project.get(`/v1/emails/${again.body.id}`)).body.data
  expect(copy).toMatchObject({ scheduled_at: null, last_event: { type: "email.queued" } })
})

test("scheduled mail has a line of its own in the project's open work", async () => {
  const project = await service.project()
  const at = secondsFromNow(DAY)
  await schedule(project, at)
  await project.post("/v1/emails", mail())
  const { by_state, by_domain } = (await project.get("/v1/queue")).body.data
  expect(by_state).toContainEqual(
    expect.objectContaining({
      state: "waiting",
      reason: "scheduled for a later time",
      count: 1,
      oldest_seconds: 0,
      next_attempt_at: at,
    }),
  )
  expect(by_domain).toEqual([
    expect.objectContaining({ domain: "example.test", waiting: 1, paused_until: null }),
  ])
})
