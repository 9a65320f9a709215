import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { hashOfToken } from "../../src/sign-in/tokens"
import { invitations } from "../../src/tenancy/tables"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { person, signedIn, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { anybody, mails, app } = service
const clock = movableClock()
const INVITE = "/v1/accounts/me/members/invite"
const LIST = "/v1/accounts/me/invitations"
const DAY = 86_400

const address = () => `${newId()}@people.test`

/** The token in the last mail to an address. */
function tokenFor(email: string): string {
  const mail = mails.findLast(({ to }) => to === email)
  return /\/invitation\/(\S+)/.exec(mail?.text ?? "")?.[1] ?? ""
}

const accept = (token: string, body?: unknown) =>
  anybody.post(`/v1/invitations/${token}/accept`, body)

const NEWCOMER = { name: "Kim", password: "Correct-Horse-7" }

describe("inviting", () => {
  test("sends a mail with the only copy of the token", async () => {
    const { owner } = await team(service)
    const email = address()
    const made = await owner.post(INVITE, { email, role: "member" })
    expect(made.status).toBe(201)
    expect(made.body.data).toEqual({
      id: expect.any(String),
      email,
      role: "member",
      projects: [],
      status: "pending",
      expires_at: expect.any(String),
      invited_by: owner.id,
      created_at: expect.any(String),
    })
    const token = tokenFor(email)
    expect(token).toMatch(/^belfry_invitation_/)
    expect(made.text).not.toContain(token)
    const rows = await service.store.read.select().from(invitations)
    expect(JSON.stringify(rows)).not.toContain(token)
    expect(rows.some(({ token_hash }) => token_hash === hashOfToken(token))).toBe(true)
  })

  test("not a member, not twice", async () => {
    const { owner, join } = await team(service)
    const member = await join("member")
    const again = await owner.post(INVITE, { email: member.email.toUpperCase(), role: "member" })
    expect(again.body.error.details).toEqual({ reason: "already_member", id: member.id })
    const email = address()
    const first = await owner.post(INVITE, { email, role: "member" })
    const second = await owner.post(INVITE, { email: email.toUpperCase(), role: "admin" })
    expect(refusal(second)).toEqual([409, "conflict"])
    const { id } = first.body.data
    expect(second.body.error.details).toEqual({ reason: "already_invited", id })
  })

  test("a billing admin is not invited into projects", async () => {
    const { owner, project_id } = await team(service)
    const projects = [{ project_id, role: "viewer" }]
    const wanted = { email: address(), role: "billing_admin", projects }
    const refused = await owner.post(INVITE, wanted)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(refused.body.error.details.fields[0].path).toBe("projects")
  })

  test("the same person again once it is over or taken back", async () => {
    const { owner } = await team(service)
    const email = address()
    const first = (await owner.post(INVITE, { email, role: "member" })).body.data
    await owner.remove(`${LIST}/${first.id}`)
    expect((await owner.post(INVITE, { email, role: "member" })).status).toBe(201)
  })

  test("says what is wrong", async () => {
    const { owner } = await team(service)
    const wrong = await owner.post(INVITE, { email: "nobody", role: "member" })
    expect(refusal(wrong)).toEqual([422, "invalid_email"])
    const roles = await owner.post(INVITE, { email: address(), role: "king" })
    expect(refusal(roles)).toEqual([422, "validation_error"])
    const without = await owner.post(INVITE, { email: address() })
    expect(refusal(without)).toEqual([422, "missing_required_field"])
  })

  test("with roles in projects of the account only", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    const grant = async (project_id: string) =>
      ours.owner.post(INVITE, {
        email: address(),
        role: "member",
        projects: [{ project_id, role: "viewer" }],
      })
    const [foreign, absent] = [await grant(theirs.project_id), await grant(newId())]
    expect(refusal(foreign)).toEqual([404, "not_found"])
    expect(foreign.body.error).toEqual(absent.body.error)
    expect((await grant(ours.project_id)).status).toBe(201)
  })

  test("an admin invites members, an owner admins too", async () => {
    const { owner, join } = await team(service)
    const [admin, member] = [await join("admin"), await join("member")]
    const invite = (by: typeof owner, role: string) => by.post(INVITE, { email: address(), role })
    expect((await invite(admin, "member")).status).toBe(201)
    expect(refusal(await invite(admin, "admin"))).toEqual([403, "forbidden"])
    expect(refusal(await invite(admin, "owner"))).toEqual([403, "forbidden"])
    expect((await invite(owner, "admin")).status).toBe(201)
    expect(refusal(await invite(member, "member"))).toEqual([403, "forbidden"])
  })

  test("fifty a day", async () => {
    clock.freeze() // no day ends while we count
    const { owner } = await team(service)
    const statuses: number[] = []
    for (let sent = 0; sent < 51; sent++) {
      statuses.push((await owner.post(INVITE, { email: address(), role: "member" })).status)
    }
    expect(statuses).toEqual([...Array(50).fill(201), 429])
    const refused = await owner.post(INVITE, { email: address(), role: "member" })
    expect(refused.body.error.details).toMatchObject({ limit: 50, scope: "invitations" })
    expect(refused.headers.get("retry-after")).toBeTruthy()
  })

  test("with an Idempotency-Key one mail goes out", async () => {
    const { owner } = await team(service)
    const email = address()
    const key = { "idempotency-key": newId() }
    const first = await owner.post(INVITE, { email, role: "member" }, key)
    const again = await owner.post(INVITE, { email, role: "member" }, key)
    expect(again.body.data).toEqual(first.body.data)
    expect(mails.filter(({ to }) => to === email)).toHaveLength(1)
  })
})

describe("the link", () => {
  test("tells what it is about, to anybody who holds it", async () => {
    const { owner } = await team(service)
    const email = address()
    const made = (await owner.post(INVITE, { email, role: "admin" })).body.data
    const seen = await anybody.get(`/v1/invitations/${tokenFor(email)}`)
    expect(seen.body.data).toEqual({
      email,
      account_name: "Team",
      role: "admin",
      expires_at: made.expires_at,
      user_exists: false,
    })
  })

  test("any other is not found", async () => {
    const wrong = await anybody.get("/v1/invitations/belfry_invitation_x")
    expect(refusal(wrong)).toEqual([404, "not_found"])
    expect(refusal(await accept("belfry_invitation_x", NEWCOMER))).toEqual([404, "not_found"])
  })

  test("makes a new user a member, once", async () => {
    const { owner, account_id, project_id } = await team(service)
    const email = address()
    const projects = [{ project_id, role: "developer" }]
    const made = (await owner.post(INVITE, { email, role: "member", projects })).body.data
    const token = tokenFor(email)
    const accepted = await accept(token, NEWCOMER)
    expect(accepted.status).toBe(200)
    expect(accepted.body.data).toMatchObject({
      token_type: "Bearer",
      expires_in: 900,
      user: { email, name: "Kim" },
      accounts: [{ id: account_id, name: "Team", role: "member" }],
    })
    const kim = signedIn(app, accepted.body.data.access_token)
    expect((await kim.get("/v1/projects")).body.data.map(({ id }: { id: string }) => id)).toEqual([
      project_id,
    ])
    expect(refusal(await accept(token, NEWCOMER))).toEqual([404, "not_found"])
    const { body } = await owner.get(`${LIST}?status=accepted`)
    expect(body.data).toEqual([{ ...made, status: "accepted" }])
  })

  test("of two at once one is accepted", async () => {
    const { owner } = await team(service)
    const email = address()
    await owner.post(INVITE, { email, role: "member" })
    const token = tokenFor(email)
    const both = await Promise.all([accept(token, NEWCOMER), accept(token, NEWCOMER)])
    expect(both.map(({ status }) => status === 200).sort()).toEqual([false, true])
  })

  test("a new user needs a name and a good password", async () => {
    const { owner } = await team(service)
    const email = address()
    await owner.post(INVITE, { email, role: "member" })
    const token = tokenFor(email)
    const weak = await accept(token, { name: "Kim", password: "password" })
    expect(refusal(weak)).toEqual([422, "weak_password"])
    expect(refusal(await accept(token, { password: "Correct-Horse-7" }))).toEqual([
      422,
      "missing_required_field",
    ])
    expect((await accept(token, NEWCOMER)).status).toBe(200)
  })

  test("an existing user accepts signed in, and nobody else does", async () => {
    const { owner, account_id } = await team(service)
    const [known, other] = [await person(service), await person(service)]
    await owner.post(INVITE, { email: known.email, role: "admin" })
    const token = tokenFor(known.email)
    expect((await anybody.get(`/v1/invitations/${token}`)).body.data.user_exists).toBe(true)
    const path = `/v1/invitations/${token}/accept`
    const anonymous = await accept(token, NEWCOMER)
    expect(refusal(anonymous)).toEqual([409, "conflict"])
    expect(anonymous.body.error.details.reason).toBe("user_exists")
    expect(anonymous.body.error.message).toContain("Sign in as that user with POST /v1/session.")
    const wrong = await other.post(path)
    expect(refusal(wrong)).toEqual([409, "conflict"])
    expect(wrong.body.error.details.reason).toBe("other_user")
    const accepted = await known.post(path)
    expect(accepted.body.data.accounts).toEqual([{ id: account_id, name: "Team", role: "admin" }])
    expect(
      refusal(await service.anybody.post(path, {}, { authorization: "Bearer x.y.z" })),
    ).toEqual([401, "unauthorized"])
  })

  test("whoever is signed in cannot take a stranger's invitation", async () => {
    const { owner } = await team(service)
    const other = await person(service)
    const email = address()
    await owner.post(INVITE, { email, role: "member" })
    const wrong = await other.post(`/v1/invitations/${tokenFor(email)}/accept`, NEWCOMER)
    expect(refusal(wrong)).toEqual([409, "conflict"])
  })
})

describe("its life", () => {
  test("resending rotates the token and begins seven days anew", async () => {
    const { owner } = await team(service)
    const email = address()
    const made = (await owner.post(INVITE, { email, role: "member" })).body.data
    const old = tokenFor(email)
    clock.advance({ seconds: DAY })
    const session = await refreshed(owner.id)
    const sent = await session.post(`${LIST}/${made.id}/resend`)
    expect(sent.status).toBe(200)
    expect(Date.parse(sent.body.data.expires_at)).toBeGreaterThan(Date.parse(made.expires_at))
    const fresh = tokenFor(email)
    expect(fresh).not.toBe(old)
    expect(refusal(await anybody.get(`/v1/invitations/${old}`))).toEqual([404, "not_found"])
    expect((await anybody.get(`/v1/invitations/${fresh}`)).status).toBe(200)
  })

  test("sent again twice with one key, it is sent once", async () => {
    const { owner } = await team(service)
    const email = address()
    const { id } = (await owner.post(INVITE, { email, role: "member" })).body.data
    const again = () => owner.post(`${LIST}/${id}/resend`, undefined, { "idempotency-key": "once" })
    const first = await again()
    const token = tokenFor(email)
    const second = await again()
    expect([first.status, second.status]).toEqual([200, 200])
    expect(second.headers.get("idempotent-replayed")).toBe("true")
    expect(second.body.data).toEqual(first.body.data)
    expect((await anybody.get(`/v1/invitations/${token}`)).status).toBe(200)
  })

  test("it ends after seven days, and can be sent again then", async () => {
    const { owner } = await team(service)
    const email = address()
    const made = (await owner.post(INVITE, { email, role: "member" })).body.data
    clock.advance({ seconds: 7 * DAY })
    expect(refusal(await anybody.get(`/v1/invitations/${tokenFor(email)}`))[0]).toBe(404)
    expect(refusal(await accept(tokenFor(email), NEWCOMER))[0]).toBe(404)
    const session = await refreshed(owner.id)
    expect((await session.get(`${LIST}?status=expired`)).body.data[0].id).toBe(made.id)
    expect((await session.get(`${LIST}?status=pending`)).body.data).toEqual([])
    expect((await session.post(`${LIST}/${made.id}/resend`)).body.data.status).toBe("pending")
    expect((await anybody.get(`/v1/invitations/${tokenFor(email)}`)).status).toBe(200)
  })

  test("one that is over is not sent again beside another, nor to a member", async () => {
    const { owner } = await team(service)
    const email = address()
    const old = (await owner.post(INVITE, { email, role: "admin" })).body.data
    clock.advance({ seconds: 7 * DAY })
    const session = await refreshed(owner.id)
    const fresh = (await session.post(INVITE, { email, role: "member" })).body.data
    const beside = await session.post(`${LIST}/${old.id}/resend`)
    expect(refusal(beside)).toEqual([409, "conflict"])
    expect(beside.body.error.details).toEqual({ reason: "already_invited", id: fresh.id })
    expect((await session.post(`${LIST}/${fresh.id}/resend`)).status).toBe(200)
    expect((await accept(tokenFor(email), NEWCOMER)).status).toBe(200)
    const joined = await session.post(`${LIST}/${old.id}/resend`)
    expect(joined.body.error.details.reason).toBe("already_member")
  })

  test("taken back, it is worth nothing; accepted, it cannot be taken back", async () => {
    const { owner } = await team(service)
    const email = address()
    const { id } = (await owner.post(INVITE, { email, role: "member" })).body.data
    expect((await owner.remove(`${LIST}/${id}`)).body.data).toEqual({ id, deleted: true })
    expect(refusal(await anybody.get(`/v1/invitations/${tokenFor(email)}`))[0]).toBe(404)
    expect(refusal(await owner.remove(`${LIST}/${id}`))).toEqual([404, "not_found"])
    expect(refusal(await owner.post(`${LIST}/${id}/resend`))).toEqual([409, "conflict"])

    const other = address()
    const taken = (await owner.post(INVITE, { email: other, role: "member" })).body.data
    await accept(tokenFor(other), NEWCOMER)
    expect(refusal(await owner.remove(`${LIST}/${taken.id}`))).toEqual([409, "conflict"])
    expect(refusal(await owner.post(`${LIST}/${taken.id}/resend`))).toEqual([409, "conflict"])
  })

  test("another account's is like none", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    const made = await theirs.owner.post(INVITE, { email: address(), role: "member" })
    for (const [method, tail] of [
      ["DELETE", ""],
      ["POST", "/resend"],
    ] as const) {
      const foreign = await ours.owner.call(method, `${LIST}/${made.body.data.id}${tail}`)
      const absent = await ours.owner.call(method, `${LIST}/${newId()}${tail}`)
      expect(refusal(foreign)).toEqual([404, "not_found"])
      expect(foreign.body.error).toEqual(absent.body.error)
    }
  })
})

/** Time went by, so that the access token of before is over: another session of the same person. */
async function refreshed(user_id: string) {
  const { store, parts } = service
  const { find } = await import("../../src/identity/users")
  const origin = { ip: "127.0.0.1", user_agent: null, client_name: null }
  const session = await store.tx(async (tx) =>
    parts.sessions.start(tx, await find(tx, user_id), origin),
  )
  return signedIn(app, session.access_token)
}
