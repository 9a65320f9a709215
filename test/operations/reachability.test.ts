import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { isoFrom, millis, now } from "../../src/core/time"
import { mergedSubscribers, unsubscribes } from "../../src/subscribers/tables"
import { addSubscriber } from "../harness/audience"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { makeSubscribers } from "../topics/made-subscribers"

const service = await sharedService()
const clock = movableClock()

const ANN = { email: "ann@mailbox.test", email_key: "ann@mailbox.test", phone: "+4915112345678" }
const FREE = { allowed: true, reason: null, next_allowed_at: null }
const NO_DEVICE = { allowed: false, reason: "no_address", next_allowed_at: null }

const refused = (reason: string, next_allowed_at: string | null = null) => ({
  ...{ allowed: false, reason, next_allowed_at },
})

async function setUp(fields: object = {}) {
  const project = await service.project()
  const [id = ""] = await makeSubscribers(service, project, [{ ...ANN, ...fields }])
  const ask = async (search = "") =>
    (await project.get(`/v1/subscribers/${id}/reachability${search}`)).body.data
  return { project, id, ask }
}

test("a subscriber is reached by every channel that it has an address for", async () => {
  const { ask } = await setUp()
  expect(await ask()).toEqual({ email: FREE, push: NO_DEVICE, sms: FREE, in_app: FREE })
  const bare = await setUp({ email: null, email_key: null, phone: null })
  expect(await bare.ask()).toEqual({
    ...{ email: NO_DEVICE, push: NO_DEVICE, sms: NO_DEVICE, in_app: FREE },
  })
})

test("a blocked subscriber is reached by none", async () => {
  const { ask } = await setUp({ status: "blocked" })
  const blocked = refused("blocked")
  expect(await ask()).toEqual({ email: blocked, push: blocked, sms: blocked, in_app: blocked })
})

test("each channel has its own reason", async () => {
  const { project, id, ask } = await setUp()
  await project.post("/v1/suppressions", { email: ANN.email })
  await project.post(`/v1/subscribers/${id}/preferences`, { in_app: { enabled: false } })
  await service.store.tx((tx) =>
    tx.insert(unsubscribes).values({
      ...{ id: newId(), project_id: project.project_id, subscriber_id: id, channel: "sms" },
      ...{ category: "", reason: null, created_at: now() },
    }),
  )
  expect(await ask()).toEqual({
    ...{ email: refused("suppressed"), push: NO_DEVICE },
    ...{ sms: refused("unsubscribed"), in_app: refused("channel_disabled") },
  })
})

test("what the table says of a channel comes before an address that is missing", async () => {
  const { project, id, ask } = await setUp({ status: "unsubscribed", phone: null })
  const unsubscribed = refused("unsubscribed")
  expect(await ask()).toEqual({
    ...{ email: unsubscribed, push: unsubscribed, sms: unsubscribed, in_app: unsubscribed },
  })
  await project.call("PATCH", `/v1/subscribers/${id}`, { body: { status: "active" } })
  await project.post(`/v1/subscribers/${id}/preferences`, { push: { enabled: false } })
  expect(await ask()).toMatchObject({ push: refused("channel_disabled"), sms: NO_DEVICE })
})

test("a category is asked for by its slug", async () => {
  const { project, id, ask } = await setUp()
  const fields = { name: "News", default: "off", channels: ["email", "in_app"] }
  await project.post("/v1/subscribers/categories", fields)
  expect(await ask("?category=news")).toMatchObject({
    ...{ email: refused("default"), sms: refused("category_channels") },
    in_app: refused("default"),
  })
  await project.post(`/v1/subscribers/${id}/preferences`, {
    email: { categories: { news: true } },
    in_app: { categories: { news: false } },
  })
  expect(await ask("?category=news")).toMatchObject({ email: FREE, in_app: refused("preference") })
  for (const category of ["nope", "a%00b", "x".repeat(3000)]) {
    const answer = await project.get(`/v1/subscribers/${id}/reachability?category=${category}`)
    expect([answer.status, complaints(answer)]).toEqual([422, ["category"]])
  }
})

test("a project without categories may ask for any, as its sends may name any", async () => {
  const { project, id, ask } = await setUp()
  await project.post(`/v1/subscribers/${id}/unsubscribe`, { channel: "email", category: "news" })
  expect((await ask("?category=news")).email).toEqual(refused("unsubscribed"))
  expect((await ask("?category=offers")).email).toEqual(FREE)
  const answer = await project.get(`/v1/subscribers/${id}/reachability?category=No%20slug`)
  expect([answer.status, complaints(answer)]).toEqual([422, ["category"]])
})

test("quiet hours and a cap say when they end", async () => {
  const { project, id, ask } = await setUp()
  clock.freeze()
  const began = millis()
  const minutes = Math.floor(began / 60_000)
  const time = (minute: number) => isoFrom(minute * 60_000).slice(11, 16)
  const quiet_hours = { start: time(minutes - 1), end: time(minutes + 90), channels: ["sms"] }
  const frequency_cap = { count: 2, per_seconds: 600 }
  await project.call("PATCH", "/v1/settings", { body: { quiet_hours, frequency_cap } })
  const ends = isoFrom((minutes + 90) * 60_000)
  expect((await ask()).sms).toEqual({ allowed: true, reason: "quiet_hours", next_allowed_at: ends })

  const send = () => project.post("/v1/emails", mail({ to: ANN.email, subscriber_id: id }))
  expect((await send()).status).toBe(201)
  clock.advance({ seconds: 60 })
  expect((await ask()).email).toEqual(FREE)
  expect((await send()).status).toBe(201)
  clock.advance({ seconds: 60 })
  expect((await ask()).email).toEqual(refused("frequency_cap", isoFrom(began + 600_000)))
  clock.advance({ seconds: 481 })
  expect((await ask()).email).toEqual(FREE)
})

test("a cap that ends within quiet hours says when these end", async () => {
  const { project, id, ask } = await setUp()
  clock.freeze()
  const minutes = Math.floor(millis() / 60_000)
  const time = (minute: number) => isoFrom(minute * 60_000).slice(11, 16)
  const quiet_hours = { start: time(minutes + 2), end: time(minutes + 90), channels: ["email"] }
  const cap = (per_seconds: number) =>
    project.call("PATCH", "/v1/settings", {
      body: { quiet_hours, frequency_cap: { count: 1, per_seconds } },
    })
  await cap(600)
  await project.post("/v1/emails", mail({ to: ANN.email, subscriber_id: id }))
  const ends = isoFrom((minutes + 90) * 60_000)
  expect((await ask()).email).toEqual(refused("frequency_cap", ends))
  await cap(60) // ends before they begin
  expect((await ask()).email).toEqual(refused("frequency_cap", isoFrom(millis() + 60_000)))
})

test("the cap of a subscriber ends as if a merge had moved all messages already", async () => {
  const { project, id, ask } = await setUp()
  const frequency_cap = { count: 2, per_seconds: 600 }
  await project.call("PATCH", "/v1/settings", { body: { frequency_cap } })
  clock.freeze()
  const began = millis()
  const former = await addSubscriber(project, { email: ANN.email })
  for (const subscriber_id of [former.id, id, former.id]) {
    await project.post("/v1/emails", mail({ to: ANN.email, subscriber_id }))
    clock.advance({ seconds: 60 })
  }
  await service.store.tx((tx) =>
    tx.insert(mergedSubscribers).values({
      ...{ id: former.id, project_id: project.project_id, subscriber_id: id },
      ...{ external_id: former.external_id, email_key: null, phone: null, created_at: now() },
    }),
  )
  expect((await ask()).email).toEqual(refused("frequency_cap", isoFrom(began + 660_000)))
})

test("a foreign subscriber is not found", async () => {
  const { id } = await setUp()
  const other = await service.project()
  const answer = await other.get(`/v1/subscribers/${id}/reachability`)
  expect(refusal(answer)).toEqual([404, "subscriber_not_found"])
})
