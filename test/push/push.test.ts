import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { millis, now, secondsFromNow } from "../../src/core/time"
import { messageContents } from "../../src/messages/tables"
import { pushAcks, pushDays } from "../../src/push/tables"
import { refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { addDevice, pushProject } from "./pushes"

const service = await sharedService()
const { store } = service

const LATER = secondsFromNow(3600)

/** A project with a device of Ann, and another one. */
async function annsProject(options = {}) {
  const project = await pushProject(service, ["apns", "fcm"], options)
  const phone = await addDevice(store, project.project_id, { user_id: "ann" })
  const other = { user_id: "bob", provider: "fcm", platform: "android" } as const
  const pixel = await addDevice(store, project.project_id, other)
  return { project, phone, pixel }
}

type Project = Awaited<ReturnType<typeof annsProject>>["project"]

const send = async (project: Project, fields: object): Promise<string> =>
  (await project.post("/v1/push", { title: "Hi", scheduled_at: LATER, ...fields })).body.data.id

test("the whole record says what was asked, and nulls stand for what is no longer stored", async () => {
  const { project, phone } = await annsProject()
  const given = {
    ...{ title: "Hi", body: "Ding", data: { order: "7" }, icon: "/i.png", badge: 3, sound: "bell" },
    ...{ image_url: "https://example.test/i.png", url: "/x", collapse_id: "one", tags: ["a"] },
    ...{ ttl_seconds: 60, priority: "normal", metadata: { order: "7" }, content_available: true },
  }
  const action_buttons = [{ id: "a", label: "A" }]
  const id = await send(project, { user_id: "ann", ...given, action_buttons })
  const path = `/v1/push/${id}`
  const { data } = (await project.get(path)).body
  expect(data).toMatchObject({
    ...given,
    action_buttons: [{ id: "a", label: "A", url: null }],
    ...{ id, device_id: phone.device_id, user_id: "ann", platform: "ios", provider: "apns" },
    ...{ status: "queued", queued_at: null, scheduled_at: LATER, events: [], batch_id: null },
    ...{ error_code: null, failed_at: null, opened_at: null, provider_message_id: null },
  })
  expect(Date.parse(data.expires_at) - Date.parse(LATER)).toBe(60_000)
  await store.tx((tx) => tx.delete(messageContents).where(eq(messageContents.message_id, id)))
  const gone = {
    title: null,
    body: null,
    data: null,
    badge: null,
    action_buttons: [],
    priority: null,
  }
  expect((await project.get(path)).body.data).toMatchObject(gone)
  const [stranger] = [await service.project()]
  expect(refusal(await stranger.get(path))).toEqual([404, "not_found"])
})

test("the filters of the list find what was sent, each by its own column", async () => {
  const { project, phone, pixel } = await annsProject()
  await addDevice(store, project.project_id, { user_id: "ann", device_id: "tablet" })
  const first = await send(project, { device_id: phone.id, tags: ["a"] })
  const second = await send(project, { user_id: "bob" })
  const both = (await project.post("/v1/push", { user_id: "ann", title: "Hi" })).body.data
  const [third, fourth] = both.messages.map(({ id }: { id: string }) => id)
  const cases: [string, string[]][] = [
    ["", [fourth, third, second, first]],
    ["user_id=ann", [fourth, third, first]],
    ["user_id=ann&tag=a", [first]],
    [`device_id=${phone.device_id}`, [third, first]],
    [`device_id=${phone.id}`, [third, first]],
    ["platform=android", [second]],
    ["tag=a", [first]],
    [`batch_id=${both.id}`, [fourth, third]],
    ["status=queued&user_id=bob", [second]],
    ["status=sent", []],
    [`created_before=${encodeURIComponent(secondsFromNow(-60))}`, []],
  ]
  for (const [query, wanted] of cases) {
    const { body } = await project.get(`/v1/push?${query}`)
    expect([query, body.data.map(({ id }: { id: string }) => id)]).toEqual([query, wanted])
  }
  expect((await project.get("/v1/push?user_id=bob")).body.data[0]).toMatchObject({
    ...{ device_id: pixel.device_id, title: "Hi", body: null, data: {}, provider: "fcm" },
  })
})

test("a scheduled push is in the list of all channels, and is cancelled by both ways", async () => {
  const { project } = await annsProject()
  const [one, two] = [
    await send(project, { user_id: "ann" }),
    await send(project, { user_id: "bob" }),
  ]
  const { data } = (await project.get("/v1/scheduled?channel=push")).body
  expect(data.map(({ id }: { id: string }) => id)).toEqual([two, one])
  expect((await project.call("DELETE", `/v1/scheduled/${one}`)).status).toBe(200)
  const cancelled = await project.post(`/v1/push/${two}/cancel`)
  expect(cancelled.body.data).toMatchObject({ id: two, status: "cancelled", queued_at: null })
  expect((await project.get(`/v1/push/${one}`)).body.data).toMatchObject({ status: "cancelled" })
  expect(refusal(await project.post(`/v1/push/${two}/cancel`))).toEqual([409, "conflict"])
})

test("what a device told stands in the timeline, and in the statistics of its day", async () => {
  const { project } = await annsProject()
  const { project_id } = project
  const id = await send(project, { user_id: "ann" })
  await send(project, { user_id: "bob" })
  await project.post(`/v1/push/${id}/cancel`)
  const at = now()
  const acks = (["delivered", "opened"] as const).map((event) => ({ message_id: id, event }))
  await store.tx(async (tx) => {
    await tx.insert(pushAcks).values(acks.map((ack) => ({ ...ack, project_id, created_at: at })))
    const day = { project_id, day: at.slice(0, 10), fact: "opened", shard: 0, messages: 2 } as const
    await tx.insert(pushDays).values(day)
  })
  const { data } = (await project.get(`/v1/push/${id}`)).body
  expect(data.opened_at).toBe(at)
  expect(data.events.map(({ type }: { type: string }) => type)).toEqual([
    "push.delivered",
    "push.opened",
  ])
  await addDevice(store, project_id, { user_id: "ann", provider: "webpush", platform: "web" })
  await project.post("/v1/push", { user_id: "ann", title: "Hi" })
  const told = (await project.get("/v1/push/stats?period=day")).body.data
  expect(told).toMatchObject({
    ...{ total: 4, opened: 2, by_platform: { ios: 2, android: 1, web: 1, macos: 0 } },
    by_status: { queued: 2, cancelled: 1, failed: 1, sent: 0, delivered: 0, expired: 0 },
    by_day: [{ day: new Date(millis()).toISOString().slice(0, 10), total: 4 }],
    by_provider: { apns: 0, fcm: 0, webpush: 0 },
    errors: [{ error_code: "provider_unavailable", count: 1 }],
  })
})

test("a push message is explained by the stages of push, with its device", async () => {
  const { project, phone } = await annsProject()
  const id = await send(project, { user_id: "ann" })
  const { data } = (await project.get(`/v1/push/${id}/explain`)).body
  const stages = new Map(data.steps.map((step: { stage: string }) => [step.stage, step]))
  expect([data.push_id, data.verdict]).toEqual([id, "queued"])
  expect(data.summary).toBe(`The push message to ${phone.device_id} waits for ${LATER}.`)
  expect([...stages.keys()]).toEqual([
    ...["auth", "source", "quota", "sending_status", "device", "template", "preference"],
    ...["quiet_hours", "queue", "provider", "outcome", "webhooks"],
  ])
  expect(stages.get("quota")).toMatchObject({
    detail: "It used 1 device of the month's quota.",
  })
  expect(stages.get("device")).toMatchObject({
    detail: `It is for the device ${phone.device_id} of the user ann (ios, apns).`,
  })
})

test("a template of push says the same words as its texts, in the language of the subscriber", async () => {
  const { project } = await annsProject()
  await project.post("/v1/subscribers", { external_id: "ann", locale: "de", name: "Ann" })
  const texts = (title: string) => ({
    push: { title, body: "{{n}}", url: "/o/{{n}}", data: { order: "{{n}}" } },
  })
  const made = await project.post("/v1/templates", {
    ...{ name: "order", locale: "en", channels: texts("Order for {{subscriber.name}}") },
    locales: { de: { channels: texts("Bestellung für {{subscriber.name}}") } },
  })
  await project.post(`/v1/templates/${made.body.data.id}/publish`)
  const asked = { title: undefined, template_id: "order", variables: { n: "7" } }
  const id = await send(project, { user_id: "ann", ...asked })
  expect((await project.get(`/v1/push/${id}`)).body.data).toMatchObject({
    ...{ title: "Bestellung für Ann", body: "7", url: "/o/7", data: { order: "7" } },
  })
  const inline = await send(project, { user_id: "ann", title: "No. {{n}}", variables: { n: "7" } })
  expect((await project.get(`/v1/push/${inline}`)).body.data.title).toBe("No. 7")
  const wrong = { user_id: "ann", title: "Hi", url: "{{n}}", variables: { n: "x" } }
  expect(refusal(await project.post("/v1/push", wrong))).toEqual([422, "invalid_url"])
  const long = { user_id: "ann", title: "{{n}}", variables: { n: "x".repeat(201) } }
  expect(refusal(await project.post("/v1/push", long))).toEqual([422, "template_render_failed"])
})
