import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { deviceNow } from "../../src/devices/find-device"
import { type DeviceScope, scopeOf, storedScope } from "../../src/devices/scope"
import { type DeviceRow, devices } from "../../src/devices/tables"
import { providerConfigs } from "../../src/providers/tables"
import { client, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { addSubscriber, bearer, tokenOf } from "../inbox/subscriber-app"
import { addDevice } from "../push/pushes"
import { data, phone, subscription } from "./registering"

const clock = movableClock()
const service = await sharedService()
const { store, anybody } = service
const ALL = "/v1/devices"

/** A project with two people, and their apps. */
async function people() {
  const project = await service.project()
  const app = async (external_id: string) => {
    const token = await tokenOf(project, await addSubscriber(service, project, external_id))
    const headers = bearer(token)
    return {
      call: (method: string, path: string, body?: object) =>
        anybody.call(method, path, { headers, ...(body && { body }) }),
    }
  }
  return { project, ann: await app("ann"), bob: await app("bob") }
}

describe("a device", () => {
  test("is registered, and known again by its name", async () => {
    const project = await service.project()
    const subscriber_id = await addSubscriber(service, project, "ann")
    const made = await project.post(ALL, phone({ metadata: { theme: "dark" }, app_id: "x.y" }))
    expect(made.status).toBe(201)
    expect(data(made)).toMatchObject({
      ...{ device_id: "phone-1", user_id: "ann", subscriber_id, provider: "fcm" },
      ...{ token: "token-1", scope: { type: "project" }, status: "active", failure_count: 0 },
      ...{ metadata: { theme: "dark" }, app_id: "x.y", last_success_at: null },
    })
    clock.advance({ seconds: 60 })
    const again = await project.post(ALL, phone({ token: "token-2", locale: "de-AT" }))
    expect(again.status).toBe(200)
    expect(data(again)).toMatchObject({
      ...{ id: data(made).id, token: "token-2", locale: "de-AT", metadata: { theme: "dark" } },
      ...{ created_at: data(made).created_at },
    })
    expect(data(again).last_active_at > data(made).last_active_at).toBe(true)
    const stats = { total: 1, active: 1, expired: 0, by_platform: { android: 1, ios: 0 } }
    expect(data(await project.get(`${ALL}/stats`))).toMatchObject(stats)
    for (const name of ["phone-1", data(made).id])
      expect(data(await project.get(`${ALL}/${name}`))).toEqual(data(again))
    expect(data(await project.get(`/v1/subscribers/${subscriber_id}`)).devices).toBe(1)
  })

  test("gets a name where its app has none, and keeps it while it has the token", async () => {
    const project = await service.project()
    const nameless = { user_id: "ann", platform: "ios", token: "abc" }
    const made = await project.post(ALL, nameless)
    const again = await project.post(ALL, nameless)
    expect([made.status, again.status]).toEqual([201, 200])
    expect(data(again).device_id).toBe(data(made).device_id)
    expect(data(made)).toMatchObject({ provider: "apns", apns_environment: null })
  })

  test("that was installed again keeps its record under the new name", async () => {
    const project = await service.project()
    const made = data(await project.post(ALL, phone()))
    const renamed = await project.post(ALL, phone({ device_id: "phone-2" }))
    expect([renamed.status, data(renamed).id]).toEqual([201, made.id])
    const other = data(await project.post(ALL, phone({ token: "token-2" })))
    // Now the name has a record, too: that one is kept, and the other one makes place.
    const both = await project.post(ALL, phone())
    expect([both.status, data(both).id]).toEqual([200, other.id])
    const { body } = await project.get(ALL)
    expect([body.data.map(({ id }: DeviceRow) => id), body.meta.total]).toEqual([[other.id], 1])
    const taken = await project.post(ALL, phone({ device_id: "phone-3", user_id: "bob" }))
    expect(refusal(taken)).toEqual([409, "duplicate_device"])
    expect(taken.body.error.details).toEqual({ device_id: "phone-1" })
    await project.post(`${ALL}/phone-1/unlink`)
    const free = await project.post(ALL, phone({ device_id: "phone-3", user_id: "bob" }))
    expect([free.status, data(free).id, data(free).user_id]).toEqual([201, other.id, "bob"])
  })

  test("that is expired is active again with a new token, and one that is disabled only when somebody says so", async () => {
    const { project } = await people()
    const { id } = data(await project.post(ALL, phone()))
    const row = (await deviceNow(store.read, id)) as DeviceRow
    await service.parts.device_fates.gone(row, "unregistered")
    const expired = await project.call("PATCH", `${ALL}/${id}`, { body: { enabled: true } })
    expect(data(expired)).toMatchObject({ status: "expired", status_reason: "unregistered" })
    const back = await project.call("PATCH", `${ALL}/${id}`, {
      body: { token: "token-9", os_version: null },
    })
    expect(data(back)).toMatchObject({ status: "active", status_reason: null, token: "token-9" })
    await project.call("PATCH", `${ALL}/${id}`, { body: { enabled: false } })
    expect(data(await project.get(`${ALL}?status=disabled&user_id=ann`))).toHaveLength(1)
    // Its app registers at each start.
    expect(data(await project.post(ALL, phone())).status).toBe("disabled")
    await project.call("PATCH", `${ALL}/${id}`, { body: { enabled: true } })
    expect(data(await project.get(`${ALL}/stats`))).toMatchObject({ total: 1, active: 1 })
  })

  test("is told what became of its messages, some seconds later", async () => {
    const project = await service.project()
    const { id } = data(await project.post(ALL, phone()))
    const row = (await deviceNow(store.read, id)) as DeviceRow
    const { device_fates } = service.parts
    for (let failures = 0; failures < 3; failures++) device_fates.failed(row)
    await device_fates.flush()
    expect(data(await project.get(`${ALL}/${id}`)).failure_count).toBe(3)
    device_fates.succeeded(row)
    device_fates.failed(row)
    await device_fates.flush()
    const { failure_count, last_success_at } = data(await project.get(`${ALL}/${id}`))
    expect([failure_count, typeof last_success_at]).toEqual([1, "string"])
    await project.post(ALL, phone({ token: "another" }))
    device_fates.failed(row)
    await device_fates.flush()
    expect(data(await project.get(`${ALL}/${id}`)).failure_count).toBe(0)
  })

  test("of a person with too many gives way, the expired one first", async () => {
    const project = await service.project()
    const { project_id } = project
    for (let at = 0; at < 100; at++) {
      const status = at === 50 ? ("expired" as const) : ("active" as const)
      const last_active_at = `2026-01-01T00:00:00.${String(at).padStart(3, "0")}Z`
      const own = { device_id: `d${at}`, user_id: "ann", status, last_active_at }
      await addDevice(store, project_id, own)
    }
    await project.post(ALL, phone({ device_id: "new-1", token: "new-1" }))
    await project.post(ALL, phone({ device_id: "new-2", token: "new-2" }))
    const gone = await Promise.all(["d50", "d0"].map((name) => project.get(`${ALL}/${name}`)))
    expect(gone.map(({ status }) => status)).toEqual([404, 404])
    expect(data(await project.get(`${ALL}/stats`)).total).toBe(100)
    const removed = await project.call("DELETE", `${ALL}/user/ann`)
    expect(data(removed)).toEqual({ user_id: "ann", deleted: 100 })
    expect(data(await project.get(`${ALL}/stats`)).by_platform.android).toBe(0)
  })
})

describe("an app with the token of a subscriber", () => {
  test("registers and changes its own devices, and sees no token", async () => {
    const { project, ann, bob } = await people()
    const given = { device_id: "web-1", platform: "web", user_id: "bob", application_id: newId() }
    const made = await ann.call("POST", ALL, { ...given, subscription: subscription() })
    expect([made.status, data(made).user_id, data(made).token]).toEqual([201, "ann", null])
    const ours = eq(providerConfigs.project_id, project.project_id)
    const [config] = await store.read.select().from(providerConfigs).where(ours)
    expect(config?.provider).toBe("webpush")
    for (const [method, path, body] of [
      ["PATCH", "", { locale: "de" }],
      ["DELETE", "", undefined],
      ["POST", "/unlink", undefined],
    ] as const) {
      const refused = await bob.call(method, `${ALL}/web-1${path}`, body)
      expect(refusal(refused)).toEqual([404, "device_not_found"])
      const by_id = await ann.call(method, `${ALL}/${data(made).id}${path}`, body)
      expect(refusal(by_id)).toEqual([404, "device_not_found"]) // a record is not a name it presents
    }
    expect(refusal(await ann.call("GET", `${ALL}/web-1`))[0]).toBe(403)
    const changed = await ann.call("PATCH", `${ALL}/web-1`, { timezone: "Europe/Vienna" })
    expect(data(changed)).toMatchObject({ timezone: "Europe/Vienna", token: null })
    const unlinked = await ann.call("POST", `${ALL}/web-1/unlink`)
    expect(data(unlinked)).toMatchObject({ user_id: null, subscriber_id: null })
    expect((await bob.call("DELETE", `${ALL}/web-1`)).status).toBe(200)
  })

  test("takes over a device with its token, and never by its name alone", async () => {
    const { ann, bob } = await people()
    const shared = { device_id: "tablet", platform: "android", token: "tablet-token" }
    const { id } = data(await ann.call("POST", ALL, shared))
    const named = await bob.call("POST", ALL, { ...shared, token: "bobs-token" })
    expect(refusal(named)).toEqual([409, "duplicate_device"])
    const proven = await bob.call("POST", ALL, shared)
    expect([proven.status, data(proven).id, data(proven).user_id]).toEqual([200, id, "bob"])
  })
})

describe("the scope of a device", () => {
  const application_id = newId()
  const bound = (kind: "app" | "user" | "key", environment: "live" | "test" | null) => ({
    kind,
    application: { id: application_id, environment, environment_id: null },
  })
  const SCOPES: [Parameters<typeof scopeOf>[0], DeviceScope][] = [
    [{ kind: "key", application: null }, { type: "project" }],
    [bound("app", null), { type: "application", application_id }],
    [bound("app", "live"), { type: "environment", application_id, environment: "live" }],
    [bound("user", "test"), { type: "environment", application_id, environment: "test" }],
  ]

  test("of a key is the project, whichever application it names beside itself", () => {
    expect(scopeOf(bound("key", "live"))).toEqual({ type: "project" })
  })

  test.each(SCOPES)("of %o is %o", (credential, scope) => {
    expect(scopeOf(credential)).toEqual(scope)
  })

  test("keeps equal names apart, and a key names the record that it means", async () => {
    const { project, ann } = await people()
    const all: DeviceRow[] = []
    for (const [, scope] of SCOPES) {
      const own = { device_id: "same", user_id: "ann", scope: storedScope(scope) }
      all.push(await addDevice(store, project.project_id, own))
    }
    const found = await project.get(`${ALL}/same`)
    expect(refusal(found)).toEqual([409, "conflict"])
    const { reason, scopes } = found.body.error.details
    expect([reason, scopes.length]).toEqual(["ambiguous", 4])
    for (const [at, { id }] of all.entries()) {
      expect(scopes).toContainEqual({ id, scope: SCOPES[at]?.[1] })
      expect(data(await project.get(`${ALL}/${id}`)).scope).toEqual(SCOPES[at]?.[1])
    }
    for (const [type, n] of [
      ["project", 1],
      ["application", 1],
      ["environment", 2],
    ] as const)
      expect(data(await project.get(`${ALL}?scope=${type}&user_id=ann`))).toHaveLength(n)
    const own = await ann.call("PATCH", `${ALL}/same`, { app_version: "2" })
    expect(data(own).id).toBe(all[0]?.id)
    expect(refusal(await project.call("DELETE", `${ALL}/same`))).toEqual([409, "conflict"])
    expect((await project.call("DELETE", `${ALL}/${all[3]?.id}`)).status).toBe(200)
    const elsewhere = client(service.app, (await service.project()).key)
    expect(refusal(await elsewhere.get(`${ALL}/${all[0]?.id}`))).toEqual([404, "device_not_found"])
    const left = await store.read.select().from(devices).where(eq(devices.device_id, "same"))
    expect(left).toHaveLength(3)
  })
})
