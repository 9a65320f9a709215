import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { countLogin } from "../../src/auth/guesses"
import { login } from "../../src/auth/login"
import { memberships } from "../../src/auth/organizations/tables"
import { userLinks, userSessions, users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { newApplication, type TestApplication } from "../harness/application"
import { complaints, type Reply, refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const PATH = "/v1/auth/users"
const PASSWORD = "correct-Horse-7"
const CLIENT = { ip: "192.0.2.7", user_agent: null }

async function shop(options: Parameters<typeof newApplication>[2] = {}) {
  const project = await service.project()
  const app = await newApplication(service, project, options)
  const add = async (fields: object = {}) =>
    (await project.post(PATH, { email: `${newId()}@people.test`, ...fields })).body.data
  return { project, app, add }
}

const signIn = async (app: TestApplication, email: string, password = PASSWORD) => {
  const answer = await login(
    service.parts.auth,
    await app.environment(),
    { email, password },
    CLIENT,
  )
  if (!("tokens" in answer)) throw new Error("a second factor is asked for")
  return answer
}

const actionsOn = async (id: string) =>
  (await service.store.read.select().from(auditLog).where(eq(auditLog.target_id, id))).map(
    ({ action }) => action,
  )

const eventsOn = async (get: (path: string) => Promise<Reply>, type: string) =>
  (await get(`/v1/events?types=${type}`)).body.data.map(({ data }: { data: object }) => data)

test("two users that take one address or number at once: one has it, the other is refused", async () => {
  const { project, add } = await shop()
  const both = [await add(), await add()]
  for (const wanted of [{ email: `${newId()}@people.test` }, { phone_number: "+4915112345699" }]) {
    const answers = await Promise.all(
      both.map(({ id }) => project.call("PATCH", `${PATH}/${id}`, { body: wanted })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  }
})

describe("a user that a server adds", () => {
  test("is shown with what only servers see, and told of", async () => {
    const { project, app } = await shop()
    const added = await project.post(PATH, {
      email: "Ann <Ann@Example.test>",
      phone_number: "+4915112345678",
      name: "Ann",
      email_verified: true,
      metadata: { plan: "gold" },
      app_metadata: { role: "editor" },
    })
    expect(added.status).toBe(201)
    const { data } = added.body
    expect(data).toMatchObject({
      application_id: app.id,
      environment: "live",
      email: "Ann@Example.test",
      email_verified: true,
      phone_number: "+4915112345678",
      phone_verified: false,
      status: "active",
      app_metadata: { role: "editor" },
      identities: [],
    })
    expect((await project.get(`${PATH}/${data.id}`)).body.data).toEqual(data)
    const [told] = await eventsOn(project.get, "user.created")
    expect(told).toMatchObject({ user: { id: data.id }, metadata: { environment: "live" } })
    expect(await actionsOn(data.id)).toEqual(["user.created"])
  })

  test("signs in with the password that the server gave", async () => {
    const { app, add } = await shop()
    const { email } = await add({ password: PASSWORD })
    expect((await signIn(app, email)).user.last_login_at).not.toBeNull()
  })

  test("has an address, or a number, of nobody else, and a good password", async () => {
    const { project, add } = await shop()
    const { id, email } = await add()
    const again = await project.post(PATH, { email: email.toUpperCase() })
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toMatchObject({ field: "email", id })
    expect(complaints(await project.post(PATH, { name: "Ann" }))).toEqual(["email"])
    expect(refusal(await project.post(PATH, { email: "ann" }))).toEqual([422, "invalid_email"])
    const phone = await project.post(PATH, { phone_number: "0151" })
    expect(refusal(phone)).toEqual([422, "invalid_phone_number"])
    const weak = await project.post(PATH, { email: "b@people.test", password: "short" })
    expect(refusal(weak)).toEqual([422, "weak_password"])
  })

  test("is another one in the other environment", async () => {
    const { project, add } = await shop()
    const { email } = await add()
    const other = await project.post(PATH, { email, environment: "test" })
    expect(other.body.data).toMatchObject({ email, environment: "test" })
    const listed = await project.get(PATH, { "x-environment": "test" })
    expect(listed.body.data).toHaveLength(1)
  })

  test("is of nobody else's project", async () => {
    const { add } = await shop()
    const { id } = await add()
    const stranger = await service.project()
    await newApplication(service, stranger)
    const calls = [
      stranger.get(`${PATH}/${id}`),
      stranger.get(`${PATH}/${id}/sessions`),
      stranger.call("PATCH", `${PATH}/${id}`, { body: { name: "x" } }),
      stranger.call("DELETE", `${PATH}/${id}`),
      stranger.call("DELETE", `${PATH}/${id}/sessions`),
      stranger.post(`${PATH}/${id}/suspend`, {}),
      stranger.post(`${PATH}/${id}/activate`),
      stranger.post(`${PATH}/${id}/password`, { password: PASSWORD }),
      stranger.post(`${PATH}/${id}/impersonate`, { reason: "x" }),
    ]
    for (const reply of await Promise.all(calls))
      expect(refusal(reply)).toEqual([404, "user_not_found"])
  })
})

describe("the list of users", () => {
  test("is filtered by each of its filters, and by several", async () => {
    const { project, app, add } = await shop()
    const ann = await add({ name: "Ann Example", phone_number: "+4915112345678" })
    const bob = await add({ name: "Bob" })
    await project.post(`${PATH}/${bob.id}/suspend`, {})
    const { default_organization_id } = await app.environment()
    const ids = async (query: Record<string, string>) =>
      (await project.get(`${PATH}?${new URLSearchParams(query)}`)).body.data.map(
        ({ id }: { id: string }) => id,
      )
    expect(await ids({})).toEqual([bob.id, ann.id])
    expect(await ids({ email: ann.email.toUpperCase() })).toEqual([ann.id])
    expect(await ids({ phone_number: "+4915112345678" })).toEqual([ann.id])
    expect(await ids({ status: "suspended" })).toEqual([bob.id])
    expect(await ids({ q: "EXAMPLE" })).toEqual([ann.id])
    expect(await ids({ q: "5112" })).toEqual([ann.id])
    expect(await ids({ organization_id: default_organization_id })).toEqual([bob.id, ann.id])
    expect(await ids({ organization_id: default_organization_id, q: "bob" })).toEqual([bob.id])
    expect(await ids({ organization_id: newId() })).toEqual([])
    expect(await ids({ organization_id: "none" })).toEqual([])
    const both = { email: ann.email, organization_id: default_organization_id }
    expect(await ids(both)).toEqual([ann.id])
    expect(await ids({ email: ann.email, organization_id: newId() })).toEqual([])
    expect(await ids({ email: ann.email, status: "suspended" })).toEqual([])
    expect(await ids({ environment: "test" })).toEqual([])
    expect(await ids({ application_id: app.id, after: bob.id })).toEqual([ann.id])
  })

  test("has totals of counters, which follow each change", async () => {
    const { project, add } = await shop()
    const { id } = await add()
    await add()
    const total = async (query = "") => (await project.get(`${PATH}${query}`)).body.meta.total
    expect([await total(), await total("?status=active")]).toEqual([2, 2])
    await project.post(`${PATH}/${id}/suspend`, {})
    expect([await total("?status=active"), await total("?status=suspended")]).toEqual([1, 1])
    await project.call("DELETE", `${PATH}/${id}`)
    expect([await total(), await total("?status=suspended")]).toEqual([1, 0])
  })
})

describe("a change of a user", () => {
  test("replaces what it names, and a new address is not verified", async () => {
    const { project, add } = await shop()
    const { id } = await add({ email_verified: true, metadata: { a: 1 }, name: "Ann" })
    const change = (body: object) => project.call("PATCH", `${PATH}/${id}`, { body })
    const profile = await change({ metadata: { b: 2 }, app_metadata: { role: "x" }, locale: "de" })
    expect(profile.body.data).toMatchObject({
      ...{ name: "Ann", metadata: { b: 2 }, app_metadata: { role: "x" }, locale: "de" },
      email_verified: true,
    })
    const moved = await change({ email: "new@people.test", phone_number: "+4915112345678" })
    expect(moved.body.data).toMatchObject({ email_verified: false, phone_verified: false })
    const proven = await change({ email_verified: true, phone_verified: true })
    expect(proven.body.data).toMatchObject({ email_verified: true, phone_verified: true })
    expect(await eventsOn(project.get, "user.email_verified")).toHaveLength(1)
    expect(await eventsOn(project.get, "user.phone_verified")).toHaveLength(1)
    expect(refusal(await change({}))).toEqual([422, "validation_error"])
    expect(refusal(await change({ email: null, phone_number: null }))[0]).toBe(422)
    const { email } = await add()
    expect(refusal(await change({ email }))).toEqual([409, "conflict"])
    expect(await actionsOn(id)).toContain("user.updated")
  })
})

describe("a suspended user", () => {
  test("has no session, cannot sign in, and is active again afterwards", async () => {
    const { project, app, add } = await shop()
    const { id, email } = await add({ password: PASSWORD })
    const { tokens } = await signIn(app, email)
    const me = () => service.parts.auth.tokens.prove(tokens?.access_token ?? "")
    expect((await me()).live).toBeDefined()
    const suspended = await project.post(`${PATH}/${id}/suspend`, { reason: "abuse" })
    expect(suspended.body.data.status).toBe("suspended")
    expect((await me()).live).toBeUndefined()
    expect(await eventsOn(project.get, "user.session_revoked")).toHaveLength(1)
    expect(refusal(await project.post(`${PATH}/${id}/suspend`, {}))).toEqual([409, "conflict"])
    await expect(signIn(app, email)).rejects.toMatchObject({ code: "user_inactive" })
    expect((await project.post(`${PATH}/${id}/activate`)).body.data.status).toBe("active")
    expect(refusal(await project.post(`${PATH}/${id}/activate`))).toEqual([409, "conflict"])
    await signIn(app, email)
  })

  test("so is one who is locked out, whom activating lets in", async () => {
    const { project, app, add } = await shop()
    const { id, email } = await add({ password: PASSWORD })
    const environment = await app.environment()
    const attempt = { identifier: email, ip: "192.0.2.9" }
    for (let at = 0; at < 10; at++) await countLogin(service.parts.auth, environment, attempt)
    await expect(signIn(app, email)).rejects.toMatchObject({ code: "login_rate_limit_exceeded" })
    expect((await project.post(`${PATH}/${id}/activate`)).status).toBe(200)
    await signIn(app, email)
  })
})

describe("the password of a user", () => {
  test("is set by the policy, and ends the sessions", async () => {
    const { project, app, add } = await shop()
    const { id, email } = await add({ password: PASSWORD })
    await signIn(app, email)
    const set = (body: object) => project.post(`${PATH}/${id}/password`, body)
    expect(refusal(await set({ password: "short" }))).toEqual([422, "weak_password"])
    expect(refusal(await set({ password: PASSWORD }))).toEqual([422, "password_recently_used"])
    expect((await set({ password: "another-Horse-8" })).body.data).toEqual({ success: true })
    const sessions = async () => (await project.get(`${PATH}/${id}/sessions`)).body.data
    expect(await sessions()).toEqual([])
    await signIn(app, email, "another-Horse-8")
    await set({ password: "a-third-Horse-9", keep_sessions: true })
    expect(await sessions()).toHaveLength(1)
    expect((await project.call("DELETE", `${PATH}/${id}/sessions`)).body.data).toEqual({
      revoked: 1,
    })
    expect(await sessions()).toEqual([])
    expect(await eventsOn(project.get, "user.password_changed")).toHaveLength(2)
  })
})

describe("somebody of the project who acts as a user", () => {
  test("has a token that says so, which nothing renews", async () => {
    const { project, app, add } = await shop()
    const { id } = await add()
    const begin = (body: object) => project.post(`${PATH}/${id}/impersonate`, body)
    const begun = await begin({ reason: "ticket 4711", ttl_seconds: 600 })
    expect(begun.status).toBe(201)
    const { access_token, expires_in, session } = begun.body.data
    expect(Object.keys(begun.body.data).sort()).toEqual(["access_token", "expires_in", "session"])
    expect(expires_in).toBe(600)
    const { claims, live } = await service.parts.auth.tokens.prove(access_token)
    expect(claims).toMatchObject({ sub: id, sid: session.id, aud: app.id })
    expect(claims.act as object).toEqual({ sub: live?.session.act?.id })
    const [told] = await eventsOn(project.get, "user.impersonated")
    expect(told.metadata).toMatchObject({ reason: "ticket 4711", actor_id: live?.session.act?.id })
    expect(await actionsOn(id)).toContain("user.impersonated")
    expect(complaints(await begin({}))).toEqual(["reason"])
    expect(complaints(await begin({ reason: "x", ttl_seconds: 3601 }))).toEqual(["ttl_seconds"])
    await project.post(`${PATH}/${id}/suspend`, {})
    expect(refusal(await begin({ reason: "x" }))).toEqual([400, "user_inactive"])
  })
})

describe("an invited user", () => {
  const redirect_url = "https://app.example.test/welcome"

  test("is in the list, and its invitation is revoked with it", async () => {
    const { project } = await shop({ redirect_urls: [redirect_url] })
    const invite = (body: object) => project.post(`${PATH}/invite`, { redirect_url, ...body })
    const invited = await invite({ email: "ann@mailbox.test", name: "Ann", role: "editor" })
    expect(invited.status).toBe(201)
    const { id, expires_at } = invited.body.data
    expect(invited.body.data).toMatchObject({ email: "ann@mailbox.test", status: "invited" })
    expect(Date.parse(expires_at)).toBeGreaterThan(Date.now() + 6.9 * 86_400_000)
    const [listed] = (await project.get(`${PATH}?status=invited`)).body.data
    expect(listed).toMatchObject({ id, name: "Ann", email_verified: false })
    const { store } = service
    const [member] = await store.read.select().from(memberships).where(eq(memberships.user_id, id))
    expect(member?.role).toBe("editor")
    const again = await invite({ email: "ANN@mailbox.test" })
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(refusal(await project.post(`${PATH}/${id}/activate`))).toEqual([409, "conflict"])
    const open = () => store.read.select().from(userLinks).where(eq(userLinks.user_id, id))
    expect(await open()).toHaveLength(1)
    await project.call("DELETE", `${PATH}/${id}`)
    expect(await open()).toEqual([])
  })

  test("has an address that the environment takes, and an address to go to", async () => {
    const settings = { blocked_email_domains: ["blocked.test"] }
    const { project } = await shop({ redirect_urls: [redirect_url], settings })
    const invite = (body: object) => project.post(`${PATH}/invite`, { redirect_url, ...body })
    expect(refusal(await invite({ email: "a@blocked.test" }))).toEqual([403, "forbidden"])
    const elsewhere = { email: "a@mailbox.test", redirect_url: `${redirect_url}/` }
    expect(refusal(await invite(elsewhere))).toEqual([422, "invalid_url"])
    const nowhere = { email: "a@mailbox.test", organization_id: newId() }
    expect(refusal(await invite(nowhere))).toEqual([404, "not_found"])
  })
})

describe("a deleted user", () => {
  test("is gone with all rows, and the address is free", async () => {
    const { project, app, add } = await shop()
    const { id, email } = await add({ password: PASSWORD })
    await signIn(app, email)
    expect((await project.call("DELETE", `${PATH}/${id}`)).body.data).toEqual({ id, deleted: true })
    expect(refusal(await project.call("DELETE", `${PATH}/${id}`))).toEqual([404, "user_not_found"])
    const { read } = service.store
    expect(await read.select().from(users).where(eq(users.id, id))).toEqual([])
    const left = and(eq(userSessions.user_id, id))
    expect(await read.select().from(userSessions).where(left)).toEqual([])
    const [told] = await eventsOn(project.get, "user.deleted")
    expect(told.user).toEqual({ id, email })
    expect((await project.post(PATH, { email })).status).toBe(201)
    await expect(signIn(app, email)).rejects.toMatchObject({ code: "unauthorized" })
  })
})

test("a repeated request makes one user", async () => {
  const { project } = await shop()
  const key = { "idempotency-key": newId() }
  const body = { email: "ann@people.test" }
  const [one, other] = [await project.post(PATH, body, key), await project.post(PATH, body, key)]
  expect(other.body.data).toEqual(one.body.data)
})
