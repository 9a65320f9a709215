import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { endSessions } from "../../src/auth/end-sessions"
import { refuseImpersonated } from "../../src/auth/impersonation"
import { applications, users } from "../../src/auth/tables"
import { now } from "../../src/core/time"
import type { Caller } from "../../src/identity/caller"
import { projects } from "../../src/identity/tables"
import { subscribers } from "../../src/subscribers/tables"
import { data, phone } from "../devices/registering"
import { newApplication, signedUp, type TestUser } from "../harness/application"
import { callingWith, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { addSubscriber, bearer } from "../inbox/subscriber-app"
import { callerRows, FOR_ALL, FOR_APPS, FOR_SERVERS, FOR_USERS } from "./caller-rows"

const clock = movableClock()
const whole = await sharedService({ trusted_proxies: ["127.0.0.1"] })
const { store, parts } = whole
const rows = { store, parts, app: callerRows(whole) }
const INBOX = "/v1/subscriber-inbox"
const OURS = "https://app.example.test"

async function shop(options: Parameters<typeof newApplication>[2] = {}, plan = "enterprise") {
  const project = await whole.project({ plan })
  const own = await newApplication(rows, project, options)
  return { project, shop: own, ann: await signedUp(rows, own) }
}

/** The same user at the routes of the service. */
const atService = ({ access_token }: TestUser) => callingWith(whole.app, bearer(access_token))

const set = (user: TestUser, changes: Partial<typeof users.$inferSelect>) =>
  store.tx((tx) => tx.update(users).set(changes).where(eq(users.id, user.id)))

describe("the token of an end user", () => {
  test("is a caller of its application and environment", async () => {
    const { shop: own, ann } = await shop()
    const bob = await signedUp(rows, own, { environment: "test" })
    const [asked, tested] = [await ann.post(FOR_USERS, {}), await bob.post(FOR_ALL, {})]
    const end_user = { id: ann.id, session_id: ann.session_id, impersonated: false }
    expect(data(asked)).toMatchObject({ kind: "user", end_user, subscriber_id: null })
    expect(data(asked).environment).toEqual({ id: own.id, name: "live" })
    expect(data(tested).environment).toEqual({ id: own.id, name: "test" })
  })

  test("is refused at the next request once its session is revoked, or its user is not active", async () => {
    const { shop: own, ann } = await shop()
    const [bob, eve] = [await signedUp(rows, own), await signedUp(rows, own)]
    for (const one of [ann, bob, eve]) expect((await one.post(FOR_USERS, {})).status).toBe(200)
    const environment = await own.environment()
    const user = { ...ann, project_id: own.project_id }
    await store.tx((tx) => endSessions(tx, environment, user, { reason: "test" }))
    await set(bob, { status: "suspended" })
    await set(eve, { status: "deleted" })
    for (const one of [ann, bob, eve]) {
      expect(refusal(await one.post(FOR_USERS, {}))).toEqual([401, "unauthorized"])
    }
  })

  test("ends with its application, and with its project", async () => {
    const [first, second] = [await shop(), await shop()]
    const mine = eq(applications.id, first.shop.id)
    await store.tx((tx) => tx.update(applications).set({ deleting_at: now() }).where(mine))
    const theirs = eq(projects.id, second.project.project_id)
    await store.tx((tx) => tx.update(projects).set({ status: "deleting" }).where(theirs))
    for (const { ann } of [first, second])
      expect(refusal(await ann.post(FOR_USERS, {}))).toEqual([401, "unauthorized"])
  })

  test("beside a public key needs that of its environment", async () => {
    const { project, shop: own, ann } = await shop()
    const other = await newApplication(rows, project)
    const beside = async (key: string) =>
      (await ann.post(FOR_USERS, {}, { "x-application-key": key })).status
    expect(await beside(own.keys.live)).toBe(200)
    for (const key of [own.keys.test, own.keys.legacy, other.keys.live])
      expect(await beside(key)).toBe(401)
    expect((await ann.post(FOR_USERS, {}, { "x-application-secret": own.secret })).status).toBe(401)
    expect((await ann.post(FOR_USERS, {}, { "x-api-key": project.key })).status).toBe(401)
  })

  test("opens no row of others, and says whom these are for", async () => {
    const { ann } = await shop()
    for (const [path, role] of [
      [FOR_APPS, "app"],
      [FOR_SERVERS, "app"],
    ] as const) {
      const answer = await ann.post(path, {})
      expect(refusal(answer)).toEqual([403, "forbidden"])
      expect(answer.body.error.details).toEqual({ required_role: role })
    }
    const answer = await atService(ann).get("/v1/emails")
    expect(answer.body.error.details).toEqual({ required_scope: "email:read" })
  })

  test("has a window of its own, and is in the request log of its project", async () => {
    const { shop: own, ann, project } = await shop({}, "free")
    const bob = await signedUp(rows, own)
    clock.freeze()
    const left = async (one: TestUser) =>
      Number((await one.post(FOR_USERS, {})).headers.get("x-ratelimit-remaining"))
    expect([await left(ann), await left(ann), await left(bob)]).toEqual([59, 58, 59])
    await parts.requests.flush()
    const log = data(await project.get("/v1/request-log?per_page=100"))
    expect(log.filter((one: { path: string }) => one.path === FOR_USERS)).toHaveLength(3)
  })

  test("lets pages of listed origins read also why it is refused", async () => {
    const { shop: own, ann } = await shop({ allowed_origins: [OURS] })
    const from = async (origin: string) => {
      const { status, headers } = await ann.post(FOR_USERS, {}, { origin })
      return [status, headers.get("access-control-allow-origin")]
    }
    expect(await from(OURS)).toEqual([200, OURS])
    expect(await from("https://evil.test")).toEqual([403, null])
    clock.advance({ seconds: 3601 })
    expect(await from(OURS)).toEqual([401, OURS])
    expect(await from("https://evil.test")).toEqual([401, null])
    const asked = { origin: OURS, "access-control-request-method": "POST" }
    const { headers } = await own.app().call("OPTIONS", FOR_USERS, { headers: asked })
    expect(headers.get("access-control-allow-headers")).toContain("X-Application-Key")
  })

  test("of somebody who acts as the user changes nothing that proves the user", async () => {
    const { shop: own } = await shop()
    const act = { id: "key", reason: "help" }
    const acting = await signedUp(rows, own, { act })
    const caller = data(await acting.post(FOR_USERS, {})) as Caller
    expect(caller.end_user?.impersonated).toBe(true)
    expect(() => refuseImpersonated(caller)).toThrow("Only the user may do this.")
    expect(() => refuseImpersonated({ end_user: null })).not.toThrow()
  })
})

describe("an end user", () => {
  test("registers devices as their own, and changes those of nobody else", async () => {
    const { shop: own, ann } = await shop()
    const bob = await signedUp(rows, own)
    const made = await atService(ann).post("/v1/devices", phone({ user_id: "bob" }))
    expect([made.status, data(made).user_id]).toEqual([201, ann.id])
    const scope = { type: "environment", application_id: own.id, environment: "live" }
    expect([data(made).scope, data(made).token]).toEqual([scope, null])
    const change = { app_version: "2" }
    const one = "/v1/devices/phone-1"
    expect((await atService(ann).patch(one, change)).status).toBe(200)
    expect(refusal(await atService(bob).patch(one, change))).toEqual([404, "device_not_found"])
    const app = callingWith(whole.app, { "x-application-key": own.keys.live })
    expect(data(await app.post("/v1/devices", phone({ user_id: undefined }))).user_id).toBe(ann.id)
    expect((await app.patch(one, change)).status).toBe(200)
    const test = callingWith(whole.app, { "x-application-key": own.keys.test })
    expect(refusal(await test.patch(one, change))).toEqual([404, "device_not_found"])
    expect(data(await atService(ann).post(`${one}/unlink`)).user_id).toBeNull()
  })

  test("reads the inbox of the subscriber that they are, if they are one", async () => {
    const { project, ann } = await shop()
    expect(refusal(await atService(ann).get(INBOX))).toEqual([404, "subscriber_not_found"])
    const subscriber_id = await addSubscriber(whole, project)
    await set(ann, { subscriber_id })
    await project.post("/v1/inbox", { subscriber_id, title: "Hello" })
    const list = await atService(ann).get(INBOX)
    expect(data(list).map(({ title }: { title: string }) => title)).toEqual(["Hello"])
    expect((await atService(ann).post(`${INBOX}/ticket`)).status).toBe(201)
    const mine = eq(subscribers.id, subscriber_id)
    await store.tx((tx) => tx.update(subscribers).set({ status: "blocked" }).where(mine))
    expect(refusal(await atService(ann).get(INBOX))).toEqual([404, "subscriber_not_found"])
  })
})
