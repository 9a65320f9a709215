import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { newId } from "../../src/core/ids"
import { purgeSessions } from "../../src/identity/sessions"
import { consoleSessions, refreshTokens } from "../../src/identity/tables"
import * as users from "../../src/identity/users"
import { hashOfToken } from "../../src/sign-in/tokens"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { signedIn, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { BEHIND_PROXY, signIn, stranger, visitor } from "./entrance"

const clock = movableClock()
const service = await sharedService(BEHIND_PROXY)
const { store, app } = service

const DAY = 86_400

const refresh = (refresh_token: string, door = stranger(service)) =>
  door.post("/v1/session/refresh", { refresh_token })

const isSignedIn = async (access_token: string) =>
  (await signedIn(app, access_token).get("/v1/session")).status === 200

describe("a refresh token", () => {
  test("brings new tokens once, and slides for 30 days", async () => {
    let { session } = await visitor(service)
    const seen = new Set([session.refresh_token])
    for (let month = 0; month < 3; month++) {
      clock.advance({ seconds: 29 * DAY })
      const next = await refresh(session.refresh_token)
      expect(next.status).toBe(200)
      expect(next.body.data).toMatchObject({ token_type: "Bearer", expires_in: 900 })
      session = next.body.data
      seen.add(session.refresh_token)
      expect(await isSignedIn(session.access_token)).toBe(true)
    }
    expect(seen.size).toBe(4)
    clock.advance({ seconds: 30 * DAY + 1 })
    expect(refusal(await refresh(session.refresh_token))).toEqual([401, "unauthorized"])
  })

  test("sent twice within ten seconds brings the same new token", async () => {
    clock.freeze()
    const { session } = await visitor(service)
    const [first, second] = await Promise.all([
      refresh(session.refresh_token),
      refresh(session.refresh_token),
    ])
    expect([first?.status, second?.status]).toEqual([200, 200])
    expect(second?.body.data.refresh_token).toBe(first?.body.data.refresh_token)
    clock.advance({ seconds: 9 })
    const third = await refresh(session.refresh_token)
    expect(third.body.data.refresh_token).toBe(first?.body.data.refresh_token)
    expect((await refresh(third.body.data.refresh_token)).status).toBe(200)
  })

  test("used again later ends everything that descends from the sign-in", async () => {
    const { owner } = await team(service)
    const { session, user } = await visitor(service)
    const child = (await refresh(session.refresh_token)).body.data
    const grandchild = (await refresh(child.refresh_token)).body.data
    clock.advance({ seconds: 11 })
    expect(refusal(await refresh(session.refresh_token))).toEqual([401, "unauthorized"])

    for (const one of [session, child, grandchild]) {
      expect(refusal(await refresh(one.refresh_token))).toEqual([401, "unauthorized"])
      expect(await isSignedIn(one.access_token)).toBe(false)
    }
    expect((await owner.get("/v1/session")).status).toBe(200)
    const again = await signIn(service, user.email) // another sign-in is another family
    expect((await refresh(again.session.refresh_token)).status).toBe(200)
  })

  test("that is unknown, of another kind or nothing at all is refused", async () => {
    const { session } = await visitor(service)
    for (const token of ["", "x", `${session.refresh_token}x`, session.access_token]) {
      expect(refusal(await refresh(token.slice(0, 200)))[0]).toBe(401)
    }
    const door = stranger(service)
    expect(refusal(await door.post("/v1/session/refresh", {}))).toEqual([
      422,
      "missing_required_field",
    ])
  })

  test("is known to the database by its hash only, and its successor sealed", async () => {
    const { session } = await visitor(service)
    const next = (await refresh(session.refresh_token)).body.data.refresh_token
    const rows = JSON.stringify(await store.read.select().from(refreshTokens))
    expect(rows).not.toContain(session.refresh_token)
    expect(rows).not.toContain(next)
    clock.advance({ seconds: 61 })
    await purgeSessions(store)
    const own = eq(refreshTokens.token_hash, hashOfToken(session.refresh_token))
    const [used] = await store.read.select().from(refreshTokens).where(own)
    expect(used).toMatchObject({ used_at: expect.any(String), successor: null })
  })

  test("reuse is in the audit log of the user's accounts", async () => {
    const { owner, account_id } = await team(service)
    const row = await store.tx(async (tx) => {
      return service.parts.sessions.start(tx, await users.find(tx, owner.id), {
        ip: null,
        user_agent: null,
        client_name: null,
      })
    })
    await refresh(row.refresh_token)
    clock.advance({ seconds: 30 })
    await refresh(row.refresh_token)
    const entries = await store.read
      .select()
      .from(auditLog)
      .where(eq(auditLog.account_id, account_id))
    const actions = entries.map(({ action }) => action)
    expect(actions).toContain("session.reuse_detected")
    expect(JSON.stringify(entries)).not.toContain(row.refresh_token)
  })
})

describe("one's own sessions", () => {
  test("are listed newest first, the present one marked, pages and all", async () => {
    const first = await visitor(service)
    const second = await signIn(service, first.user.email)
    const { body } = await second.get("/v1/users/me/sessions")
    expect(body.data.map((one: { current: boolean }) => one.current)).toEqual([true, false])
    expect(body.data[0]).toEqual({
      id: expect.any(String),
      current: true,
      ip: second.door.ip,
      user_agent: null,
      client_name: null,
      created_at: expect.any(String),
      last_used_at: expect.any(String),
      expires_at: expect.any(String),
    })
    expect(body.meta).toMatchObject({ total: 2, has_more: false })
    const page = await second.get("/v1/users/me/sessions?per_page=1")
    expect(page.body.meta).toMatchObject({ total: 2, has_more: true })
    const rest = await second.get(
      `/v1/users/me/sessions?per_page=1&cursor=${page.body.meta.next_cursor}`,
    )
    expect(rest.body.data[0].id).toBe(body.data[1].id)
  })

  test("end one by one, at the next request, and not twice", async () => {
    const first = await visitor(service)
    const second = await signIn(service, first.user.email)
    const { body } = await first.get("/v1/session")
    const path = `/v1/users/me/sessions/${body.data.session.id}`
    const ended = await second.remove(path)
    expect([ended.status, ended.body.data]).toEqual([
      200,
      { id: body.data.session.id, deleted: true },
    ])
    expect((await first.get("/v1/session")).status).toBe(401)
    expect((await refresh(first.session.refresh_token)).status).toBe(401)
    expect(refusal(await second.remove(path))).toEqual([404, "not_found"])
    expect((await second.get("/v1/users/me/sessions")).body.data).toHaveLength(1)
  })

  test("of somebody else are not there", async () => {
    const [one, other] = [await visitor(service), await visitor(service)]
    const { body } = await other.get("/v1/session")
    const foreign = await one.remove(`/v1/users/me/sessions/${body.data.session.id}`)
    const absent = await one.remove(`/v1/users/me/sessions/${newId()}`)
    const nonsense = await one.remove("/v1/users/me/sessions/x")
    expect(foreign.body.error).toEqual(absent.body.error)
    expect(nonsense.body.error).toEqual(absent.body.error)
    expect(refusal(foreign)).toEqual([404, "not_found"])
    expect((await other.get("/v1/session")).status).toBe(200)
  })

  test("the present one ends by signing out", async () => {
    const me = await visitor(service)
    const out = await me.remove("/v1/session")
    expect(out.body.data).toEqual({ id: expect.any(String), deleted: true })
    expect((await me.get("/v1/session")).status).toBe(401)
  })
})

test("whatever is over is forgotten after its time", async () => {
  const { user } = await visitor(service)
  clock.advance({ seconds: 31 * DAY })
  while ((await purgeSessions(store)) > 0);
  const own = eq(consoleSessions.user_id, user.id)
  expect(await store.read.select().from(consoleSessions).where(own)).toEqual([])
})
