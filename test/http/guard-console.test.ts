import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { isoFrom, millis } from "../../src/core/time"
import { accounts, consoleSessions, consoleUsers, projectMembers } from "../../src/identity/tables"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import { giveMfa, type Person, person, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const { store } = service

const account = (id: string) => ({ "x-account-id": id })
const project = (id: string) => ({ "x-project-id": id })

const details = async (answer: ReturnType<Person["get"]>) => (await answer).body.error.details

async function addRole({ id }: Person, project_id: string, role: "viewer" | "developer" | "admin") {
  const row = { project_id, user_id: id, role, added_at: isoFrom(millis()) }
  await store.tx((tx) => tx.insert(projectMembers).values(row))
}

describe("whose account and project it is", () => {
  test("follows from the only ones there are", async () => {
    const { owner, account_id, project_id } = await team(service)
    expect((await owner.get("/v1/accounts/me")).body.data.id).toBe(account_id)
    expect((await owner.get("/v1/emails")).status).toBe(200)
    expect((await owner.get(`/v1/projects/${project_id}`)).status).toBe(200)
  })

  test("must be said where there are several, and the header is named", async () => {
    const one = await team(service)
    const two = await one.owner.post("/v1/accounts", { name: "Two" })
    const unsaid = await one.owner.get("/v1/accounts/me")
    expect(refusal(unsaid)).toEqual([422, "missing_required_field"])
    expect(unsaid.body.error.details).toMatchObject({ header: "X-Account-Id" })
    const said = await one.owner.get("/v1/accounts/me", account(two.body.data.id))
    expect(said.body.data.id).toBe(two.body.data.id)

    await one.owner.post("/v1/projects", { name: "Second" }, account(one.account_id))
    const many = await one.owner.get("/v1/emails", account(one.account_id))
    expect(many.body.error.details).toMatchObject({ header: "X-Project-Id" })
    const all = { ...account(one.account_id), ...project(one.project_id) }
    expect((await one.owner.get("/v1/emails", all)).status).toBe(200)
  })

  test("is not found when it is somebody else's, or nobody's", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    const { owner } = ours
    for (const id of [theirs.account_id, NOBODY, "x", "' OR 1=1"]) {
      const { status, body } = await owner.get("/v1/accounts/me", account(id))
      expect([status, body.error.message]).toEqual([404, "There is no such account."])
    }
    for (const id of [theirs.project_id, NOBODY, "x", "%00"]) {
      const { status, body } = await owner.get("/v1/emails", project(id))
      expect([status, body.error.message]).toEqual([404, "There is no such project."])
      expect((await owner.get(`/v1/projects/${id}`)).status).toBe(404)
    }
  })

  test("nobody without an account reaches one", async () => {
    const stranger = await person(service)
    expect((await stranger.get("/v1/users/me")).status).toBe(200)
    expect(refusal(await stranger.get("/v1/accounts/me"))).toEqual([403, "forbidden"])
    expect(refusal(await stranger.get("/v1/emails"))).toEqual([403, "forbidden"])
  })
})

describe("roles", () => {
  test("in a project decide over its scopes", async () => {
    const { join, project_id } = await team(service)
    const roles = ["viewer", "developer", "admin"] as const
    const status: Record<string, number[]> = {}
    for (const role of roles) {
      const member = await join("member")
      expect(refusal(await member.get("/v1/emails"))).toEqual([403, "forbidden"])
      await addRole(member, project_id, role)
      const answers = [
        await member.get("/v1/emails"),
        await member.post("/v1/emails", {}),
        await member.get("/v1/api-keys"),
        await member.post("/v1/api-keys", {}),
        await member.patch("/v1/settings", { sandbox: false }),
        await member.patch(`/v1/projects/${project_id}`, { name: "P" }),
        await member.get("/v1/audit-log"),
      ]
      status[role] = answers.map((one) => one.status)
    }
    expect(status).toEqual({
      viewer: [200, 403, 200, 403, 403, 403, 403],
      developer: [200, 422, 200, 403, 403, 403, 403],
      admin: [200, 422, 200, 422, 200, 200, 403],
    })
  })

  test("name what is missing: a scope or a role", async () => {
    const { join, project_id } = await team(service)
    const member = await join("member")
    await addRole(member, project_id, "viewer")
    const asked = {
      scope: details(member.post("/v1/emails", {})),
      role: details(member.get("/v1/audit-log")),
      owner: details(member.remove("/v1/accounts/me", { confirm: "x" })),
    }
    expect(await asked.scope).toEqual({ required_scope: "email:send" })
    expect(await asked.role).toEqual({ required_role: "account_admin" })
    expect(await asked.owner).toEqual({ required_role: "owner" })
    const key = await service.project()
    for (const [path, required_role] of [
      ["/v1/users/me", "any"],
      ["/v1/audit-log", "account_admin"],
      ["/v1/admin/queues", "operator"],
    ] as const) {
      const closed = await key.get(path)
      expect(refusal(closed)).toEqual([403, "forbidden"])
      expect(closed.body.error.message).toContain("An API key cannot call it")
      expect(closed.body.error.details).toEqual({ required_role })
    }
  })

  test("act at the next request when they change", async () => {
    const { owner, join } = await team(service)
    const admin = await join("admin")
    expect((await admin.get("/v1/audit-log")).status).toBe(200)
    await owner.patch(`/v1/accounts/me/members/${admin.id}`, { role: "member" })
    expect((await admin.get("/v1/audit-log")).status).toBe(403)
    await owner.remove(`/v1/accounts/me/members/${admin.id}`)
    expect((await admin.get("/v1/accounts/me")).status).toBe(403)
  })

  test("of owners only reach the account they own", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    const answer = await ours.owner.get("/v1/emails", account(theirs.account_id))
    expect(answer.status).toBe(404)
  })
})

describe("a session", () => {
  test("that is revoked or expired, and a user who is locked, are refused at once", async () => {
    const { owner } = await team(service)
    const changes = [
      () => sessions(owner, { revoked_at: isoFrom(millis()) }),
      () => sessions(owner, { revoked_at: null, expires_at: isoFrom(millis() - 1) }),
      () => sessions(owner, { expires_at: isoFrom(millis() + 3_600_000) }),
      () => lock(owner),
    ]
    const seen: number[] = []
    for (const change of changes) {
      await change()
      seen.push((await owner.get("/v1/users/me")).status)
    }
    expect(seen).toEqual([401, 401, 200, 401])
  })

  const sessions = ({ id }: Person, set: Partial<typeof consoleSessions.$inferSelect>) =>
    store.tx((tx) => tx.update(consoleSessions).set(set).where(eq(consoleSessions.user_id, id)))

  const lock = ({ id }: Person) =>
    store.tx((tx) =>
      tx.update(consoleUsers).set({ status: "locked" }).where(eq(consoleUsers.id, id)),
    )

  test("is no API key, and goes in no header of keys", async () => {
    const { owner } = await team(service)
    const token = "eyJhbGciOiJub25lIn0.e30."
    for (const headers of [{ "x-api-key": token }, { authorization: `Bearer ${token}` }]) {
      expect((await service.anybody.get("/v1/users/me", headers)).status).toBe(401)
    }
    const { key } = await service.project()
    expect((await owner.get("/v1/users/me", { "x-api-key": key })).status).toBe(401)
  })

  test("has the window of its user: of the account's plan, or 600 a minute without one", async () => {
    const { owner } = await team(service, "starter")
    clock.advance({ seconds: 60 - (millis() % 60_000) / 1000 })
    const limit = async (path: string) => (await owner.get(path)).headers.get("x-ratelimit-limit")
    expect([await limit("/v1/emails"), await limit("/v1/users/me")]).toEqual(["300", "600"])
    const last = await owner.get("/v1/emails")
    expect(last.headers.get("x-ratelimit-remaining")).toBe("297")
    expect(last.headers.get("x-account-sending-status")).toBe("active")
  })
})

test.each([
  ["locked", "account_locked"],
  ["suspended", "account_suspended"],
] as const)("an account that is %s answers nothing but who you are", async (status, code) => {
  const { owner, account_id } = await team(service)
  await store.tx((tx) => tx.update(accounts).set({ status }).where(eq(accounts.id, account_id)))
  for (const path of ["/v1/emails", "/v1/accounts/me", "/v1/audit-log", "/v1/usage"]) {
    expect(refusal(await owner.get(path))).toEqual([403, code])
  }
  expect((await owner.get("/v1/users/me")).status).toBe(200)
  expect((await owner.get("/v1/accounts")).body.data[0].status).toBe(status)
})

test("where an account asks for a second factor, those without one may only set it up", async () => {
  const { owner, join, account_id } = await team(service)
  const member = await join("admin")
  await giveMfa(service, owner)
  const settings = { track_opens: true, track_clicks: true, require_mfa: true }
  await store.tx((tx) => tx.update(accounts).set({ settings }).where(eq(accounts.id, account_id)))
  expect(refusal(await member.get("/v1/accounts/me"))).toEqual([403, "mfa_required"])
  expect(refusal(await member.get("/v1/emails"))).toEqual([403, "mfa_required"])
  expect((await member.get("/v1/users/me")).status).toBe(200)
  expect((await owner.get("/v1/accounts/me")).status).toBe(200)
})

test("the instance's own project is nobody's, not even by its id", async () => {
  const { owner } = await team(service)
  const { instanceProject } = await import("../../src/tenancy/projects")
  const hidden = await store.tx((tx) => instanceProject(tx))
  expect((await owner.get("/v1/emails", project(hidden.project_id))).status).toBe(404)
  expect((await owner.get("/v1/accounts/me", account(hidden.account_id))).status).toBe(404)
  expect((await owner.get(`/v1/projects/${hidden.project_id}`)).status).toBe(404)
})
