import { afterAll, describe, expect, test } from "bun:test"
import { generateKeyPairSync } from "node:crypto"
import { eq } from "drizzle-orm"
import { loadSettings, settings, useSettings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import type { PushProvider } from "../../src/devices/tables"
import { messages } from "../../src/messages/tables"
import { ackToken } from "../../src/push/ack-token"
import { apnsPayload } from "../../src/push/providers/apns"
import { fcmPayload } from "../../src/push/providers/fcm"
import { webPushPayload } from "../../src/push/providers/webpush"
import { type BuiltFrom, MOST_PAYLOAD_BYTES } from "../../src/push/push-content"
import { nameServer } from "../core/name-server"
import { apnsServer } from "../fakes/apns-server"
import { fcmServer } from "../fakes/fcm-server"
import { pushService, subscriber } from "../fakes/push-service"
import { refusal } from "../harness/client"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addSubscriber, bearer, tokenOf } from "../inbox/subscriber-app"
import { addDevice } from "./pushes"
import { deliverPushes } from "./pushes-on-their-way"

quietLog()

const pem = { type: "pkcs8", format: "pem" } as const
const apple = generateKeyPairSync("ec", { namedCurve: "P-256" })
const google = generateKeyPairSync("rsa", { modulusLength: 2048 })
const ours = { key_id: "ABC123DEFG", team_id: "DEF123GHIJ", bundle_id: "com.example.app" }
const APNS = { ...ours, private_key: apple.privateKey.export(pem).toString() }
const account = { project_id: "example-app", client_email: "belfry@example.test" }
const FCM = {
  service_account: {
    ...{ type: "service_account", ...account },
    private_key: google.privateKey.export(pem).toString(),
  },
}

const apns = await apnsServer({ key: apple.publicKey, ...ours, topics: [ours.bundle_id] })
const fcm = fcmServer({ key: google.publicKey, ...account })

/** What the name server says; tests change it. */
const zone = new Map<string, string[]>()
const names = await nameServer((name, kind) =>
  kind === "A" ? (zone.get(name) ?? []).map((address) => ({ address })) : [],
)
const before = loadSettings()
useSettings({ ...before, values: { ...settings(), "dns.servers": [names.address] } })

/** Endpoints of this browser that its push service does not know any more. */
const gone = new Set<string>()
const browser = subscriber()
const web = pushService(({ path }) => new Response(null, { status: gone.has(path) ? 410 : 201 }))

const service = await sharedService({
  providers: {
    allow_private: ["127.0.0.1"],
    settings: {
      ...{ "providers.apns.endpoint": apns.url, "providers.apns.ca": apns.ca },
      ...{ "providers.fcm.endpoint": fcm.url, "providers.fcm.token_endpoint": `${fcm.url}/token` },
    },
  },
})
const { store, parts } = service

afterAll(() => {
  useSettings(before)
  names.close()
  for (const one of [apns, fcm, web]) one[Symbol.dispose]()
})

const at = (name: string) => `${web.url}/${name}`

/** A browser, as a key of the project registers it. */
const register = (
  project: TestProject,
  [device_id, user_id]: [string, string],
  endpoint: string,
) => {
  const subscription = { endpoint, keys: browser.keys }
  return project.post("/v1/devices", { device_id, user_id, platform: "web", subscription })
}

/** The endpoints that heard of a push, or why it was refused at once. */
async function reached(project: TestProject, target: object): Promise<string[] | string> {
  const seen = web.requests.length
  const { status, body } = await project.post("/v1/push", { title: "Hi", ...target })
  if (status !== 201) return body.error.code
  await deliverPushes(service)
  return web.requests
    .slice(seen)
    .map(({ path }) => path.slice(1))
    .sort()
}

/** How the last message to a target ended. */
async function endOf(project: TestProject, target: object) {
  await reached(project, target)
  const { id } = (await project.get("/v1/push?limit=1")).body.data[0]
  return (await project.get(`/v1/push/${id}`)).body.data
}

const deviceOf = async (project: TestProject, name: string) =>
  (await project.get(`/v1/devices/${name}`)).body.data

test("a device is replaced, installed again, gone, back, signed out, and another person's", async () => {
  const project = await service.project()
  const [ann, bob, carl] = [{ user_id: "ann" }, { user_id: "bob" }, { user_id: "carl" }]
  const made = await register(project, ["phone", "ann"], at("first"))
  const { id } = made.body.data
  expect(made.status).toBe(201)
  await register(project, ["tablet", "ann"], at("tablet"))
  await register(project, ["other", "bob"], at("other"))
  expect(await reached(project, ann)).toEqual(["first", "tablet"])

  const renewed = await register(project, ["phone", "ann"], at("second"))
  expect([renewed.status, renewed.body.data.id]).toEqual([200, id])
  expect(await reached(project, ann)).toEqual(["second", "tablet"])

  const again = await register(project, ["phone-2", "ann"], at("second"))
  expect([again.status, again.body.data.id]).toEqual([201, id])
  expect(refusal(await project.get("/v1/devices/phone"))).toEqual([404, "device_not_found"])
  expect(await reached(project, ann)).toEqual(["second", "tablet"])

  gone.add("/second")
  expect(await reached(project, ann)).toEqual(["second", "tablet"])
  const expired = { status: "expired", status_reason: "unregistered" }
  expect(await deviceOf(project, "phone-2")).toMatchObject(expired)
  const failed = (await project.get("/v1/push?device_id=phone-2&status=failed")).body.data
  expect((await project.get(`/v1/push/${failed[0].id}`)).body.data).toMatchObject({
    ...{ error_code: "unregistered", provider_code: "410", status_reason: "unregistered" },
  })
  expect(await reached(project, ann)).toEqual(["tablet"])
  expect(await reached(project, { device_id: "phone-2" })).toBe("device_not_found")

  gone.clear()
  const back = await register(project, ["phone-2", "ann"], at("second"))
  const active = { id, status: "active", status_reason: null, failure_count: 0 }
  expect([back.status, back.body.data]).toMatchObject([200, active])
  expect(await reached(project, ann)).toEqual(["second", "tablet"])

  await project.post("/v1/devices/phone-2/unlink")
  expect(await reached(project, ann)).toEqual(["tablet"])
  expect(await reached(project, { device_id: "phone-2" })).toEqual(["second"])
  await register(project, ["phone-2", "bob"], at("second"))
  expect(await reached(project, bob)).toEqual(["other", "second"])

  const taken = await register(project, ["laptop", "carl"], at("second"))
  expect(refusal(taken)).toEqual([409, "duplicate_device"])
  expect(await reached(project, carl)).toBe("device_not_found")
  const moved = await register(project, ["phone-2", "carl"], at("second"))
  expect([moved.status, moved.body.data]).toMatchObject([200, { id, user_id: "carl" }])
  expect(await reached(project, carl)).toEqual(["second"])
  expect(await reached(project, bob)).toEqual(["other"])
  expect(await reached(project, ann)).toEqual(["tablet"])
  const stats = { total: 3, active: 3, expired: 0, by_platform: { web: 3 } }
  expect((await project.get("/v1/devices/stats")).body.data).toMatchObject(stats)
})

describe("a message that waits while its device", () => {
  const waiting = async () => {
    const project = await service.project()
    const subscriber_id = await addSubscriber(service, project, "ann")
    await register(project, ["phone", "ann"], at(`waits-${project.project_id}`))
    const sent = await project.post("/v1/push", { subscriber_id, title: "Hi" })
    const { id } = sent.body.data
    return {
      ...{ project, subscriber_id, id },
      async end() {
        const seen = web.requests.length
        await deliverPushes(service)
        const { status, error_code } = (await project.get(`/v1/push/${id}`)).body.data
        return [status, error_code, web.requests.length - seen]
      },
    }
  }
  type Waiting = Awaited<ReturnType<typeof waiting>>
  const again = (project: TestProject, user_id: string) =>
    register(project, ["phone", user_id], at(`waits-${project.project_id}`))
  const merge = async ({ project, subscriber_id }: Waiting) => {
    const heir = await addSubscriber(service, project, "heir")
    await project.post(`/v1/subscribers/${heir}/merge`, { from_id: subscriber_id })
  }

  const theirs = ["sent", null, 1]
  const nobodys = ["failed", "unregistered", 0]
  const cases: [string, unknown[], (one: Waiting) => unknown][] = [
    ["is signed out", nobodys, ({ project }) => project.post("/v1/devices/phone/unlink")],
    ["is another person's", nobodys, ({ project }) => again(project, "bob")],
    ["is removed", nobodys, ({ project }) => project.call("DELETE", "/v1/devices/phone")],
    ["belongs to the heir of a merge", theirs, merge],
    [
      "belongs to the heir before the message does",
      theirs,
      async (one) => {
        await merge(one)
        const as_before = { subscriber_id: one.subscriber_id, user_id: "ann" }
        await store.tx((tx) => tx.update(messages).set(as_before).where(eq(messages.id, one.id)))
      },
    ],
    [
      "is registered under the new name of its person",
      theirs,
      async ({ project, subscriber_id }) => {
        const body = { external_id: "anna" }
        await project.call("PATCH", `/v1/subscribers/${subscriber_id}`, { body })
        await again(project, "anna")
      },
    ],
  ]
  test.each(cases)("%s: %p", async (_, end, change) => {
    const one = await waiting()
    await change(one)
    expect(await one.end()).toEqual(end)
  })
})

test("what a device acknowledges needs the token of that very message", async () => {
  const [project, other] = [await service.project(), await service.project()]
  const told: { push_id: string; ack_token: string }[] = []
  for (const home of [project, project, other]) {
    await register(home, ["phone", "ann"], at(`acks-${home.project_id}`))
    await reached(home, { user_id: "ann" })
    const sealed = web.requests.at(-1)?.body ?? new Uint8Array()
    told.push(JSON.parse(browser.open(sealed).toString()).notification.data)
  }
  const [mine, second, far] = told
  if (!mine || !second || !far) throw new Error("three messages were sent")
  const stranger = bearer(await tokenOf(other, await addSubscriber(service, other, "ann")))
  const ack = async (push_id: string, ack_token?: string, headers = {}) => {
    const body = { event: "opened", ack_token }
    const answer = await service.anybody.post(`/v1/push/${push_id}/ack`, body, headers)
    return answer.status === 200 ? answer.body.data.recorded : answer.status
  }
  const { push_id, ack_token } = mine
  const turned = ack_token.replace(/^./, (first) => (first === "A" ? "B" : "A"))
  for (const forged of [turned, second.ack_token, far.ack_token, ack_token.slice(1), push_id, ""])
    expect([forged, await ack(push_id, forged)]).toEqual([forged, 401])
  expect(await ack(newId(), ack_token)).toBe(401)
  const unknown = newId()
  expect(await ack(unknown, ackToken(parts.secrets, unknown))).toBe(404)
  expect(await ack(push_id, undefined, stranger)).toBe(404)
  expect(await ack(push_id, undefined, { "x-api-key": other.key })).toBe(403)
  const shown = async () => (await project.get(`/v1/push/${push_id}`)).body.data
  expect(await shown()).toMatchObject({ status: "sent", delivered_at: null, opened_at: null })
  expect(await ack(push_id, ack_token)).toBeTrue()
  expect(await shown()).toMatchObject({ status: "delivered" })
  for (const { push_id } of [second, far]) {
    const home = push_id === far.push_id ? other : project
    expect((await home.get(`/v1/push/${push_id}`)).body.data.status).toBe("sent")
  }
})

test("an endpoint that leads inward is refused, and not asked where it does so later", async () => {
  const project = await service.project()
  let knocks = 0
  const knocked = () => void knocks++
  using inner = Bun.listen({
    ...{ hostname: "127.0.0.2", port: 0, socket: { open: knocked, data: knocked } },
  })
  const [PUBLIC, INNER, OWN] = ["93.184.216.34", "127.0.0.2", "127.0.0.1"]
  const endpoint = `https://push.rebind.test:${inner.port}/x`
  const put = (url: string, ...addresses: string[]) => {
    zone.set(new URL(url).hostname, addresses)
    return register(project, ["phone", "ann"], url)
  }
  const plain = `http://own.rebind.test:${web.port}/plain`
  const refused = [
    await put(endpoint, INNER),
    await put(endpoint, PUBLIC, INNER),
    await put(endpoint, "10.0.0.1"),
    await put(`https://127.0.0.2:${inner.port}/x`),
    await put(plain, PUBLIC),
  ]
  for (const one of refused) expect(refusal(one)).toEqual([422, "invalid_url"])

  const ending = { status: "failed", error_code: "provider_rejected" }
  expect((await put(endpoint, PUBLIC)).status).toBe(201)
  for (const turned of [[INNER], [PUBLIC, INNER]]) {
    zone.set("push.rebind.test", turned)
    expect(await endOf(project, { user_id: "ann" })).toMatchObject(ending)
    const tried = await project.post("/v1/push/config/webpush/test", { device_id: "phone" })
    expect(refusal(tried)).toEqual([502, "provider_error"])
  }
  expect((await put(plain, OWN)).status).toBe(200)
  expect(await reached(project, { user_id: "ann" })).toEqual(["plain"])
  zone.set("own.rebind.test", [PUBLIC])
  expect(await endOf(project, { user_id: "ann" })).toMatchObject(ending)
  expect(knocks).toBe(0)

  using elsewhere = pushService()
  using leading = pushService(() => Response.redirect(`${elsewhere.url}/s`, 307))
  await put(`${leading.url}/s`)
  expect(await endOf(project, { user_id: "ann" })).toMatchObject(ending)
  expect([leading.requests.length, elsewhere.requests.length]).toEqual([1, 0])
  expect(await deviceOf(project, "phone")).toMatchObject({ status: "active" })
})

const PAYLOADS: [PushProvider, (built: BuiltFrom) => string, object][] = [
  ["apns", apnsPayload, { platform: "ios", token: "a1".repeat(32) }],
  ["fcm", fcmPayload, { platform: "android", token: "token" }],
  ["webpush", webPushPayload, { platform: "web" }],
]

test.each(PAYLOADS)(
  "a payload of %s may have 4,096 bytes, and leaves",
  async (provider, build, device) => {
    const project = await service.project()
    const subscription = { endpoint: at("large"), keys: browser.keys }
    const own = provider === "webpush" ? { ...device, subscription } : device
    for (const [name, access] of Object.entries({ apns: APNS, fcm: FCM }))
      expect((await project.call("PUT", `/v1/push/config/${name}`, { body: access })).status).toBe(
        200,
      )
    const added = await project.post("/v1/devices", { ...own, device_id: "d", user_id: "ann" })
    expect(added.status).toBe(201)
    const push = (x: string) => ({ title: "Grüße", priority: "high" as const, data: { x } })
    const content = push("")
    const empty = build({ push_id: newId(), ack_token: "x".repeat(22), content, badge: null })
    const room = MOST_PAYLOAD_BYTES - Buffer.byteLength(empty)
    const send = (bytes: number) =>
      project.post("/v1/push", { user_id: "ann", ...push("y".repeat(bytes)) })
    const large = await send(room + 1)
    expect(refusal(large)).toEqual([422, "validation_error"])
    expect(JSON.stringify(large.body.error)).toContain("4097 bytes")
    const { id } = (await send(room)).body.data
    await deliverPushes(service)
    expect((await project.get(`/v1/push/${id}`)).body.data).toMatchObject({
      status: "sent",
      provider,
    })
    const heard = {
      apns: () => Buffer.from(JSON.stringify(apns.asked.at(-1)?.body)),
      fcm: () => Buffer.from(JSON.stringify({ ...fcm.asked.at(-1)?.message, token: undefined })),
      webpush: () => browser.open(web.requests.at(-1)?.body ?? new Uint8Array()),
    }
    expect(heard[provider]().length).toBe(MOST_PAYLOAD_BYTES)
  },
)

test("one name in four scopes is four devices, and each is reached by its own id", async () => {
  const project = await service.project()
  await register(project, ["own", "bob"], at("bob"))
  const app = newId()
  const scopes = [
    "project",
    `application:${app}`,
    ...["live", "test"].map((one) => `environment:${app}:${one}`),
  ]
  const kept = { device_id: "same", user_id: "ann", platform: "web", provider: "webpush" } as const
  const all: { id: string; token: string }[] = []
  for (const [nth, scope] of scopes.entries()) {
    const own = { ...kept, scope, token: at(`scope-${nth}`), keys: browser.keys }
    all.push(await addDevice(store, project.project_id, own))
  }
  const named = await project.post("/v1/push", { device_id: "same", title: "Hi" })
  expect(refusal(named)).toEqual([409, "conflict"])
  const { reason, scopes: told } = named.body.error.details
  expect([reason, told.map(({ id }: { id: string }) => id).sort()]).toEqual([
    "ambiguous",
    all.map(({ id }) => id).sort(),
  ])
  const ways = [
    project.post("/v1/devices/same/unlink"),
    project.call("PATCH", "/v1/devices/same", { body: { enabled: false } }),
    project.post("/v1/push/config/webpush/test", { device_id: "same" }),
  ]
  for (const answer of await Promise.all(ways)) expect(refusal(answer)).toEqual([409, "conflict"])
  const batch = { messages: [{ device_id: "same", title: "Hi" }] }
  const { results } = (await project.post("/v1/push/batch", batch)).body.data
  expect(results).toMatchObject([{ index: 0, error: { code: "conflict" } }])

  for (const [nth, { id }] of all.entries())
    expect(await reached(project, { device_id: id })).toEqual([`scope-${nth}`])
  const ann = { user_id: "ann" }
  expect(await reached(project, ann)).toEqual(["scope-0", "scope-1", "scope-2"])
  expect(await reached(project, { ...ann, environment: "test" })).toEqual(["scope-3"])
  const foreign = await service.project()
  for (const { id } of all)
    expect(await reached(foreign, { device_id: id })).toBe("device_not_found")
  const renewed = await register(project, ["same", "ann"], at("renewed"))
  expect([renewed.status, renewed.body.data.id]).toEqual([200, all[0]?.id])
  expect(await reached(project, ann)).toEqual(["renewed", "scope-1", "scope-2"])
})
