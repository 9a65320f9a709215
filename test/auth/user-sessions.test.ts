import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { decodeJwt } from "jose"
import { endSessions } from "../../src/auth/end-sessions"
import { findForUpdate, setUser } from "../../src/auth/end-users"
import { memberships, organizations } from "../../src/auth/organizations/tables"
import { userRefreshTokens } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { hashOfToken } from "../../src/sign-in/tokens"
import { newApplication, type TestApplication } from "../harness/application"
import { complaints, type Reply, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { asUser, type SignedIn, signInAgain, signUp } from "./signed-up"
import { eventsOf } from "./told-of"

const clock = movableClock()
const service = await sharedService()
const { store } = service

const REFRESH = "/v1/auth/sessions/refresh"
const REVOKE = "/v1/auth/sessions/revoke"
const INTROSPECT = "/v1/auth/sessions/introspect"
const SESSIONS = "/v1/auth/sessions"
const ME = "/v1/auth/users/me"
const DAY = 86_400

type Options = Parameters<typeof newApplication>[2]

async function shopOf(options: Options = {}) {
  const project = await service.project()
  return { project, shop: await newApplication(service, project, options) }
}

async function annIn(options: Options = {}) {
  const { project, shop } = await shopOf(options)
  return { project, shop, ann: await signUp(service, shop) }
}

const renew = (shop: TestApplication, refresh_token: string, more = {}) =>
  shop.app().post(REFRESH, { refresh_token, ...more })

const isIn = async (tokens: SignedIn["tokens"]) =>
  (await asUser(service, { tokens }).get(ME)).status === 200

const lastEvent = async (project: { project_id: string }) =>
  (await eventsOf(service, project)).at(-1)

describe("a refresh token", () => {
  test("brings new tokens once, and slides", async () => {
    const { shop, ann } = await annIn({ refresh_token_duration_days: 7 })
    let { tokens } = ann
    const seen = new Set([tokens.refresh_token])
    for (let week = 0; week < 3; week++) {
      clock.advance({ seconds: 6 * DAY })
      const { status, body } = await renew(shop, tokens.refresh_token)
      expect(status).toBe(200)
      expect(body.data).toMatchObject({
        session: { id: ann.session.id },
        organization: ann.organization,
      })
      expect(decodeJwt(body.data.tokens.access_token)).toMatchObject({
        sid: ann.session.id,
        amr: ["pwd"],
      })
      tokens = body.data.tokens
      seen.add(tokens.refresh_token)
      expect(await isIn(tokens)).toBe(true)
    }
    expect(seen.size).toBe(4)
    clock.advance({ seconds: 7 * DAY + 1 })
    expect(refusal(await renew(shop, tokens.refresh_token))).toEqual([401, "unauthorized"])
  })

  test("sent by fifty at once, and again within ten seconds, has one child", async () => {
    clock.freeze()
    const { shop, ann } = await annIn()
    const { refresh_token } = ann.tokens
    const answers = await Promise.all(Array.from({ length: 50 }, () => renew(shop, refresh_token)))
    const child = (answer: Reply) => answer.body.data.tokens.refresh_token
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(child)).size).toBe(1)
    clock.advance({ seconds: 10 })
    const late = await renew(shop, refresh_token)
    expect(child(late)).toBe(child(answers[0] as Reply))
    const mine = eq(userRefreshTokens.session_id, ann.session.id)
    expect(await store.read.select().from(userRefreshTokens).where(mine)).toHaveLength(2)
    expect((await renew(shop, child(late))).status).toBe(200)
  })

  test("used again later ends the session and says so", async () => {
    const { project, shop, ann } = await annIn()
    const next = (await renew(shop, ann.tokens.refresh_token)).body.data.tokens
    expect(await isIn(next)).toBe(true)
    clock.advance({ seconds: 11 })
    expect(refusal(await renew(shop, ann.tokens.refresh_token))).toEqual([401, "unauthorized"])
    expect(await lastEvent(project)).toMatchObject({
      type: "user.session_revoked",
      metadata: { reason: "token_reuse", session_id: ann.session.id, environment: "live" },
    })
    expect(await isIn(next)).toBe(false)
    expect(refusal(await renew(shop, next.refresh_token))).toEqual([401, "unauthorized"])
    const all = await eventsOf(service, project)
    expect(all.filter(({ type }) => type === "user.session_revoked")).toHaveLength(1)
  })

  test("works for its application and environment, and for keys of its project alone", async () => {
    const { project, shop, ann } = await annIn()
    const peer = await newApplication(service, project)
    const other = await shopOf()
    const { refresh_token } = ann.tokens
    const strangers = [
      ...[shop.app("test"), peer.app(), peer.server(), other.shop.app(), other.project].map(
        (door) => door.post(REFRESH, { refresh_token }),
      ),
      shop.server().post(REFRESH, { refresh_token, environment: "test" }),
      project.post(REFRESH, { refresh_token, application_id: peer.id }),
    ]
    for (const answer of await Promise.all(strangers))
      expect(refusal(answer)).toEqual([401, "unauthorized"])
    for (const text of ["x", ann.tokens.access_token, `${refresh_token}x`])
      expect(refusal(await renew(shop, text))).toEqual([401, "unauthorized"])
    const mine = { refresh_token, application_id: shop.id }
    const { status, body } = await project.post(REFRESH, mine)
    expect(status).toBe(200)
    const next = body.data.tokens.refresh_token
    expect((await shop.server().post(REFRESH, { refresh_token: next })).status).toBe(200)
    expect(refusal(await shop.app("legacy").post(REFRESH, mine))).toEqual([
      400,
      "environment_required",
    ])
    const unnamed = await project.post(REFRESH, { refresh_token: next })
    expect(refusal(unnamed)).toEqual([422, "missing_required_field"])
  })

  test("of a suspended user is refused as such, and uses nothing up", async () => {
    const { shop, ann } = await annIn()
    const become = (status: "active" | "suspended") =>
      store.tx(async (tx) =>
        setUser(tx, await findForUpdate(tx, shop.project_id, ann.user.id), { status }),
      )
    await become("suspended")
    for (const _ of [1, 2])
      expect(refusal(await renew(shop, ann.tokens.refresh_token))).toEqual([400, "user_inactive"])
    await become("active")
    expect((await renew(shop, ann.tokens.refresh_token)).status).toBe(200)
  })

  test("moves to another organization of the user, and back to Default where they left", async () => {
    const { shop, ann } = await annIn()
    const environment = await shop.environment()
    const at = { created_at: now(), updated_at: now() }
    const [team, foreign] = [newId(), newId()]
    const own = { project_id: shop.project_id, environment_id: environment.id }
    const seat = { id: newId(), organization_id: team, user_id: ann.user.id, role: "admin" }
    await store.tx(async (tx) => {
      for (const id of [team, foreign]) {
        const names = { application_id: shop.id, name: "Team", slug: id }
        await tx.insert(organizations).values({ id, ...own, ...names, ...at })
      }
      await tx.insert(memberships).values({ ...seat, ...own, permissions: [], ...at })
    })
    const first = ann.tokens.refresh_token
    const refused = await renew(shop, first, { organization_id: foreign })
    expect(refusal(refused)).toEqual([403, "forbidden"])
    const moved = (await renew(shop, first, { organization_id: team })).body.data
    expect(moved.organization).toEqual({ id: team, name: "Team", role: "admin" })
    expect(decodeJwt(moved.tokens.access_token)).toMatchObject({ org_id: team, org_role: "admin" })
    const stayed = (await renew(shop, moved.tokens.refresh_token)).body.data
    expect(stayed.organization.id).toBe(team)
    const me = (await asUser(service, stayed).get(ME)).body.data
    expect(me.organizations).toEqual([moved.organization, ann.organization])
    await store.tx((tx) => tx.delete(memberships).where(eq(memberships.id, seat.id)))
    const back = (await renew(shop, stayed.tokens.refresh_token)).body.data
    expect(back.organization).toEqual(ann.organization)
    const again = await signInAgain(service, shop, ann.user.id)
    expect(again.organization).toEqual(ann.organization)
  })

  test("is kept as a hash, and its child sealed for a minute", async () => {
    const { shop, ann } = await annIn()
    await renew(shop, ann.tokens.refresh_token)
    const own = eq(userRefreshTokens.session_id, ann.session.id)
    const rows = await store.read.select().from(userRefreshTokens).where(own)
    expect(
      rows.some(({ token_hash }) => token_hash === hashOfToken(ann.tokens.refresh_token)),
    ).toBe(true)
    expect(JSON.stringify(rows)).not.toContain("belfry_refresh")
  })
})

describe("sessions of a user", () => {
  test("are listed, the newest first, and end one by one for the next request", async () => {
    const { project, shop, ann } = await annIn()
    const client = { ip: "198.51.100.9", user_agent: "okhttp/4.12" }
    const phone = await signInAgain(service, shop, ann.user.id, { client })
    const eve = await signUp(service, shop)
    const { body } = await asUser(service, ann).get(SESSIONS)
    const times = { created_at: expect.any(String), last_used_at: expect.any(String) }
    const same = { ...times, organization_id: ann.organization.id, expires_at: expect.any(String) }
    expect(body.data).toEqual([
      { id: phone.session.id, current: false, device: "okhttp", ip: client.ip, ...same },
      { id: ann.session.id, current: true, device: "Firefox on Linux", ip: "192.0.2.7", ...same },
    ])
    const one = `${SESSIONS}/${phone.session.id}`
    expect(refusal(await asUser(service, eve).remove(one))).toEqual([404, "not_found"])
    expect(await isIn(phone.tokens)).toBe(true)
    const gone = await asUser(service, ann).remove(one)
    expect(gone.body.data).toEqual({ id: phone.session.id, deleted: true })
    expect(await isIn(phone.tokens)).toBe(false)
    expect(refusal(await renew(shop, phone.tokens.refresh_token))).toEqual([401, "unauthorized"])
    expect(await lastEvent(project)).toMatchObject({
      type: "user.session_revoked",
      user: { id: ann.user.id },
      metadata: { session_id: phone.session.id, reason: "revoked" },
    })
    for (const again of [one, `${SESSIONS}/x`, `${SESSIONS}/${newId()}`])
      expect(refusal(await asUser(service, ann).remove(again))).toEqual([404, "not_found"])
  })

  test("end all but the present one, or all", async () => {
    const { shop, ann } = await annIn()
    const others = [1, 2, 3].map(() => signInAgain(service, shop, ann.user.id))
    const more = await Promise.all(others)
    const revoke = (who: typeof ann, body: object) =>
      asUser(service, who).post(`${SESSIONS}/revoke-all`, body)
    expect((await revoke(ann, {})).body.data).toEqual({ revoked: 3 })
    for (const one of more) expect(await isIn(one.tokens)).toBe(false)
    expect((await revoke(ann, {})).body.data).toEqual({ revoked: 0 })
    expect((await revoke(ann, { except_current: false })).body.data).toEqual({ revoked: 1 })
    expect(await isIn(ann.tokens)).toBe(false)
  })

  test("end by any of their refresh tokens, and nobody learns whether one is known", async () => {
    const { project, shop, ann } = await annIn()
    const bob = await signUp(service, shop)
    const next = (await renew(shop, ann.tokens.refresh_token)).body.data.tokens
    const { refresh_token } = ann.tokens // used by now
    for (const [door, token] of [
      [shop.app(), "belfry_refresh_unknown"],
      [shop.app("test"), refresh_token],
      [(await shopOf()).shop.app(), refresh_token],
    ] as const)
      expect((await door.post(REVOKE, { refresh_token: token })).body.data).toEqual({
        success: true,
      })
    expect(await isIn(next)).toBe(true)
    expect((await shop.app().post(REVOKE, { refresh_token })).body.data).toEqual({ success: true })
    expect(await isIn(next)).toBe(false)
    expect(await isIn(bob.tokens)).toBe(true)
    expect((await asUser(service, bob).post(REVOKE, {})).status).toBe(200)
    expect(await isIn(bob.tokens)).toBe(false)
    const empty = await shop.app().post(REVOKE, {})
    expect([empty.status, ...complaints(empty)]).toEqual([422, "refresh_token"])
    const events = await eventsOf(service, project)
    expect(events.filter(({ type }) => type === "user.session_revoked")).toHaveLength(2)
  })

  test("end by signing out, alone or with all others", async () => {
    const { project, shop, ann } = await annIn()
    const [phone, tablet] = [
      await signInAgain(service, shop, ann.user.id),
      await signInAgain(service, shop, ann.user.id),
    ]
    const out = (who: typeof ann, body: object) =>
      asUser(service, who).post("/v1/auth/users/logout", body)
    expect((await out(phone, {})).body.data).toEqual({ success: true })
    expect([await isIn(phone.tokens), await isIn(ann.tokens)]).toEqual([false, true])
    expect(refusal(await out(phone, {}))).toEqual([401, "unauthorized"])
    expect((await out(tablet, { all: true })).status).toBe(200)
    expect([await isIn(tablet.tokens), await isIn(ann.tokens)]).toEqual([false, false])
    const outs = (await eventsOf(service, project)).slice(-2)
    expect(outs.map(({ type, metadata }) => [type, metadata.session_id])).toEqual([
      ["user.logout", phone.session.id],
      ["user.logout", tablet.session.id],
    ])
  })

  test("are at most so many as the environment allows: the oldest ends", async () => {
    const { project, shop, ann } = await annIn({ settings: { session: { max_sessions: 2 } } })
    const second = await signInAgain(service, shop, ann.user.id)
    const third = await signInAgain(service, shop, ann.user.id)
    const states = await Promise.all([ann, second, third].map(({ tokens }) => isIn(tokens)))
    expect(states).toEqual([false, true, true])
    const ended = (await eventsOf(service, project)).filter(
      ({ type }) => type === "user.session_revoked",
    )
    expect(ended.map(({ metadata }) => metadata)).toMatchObject([
      { session_id: ann.session.id, reason: "max_sessions" },
    ])
  })

  test("end but for one by whatever else ends them", async () => {
    const { shop, ann } = await annIn()
    const phone = await signInAgain(service, shop, ann.user.id)
    const environment = await shop.environment()
    const ended = await store.tx(async (tx) => {
      const user = await findForUpdate(tx, shop.project_id, ann.user.id)
      const reason = "password_changed"
      return endSessions(tx, environment, user, { except: phone.session.id, reason })
    })
    expect(ended).toBe(1)
    expect([await isIn(ann.tokens), await isIn(phone.tokens)]).toEqual([false, true])
  })
})

describe("introspection", () => {
  test("shows the claims of a token that is valid now, to those it belongs to", async () => {
    const { project, shop, ann } = await annIn()
    const peer = await newApplication(service, project)
    const other = await shopOf()
    const token = ann.tokens.access_token
    for (const door of [project, shop.server()]) {
      const { body } = await door.post(INTROSPECT, { token })
      expect(body.data).toEqual({ active: true, ...decodeJwt(token) })
    }
    for (const door of [peer.server(), other.project, other.shop.server()])
      expect((await door.post(INTROSPECT, { token })).body.data).toEqual({ active: false })
    for (const text of ["x", ann.tokens.refresh_token, `${token}x`, project.key])
      expect((await project.post(INTROSPECT, { token: text })).body.data).toEqual({ active: false })
    await asUser(service, ann).post("/v1/auth/users/logout", {})
    expect((await project.post(INTROSPECT, { token })).body.data).toEqual({ active: false })
    expect(refusal(await shop.app().post(INTROSPECT, { token }))).toEqual([403, "forbidden"])
  })
})

describe("users", () => {
  test("see and change themselves", async () => {
    const { project, shop } = await annIn()
    const ann = await signUp(service, shop, {
      app_metadata: { role: "editor" },
      metadata: { a: 1 },
    })
    const me = asUser(service, ann)
    const { data } = (await me.get(ME)).body
    expect(data).toEqual({ ...ann.user, organizations: [ann.organization] })
    expect(data.app_metadata).toBeUndefined()
    const changed = await me.patch(ME, { name: "Ann", locale: "de", metadata: { b: 2 } })
    expect(changed.body.data).toMatchObject({ name: "Ann", locale: "de", metadata: { b: 2 } })
    expect((await me.patch(ME, { name: null })).body.data.name).toBeNull()
    for (const [body, field] of [
      [{ avatar_url: "javascript:alert(1)" }, "avatar_url"],
      [{ locale: "no language" }, "locale"],
      [{ name: "a\nb" }, "name"],
      [{ metadata: { large: "x".repeat(17_000) } }, "metadata"],
    ] as const) {
      const refused = await me.patch(ME, body)
      expect([field, refused.status, ...complaints(refused)]).toEqual([field, 422, field])
    }
    for (const body of [{}, { email: "eve@users.test" }, { app_metadata: { role: "owner" } }])
      expect(refusal(await me.patch(ME, body))).toEqual([422, "validation_error"])
    expect((await me.get(ME)).body.data).toMatchObject({ email: ann.user.email, name: null })
    expect(refusal(await project.call("GET", ME))).toEqual([403, "forbidden"])
  })
})
