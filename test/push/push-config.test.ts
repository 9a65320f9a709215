import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { sleep } from "../../src/core/time"
import { ensureWebPush, publicKeyOf } from "../../src/push/vapid"
import { pushService, subscriber } from "../fakes/push-service"
import { client } from "../harness/client"
import { type Team, team } from "../harness/people"
import { type TestService, testService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"
import { addDevice } from "./pushes"

const ALL = "/v1/push/config"
const WEBPUSH = `${ALL}/webpush`
const PUBLIC_KEY = "/v1/push/webpush/public-key"
const SUBJECT = { subject: "mailto:ops@belfry.test" }

const here = ({ account_id, project_id }: Team) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

async function office() {
  const service = await testService()
  const home = await team(service)
  const { owner } = home
  const call = (method: string, path: string, body?: object) =>
    owner.call(method, path, { headers: here(home), ...(body && { body }) })
  return {
    ...{ service, home, call },
    publicKey: async () => (await call("GET", PUBLIC_KEY)).body.data.public_key,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

async function running({ parts, store }: TestService) {
  const loop = new WorkLoops({
    ...{ store, work: workOf(parts, {} as never, parts), concurrency: 4, lease_ms: 30_000 },
    alone: engine === "sqlite",
  })
  await loop.start()
  return { [Symbol.asyncDispose]: () => loop.stop(5_000) }
}

test("Web Push works unconfigured: the key pair is made once, also for many that ask at once", async () => {
  await using it = await office()
  const { service, home, call } = it
  expect((await call("GET", ALL)).body.data).toEqual({ apns: null, fcm: null, webpush: null })
  const keys = await Promise.all([1, 2, 3, 4].map(() => it.publicKey()))
  expect(new Set(keys).size).toBe(1)
  expect(keys[0]).toMatch(/^[\w-]{87}$/)
  const { store, parts } = service
  const row = await ensureWebPush(store, parts.secrets, home)
  expect(publicKeyOf(parts.secrets, row)).toBe(keys[0])
  const { webpush } = (await call("GET", ALL)).body.data
  expect(webpush).toMatchObject({ kind: "push_provider", provider: "webpush", name: "webpush" })
  expect(webpush.credentials.vapid_private_key).toMatch(/^\*{4}.{4}$/)
  const log = await call("GET", "/v1/audit-log?target_type=provider_config")
  expect(log.body.data).toMatchObject([{ action: "provider.created", actor: { type: "system" } }])
})

describe("a configuration", () => {
  test("of Web Push keeps its pair with another subject, takes a whole pair, and refuses half or a wrong one", async () => {
    await using it = await office()
    const { call } = it
    const made = await it.publicKey()
    const kept = await call("PUT", WEBPUSH, SUBJECT)
    expect([kept.status, kept.body.data.credentials.vapid_public_key]).toEqual([200, made])
    expect(await it.publicKey()).toBe(made)
    const pair = {
      vapid_public_key:
        "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
      vapid_private_key: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
    }
    const { vapid_public_key, vapid_private_key } = pair
    const near = await call("PUT", WEBPUSH, { ...SUBJECT, vapid_publickey: "x" })
    expect(near.body.meta.warnings).toMatchObject([{ field: "vapid_publickey" }])
    for (const [body, field] of [
      [{}, "subject"],
      [{ subject: "ops@belfry.test" }, "subject"],
      [{ ...SUBJECT, vapid_public_key }, "vapid_private_key"],
      [{ ...SUBJECT, vapid_private_key }, "vapid_public_key"],
      [{ ...SUBJECT, vapid_private_key, vapid_public_key: made }, "vapid_private_key"],
    ] as const) {
      const { status, body: answer } = await call("PUT", WEBPUSH, body)
      expect([status, JSON.stringify(answer.error.details).includes(`"${field}"`)]).toEqual([
        422,
        true,
      ])
    }
    expect((await call("PUT", WEBPUSH, { ...SUBJECT, ...pair })).status).toBe(200)
    expect(await it.publicKey()).toBe(vapid_public_key)
    const shown = (await call("GET", ALL)).body.data.webpush
    expect(JSON.stringify(shown)).not.toContain(vapid_private_key)
    expect((await call("GET", "/v1/providers?kind=push_provider")).body.data).toEqual([shown])
  })

  test("is deleted once, and the next use of Web Push makes another pair", async () => {
    await using it = await office()
    const { call } = it
    const first = await it.publicKey()
    expect((await call("DELETE", WEBPUSH)).body.data).toMatchObject({ deleted: true })
    expect((await call("DELETE", WEBPUSH)).status).toBe(404)
    expect((await call("PUT", `${ALL}/pigeon`, SUBJECT)).status).toBe(404)
    expect(await it.publicKey()).not.toBe(first)
  })

  test("made through the providers is shown, changed and deleted here, the first of its order", async () => {
    await using it = await office()
    const { call } = it
    const path = "/v1/providers/push_provider/config"
    const later = { provider: "webpush", name: "later", priority: 200, credentials: SUBJECT }
    await call("POST", path, later)
    const main = await call("POST", path, { ...later, name: "main", priority: 5 })
    expect(main.status).toBe(201)
    const { id } = main.body.data
    expect((await call("GET", ALL)).body.data.webpush.id).toBe(id)
    expect((await call("PUT", WEBPUSH, SUBJECT)).body.data).toMatchObject({ id, priority: 5 })
    expect((await call("DELETE", WEBPUSH)).body.data.id).toBe(id)
    expect((await call("GET", ALL)).body.data.webpush.name).toBe("later")
  })

  test("is changed by keys that may write, and by people that are admins of the project", async () => {
    await using it = await office()
    const { service, home } = it
    const developer = await home.join("member")
    const role = { user_id: developer.id, role: "developer" }
    await it.call("POST", `/v1/projects/${home.project_id}/members`, role)
    const ask = { body: SUBJECT, headers: here(home) }
    const refused = await developer.call("PUT", WEBPUSH, ask)
    expect([refused.status, refused.body.error.details]).toEqual([
      403,
      { required_role: "project_admin" },
    ])
    const wanted = { name: "push", scopes: ["push:write"] }
    const { key } = (await it.call("POST", "/v1/api-keys", wanted)).body.data
    expect((await client(service.app, key).call("PUT", WEBPUSH, { body: SUBJECT })).status).toBe(
      200,
    )
  })
})

test("every change is told to the admins by mail, with names and without values", async () => {
  await using it = await office()
  const { service, home, call } = it
  await it.publicKey()
  const path = "/v1/providers/push_provider/config"
  await call("PUT", WEBPUSH, SUBJECT)
  const { id } = (await call("GET", ALL)).body.data.webpush
  await call("PATCH", `${path}/${id}`, { settings: { max_per_second: 7777 } })
  await call("DELETE", `${path}/${id}`)
  const other = { provider: "smtp", credentials: { host: "127.0.0.1", port: 2525 } }
  await call("POST", "/v1/providers/email_provider/config", other)
  await using _ = await running(service)
  while (service.mails.length < 3) await sleep(10)
  const told = service.mails.filter(({ kind }) => kind === "provider_changed")
  expect(told.map(({ to }) => to)).toEqual([1, 2, 3].map(() => home.owner.email))
  const fields = told.map(({ text }) => /Fields: (.*)/.exec(text)?.[1] ?? "none")
  expect(fields.sort()).toEqual(["max_per_second", "none", "subject"])
  const whole = told.map(({ subject, text }) => subject + text).join()
  expect(whole).toContain("Pat updated webpush (webpush)")
  expect(whole).not.toMatch(/7777|ops@belfry/)
})

describe("a test of a provider", () => {
  test("signs, or sends to one device through that provider alone", async () => {
    await using it = await office()
    const { service, home, call } = it
    using push = pushService()
    const at = `${WEBPUSH}/test`
    const signed = await call("POST", at, {})
    expect([signed.status, signed.body.data.ok]).toEqual([200, true])
    const { keys, open } = subscriber()
    const web = { platform: "web", provider: "webpush", token: `${push.url}/s`, keys } as const
    const device = await addDevice(service.store, home.project_id, web)
    const phone = await addDevice(service.store, home.project_id)
    const tried = await call("POST", at, { device_id: device.device_id })
    expect(tried.body.data.detail).toStartWith(`It accepted a push message to ${device.device_id}`)
    const [request] = push.requests
    expect(JSON.parse(open(request?.body ?? new Uint8Array()).toString())).toMatchObject({
      notification: { title: "Belfry" },
    })
    const row = (await call("GET", ALL)).body.data.webpush
    const path = `/v1/providers/push_provider/config/${row.id}/test`
    expect((await call("POST", path, { to: device.id })).status).toBe(200)
    const answers = await Promise.all(
      [newId(), "nobody", phone.device_id].map((device_id) => call("POST", at, { device_id })),
    )
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 422])
    expect((await call("POST", `${ALL}/apns/test`, {})).status).toBe(404)
    push[Symbol.dispose]()
    const refused = await call("POST", at, { device_id: device.id })
    expect([refused.status, refused.body.error.code]).toEqual([502, "provider_error"])
  })
})
