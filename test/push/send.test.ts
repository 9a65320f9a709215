import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { messages } from "../../src/messages/tables"
import { complaints, refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { addDevice, pushProject } from "./pushes"

const service = await sharedService()
const { store } = service

const rowOf = async (id: string) =>
  (await store.read.select().from(messages).where(eq(messages.id, id)))[0]

test("a push to a device is one message, and to a person one for each device", async () => {
  const project = await pushProject(service, ["apns", "fcm"])
  const { project_id } = project
  const phone = await addDevice(store, project_id, { user_id: "ann" })
  const pixel = { user_id: "ann", provider: "fcm", platform: "android" } as const
  const tablet = await addDevice(store, project_id, pixel)
  const push = { title: "Hi", body: "Ding", data: { order: "7" }, ttl_seconds: 60 }
  const one = await project.post("/v1/push", { device_id: phone.device_id, ...push })
  expect(one.status).toBe(201)
  const [first] = one.body.data.messages
  expect(one.body.data).toEqual({
    ...{ id: first.id, status: "queued", devices: 1 },
    messages: [{ id: first.id, device_id: phone.device_id, provider: "apns", status: "queued" }],
  })
  expect(await rowOf(first.id)).toMatchObject({
    ...{ channel: "push", address: phone.device_id, sender: "ios", user_id: "ann", units: 1 },
    ...{ subject: "Hi", batch_id: null, subscriber_id: null, status: "queued" },
    envelope: { push: { device: phone.id, provider: "apns", ttl_seconds: 60 } },
  })
  const both = (await project.post("/v1/push", { user_id: "ann", ...push })).body.data
  expect(both).toMatchObject({ status: "queued", devices: 2 })
  expect(both.messages.map((one: { device_id: string }) => one.device_id)).toEqual([
    phone.device_id,
    tablet.device_id,
  ])
  for (const { id } of both.messages) expect(await rowOf(id)).toMatchObject({ batch_id: both.id })
})

test("a repeated request sends nothing twice, to one device and to several", async () => {
  const project = await pushProject(service)
  for (const user_id of ["ann", "bob", "bob"])
    await addDevice(store, project.project_id, { user_id })
  for (const user_id of ["ann", "bob"]) {
    const headers = { "idempotency-key": user_id }
    const asked = () => project.post("/v1/push", { user_id, title: "Hi" }, headers)
    const [one, two] = [await asked(), await asked()]
    expect(two.body.data).toEqual(one.body.data)
    expect(two.headers.get("idempotent-replayed")).toBe("true")
  }
})

test("a target names the devices that it reaches, each by its rule", async () => {
  const project = await pushProject(service)
  const { project_id } = project
  const made = await project.post("/v1/subscribers", { external_id: "ann" })
  const { id } = made.body.data
  const add = (more: object) => addDevice(store, project_id, { user_id: "ann", ...more })
  const [own, app] = [await add({}), await add({ scope: "application:0" })]
  const live = await add({ scope: "environment:0:live" })
  const tested = await add({ scope: "environment:0:test" })
  await add({ status: "disabled" })
  await add({ user_id: "bob" })
  const reached = async (target: object) => {
    const { status, body } = await project.post("/v1/push", { title: "Hi", ...target })
    return status === 201
      ? body.data.messages.map((one: { device_id: string }) => one.device_id)
      : body.error.code
  }
  const everywhere = [own, app, live].map(({ device_id }) => device_id)
  for (const target of [{ user_id: "ann" }, { external_id: "ann" }, { subscriber_id: id }]) {
    expect(await reached(target)).toEqual(everywhere)
    expect(await reached({ ...target, environment: "test" })).toEqual([tested.device_id])
  }
  expect(await reached({ device_id: tested.id })).toEqual([tested.device_id])
  expect(await reached({ user_id: "carl" })).toBe("device_not_found")
  expect(await reached({ user_id: "bob", environment: "test" })).toBe("device_not_found")
  for (const target of [{ external_id: "carl" }, { subscriber_id: "carl" }])
    expect(await reached(target)).toBe("subscriber_not_found")
  expect(await reached({ device_id: "nothing" })).toBe("device_not_found")
})

test("a device without credentials of its provider is told so, and a project without any", async () => {
  const project = await pushProject(service, ["fcm"])
  const { project_id } = project
  await addDevice(store, project_id, { user_id: "ann" })
  const push = { user_id: "ann", title: "Hi" }
  const none = await project.post("/v1/push", push)
  expect(refusal(none)).toEqual([400, "push_not_configured"])
  await addDevice(store, project_id, { user_id: "ann", provider: "fcm", platform: "web" })
  const { messages: made } = (await project.post("/v1/push", push)).body.data
  const { status_reason, error, units } = (await rowOf(made[0].id)) ?? {}
  expect(made.map(({ status }: { status: string }) => status)).toEqual(["failed", "queued"])
  expect([status_reason, error?.code, units]).toEqual(
    Array(2).fill("provider_unavailable").concat(0),
  )
})

test("every field is checked, and each mistake is named", async () => {
  const project = await pushProject(service)
  await addDevice(store, project.project_id, { user_id: "ann" })
  const send = (more: object) => project.post("/v1/push", { user_id: "ann", title: "Hi", ...more })
  const button = { id: "a", label: "A" }
  const wrong: [object, string][] = [
    [{ title: undefined }, "title"],
    [{ user_id: undefined }, "user_id"],
    [{ device_id: "x" }, "user_id"],
    [{ title: "x".repeat(201) }, "title"],
    [{ title: "a\nb" }, "title"],
    [{ body: "x".repeat(2001) }, "body"],
    [{ data: { push_id: "x" } }, "data.push_id"],
    [{ data: { n: 5 } }, "data.n"],
    [{ url: "javascript:alert(1)" }, "url"],
    [{ icon: "x" }, "icon"],
    [{ badge: -1 }, "badge"],
    [{ ttl_seconds: 2_419_201 }, "ttl_seconds"],
    [{ collapse_id: "ы".repeat(33) }, "collapse_id"],
    [{ action_buttons: [button, button] }, "action_buttons.1.id"],
    [{ environment: "live" }, "environment"],
    [{ apns: { x: "y".repeat(4096) } }, "apns"],
    [{ apns: { ack_token: "x" } }, "apns.ack_token"],
    [{ fcm: { data: { push_id: "x" } } }, "fcm.data.push_id"],
    [
      { webpush: { notification: { data: { push_id: "x" } } } },
      "webpush.notification.data.push_id",
    ],
    [{ webpush: { notification: null } }, "webpush.notification"],
    [{ body: "ы".repeat(2000), data: { x: "y".repeat(200) } }, "data"],
  ]
  for (const [more, path] of wrong)
    expect([path, complaints(await send(more))]).toEqual([path, [path]])
  const good = { url: "/x", badge: "unread", content_available: true, collapse_id: "ы".repeat(32) }
  expect((await send({ ...good, action_buttons: [button] })).status).toBe(201)
  const overrides = {
    apns: { a: 1 },
    webpush: { notification: { data: { a: "b" }, silent: true } },
  }
  expect((await send({ title: undefined, content_available: true, ...overrides })).status).toBe(201)
})

test("a batch takes what is right, and a send to several devices stands or falls as one", async () => {
  const project = await pushProject(service, ["apns"], { limits: { push_per_month: 3 } })
  const { project_id } = project
  for (const user_id of ["ann", "ann", "bob"]) await addDevice(store, project_id, { user_id })
  const to = (user_id: string) => ({ user_id, title: "Hi" })
  const list = [to("ann"), { user_id: "ann" }, to("ann"), to("carl"), to("bob"), to("bob")]
  const { data } = (await project.post("/v1/push/batch", { messages: list })).body
  expect(data).toMatchObject({ total: 6, succeeded: 2, failed: 4 })
  expect(data.results).toMatchObject([
    { index: 0, messages: [{ status: "queued" }, { status: "queued" }] },
    { index: 1, error: { code: "missing_required_field" } },
    { index: 2, error: { code: "payment_required" } },
    { index: 3, error: { code: "device_not_found" } },
    { index: 4, messages: [{ id: data.results[4].id }] },
    { index: 5, error: { code: "payment_required" } },
  ])
  const late = await project.post("/v1/push", to("ann"))
  expect(late.body.error.details).toMatchObject({ metric: "push", used: 3, limit: 3 })
})

test("a send to several devices is one send of a second", async () => {
  const project = await pushProject(service, ["apns"], { limits: { sends_per_second: 2 } })
  for (let at = 0; at < 3; at++) await addDevice(store, project.project_id, { user_id: "ann" })
  const push = { user_id: "ann", title: "Hi" }
  const both = await project.post("/v1/push/batch", { messages: [push, push] })
  expect(both.body.data).toMatchObject({ succeeded: 2 })
  const late = await project.post("/v1/push", push)
  expect(refusal(late)).toEqual([429, "rate_limit_exceeded"])
  expect(late.body.error.details).toMatchObject({ scope: "sends", limit: 2 })
})
