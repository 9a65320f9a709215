import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { complaints, refusal } from "../harness/client"
import { person, team } from "../harness/people"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { BEHIND_PROXY, PASSWORD, registered, stranger, visitor } from "./entrance"

const service = await sharedService(BEHIND_PROXY)
const open = await sharedService({ ...BEHIND_PROXY, sign_up: "open" })

const newcomer = (more: object = {}) => ({
  email: `${newId()}@people.test`,
  password: PASSWORD,
  ...more,
})

async function invited(email: string) {
  const { owner, account_id } = await team(service)
  await owner.post("/v1/accounts/me/members/invite", { email, role: "member" })
  const mail = service.mails.findLast(({ to }) => to === email)
  return { token: /\/invitation\/(\S+)/.exec(mail?.text ?? "")?.[1] ?? "", account_id }
}

describe("signing up", () => {
  test("is for everybody where it is open", async () => {
    const wanted = newcomer({ name: "Kim" })
    const { status, body } = await stranger(open).post("/v1/users", wanted)
    expect([status, body.data.user.name]).toEqual([201, "Kim"])
    expect(body.data.user).toMatchObject({ email: wanted.email, operator: false })
    expect(body.data.accounts).toEqual([])
    const twice = await stranger(open).post("/v1/users", {
      ...wanted,
      email: wanted.email.toUpperCase(),
    })
    expect(refusal(twice)).toEqual([409, "conflict"])
  })

  test("one of many who come at once with one address", async () => {
    const wanted = newcomer()
    const answers = await Promise.all([1, 2, 3].map(() => stranger(open).post("/v1/users", wanted)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  })

  test("needs an invitation otherwise, which is for its own address and works once", async () => {
    const wanted = newcomer()
    const uninvited = await stranger(service).post("/v1/users", wanted)
    expect(refusal(uninvited)).toEqual([403, "forbidden"])
    const { token, account_id } = await invited(wanted.email)
    const thief = newcomer({ invitation_token: token })
    expect(refusal(await stranger(service).post("/v1/users", thief))).toEqual([409, "conflict"])
    const made = await stranger(service).post("/v1/users", { ...wanted, invitation_token: token })
    expect([made.status, made.body.data.accounts]).toEqual([
      201,
      [{ id: account_id, name: "Team", role: "member" }],
    ])
    const second = newcomer({ invitation_token: token })
    expect(refusal(await stranger(service).post("/v1/users", second))).toEqual([404, "not_found"])
  })

  test("with an invented invitation tells nobody whether an address has a user", async () => {
    const { email } = await registered(service)
    const invitation_token = "belfry_invitation_x"
    const answers = [
      await stranger(service).post("/v1/users", newcomer({ email, invitation_token })),
      await stranger(service).post("/v1/users", newcomer({ invitation_token })),
    ]
    expect(answers.map(refusal)).toEqual(answers.map(() => [404, "not_found"]))
  })

  test("is for nobody where it is closed", async () => {
    await using closed = await testService({ ...BEHIND_PROXY, sign_up: "closed" })
    for (const more of [{}, { invitation_token: "x" }]) {
      const refused = await stranger(closed).post("/v1/users", newcomer(more))
      expect(refusal(refused)).toEqual([403, "forbidden"])
    }
  })

  test("wants an address and a strong password", async () => {
    const weak = await stranger(open).post("/v1/users", newcomer({ password: "short" }))
    expect(refusal(weak)).toEqual([422, "weak_password"])
    const odd = await stranger(open).post("/v1/users", newcomer({ email: "a@b" }))
    expect(refusal(odd)).toEqual([422, "invalid_email"])
    const lines = await stranger(open).post("/v1/users", newcomer({ name: "a\nb" }))
    expect(complaints(lines)).toEqual(["name"])
  })

  test("is throttled by address", async () => {
    const door = stranger(open)
    const statuses = []
    for (let tries = 0; tries < 31; tries++) {
      statuses.push((await door.post("/v1/users", newcomer({ password: "weak" }))).status)
    }
    expect(statuses.slice(0, 30).every((status) => status === 422)).toBe(true)
    expect(statuses[30]).toBe(429)
  })
})

describe("oneself", () => {
  test("is read and changed", async () => {
    const { user, ...me } = await visitor(service)
    const wanted = { name: "Zoë", locale: "de-AT", timezone: "Europe/Vienna" }
    const changed = await me.patch("/v1/users/me", wanted)
    expect([changed.status, changed.body.data]).toMatchObject([200, { id: user.id, ...wanted }])
    const read = await me.get("/v1/users/me")
    expect(read.body.data).toEqual(changed.body.data)
    expect((await me.patch("/v1/users/me", { name: null })).body.data).toMatchObject({
      name: null,
      locale: "de-AT",
    })
  })

  test.each([
    [{ locale: "not a language" }, ["locale"]],
    [{ timezone: "Mars/Olympus" }, ["timezone"]],
    [{ timezone: "+02:00" }, ["timezone"]],
    [{ name: "a\u0000b", locale: 5 }, ["name", "locale"]],
  ])("is not changed to %j", async (wanted, fields) => {
    const me = await visitor(service)
    expect(complaints(await me.patch("/v1/users/me", wanted))).toEqual(fields)
  })

  test("cannot be promoted by itself", async () => {
    const me = await visitor(service)
    await me.patch("/v1/users/me", { operator: true, email: "other@people.test", status: "x" })
    const { body } = await me.get("/v1/users/me")
    expect(body.data).toMatchObject({ operator: false, email: me.user.email })
  })

  test("is deleted with the password only, and is gone then", async () => {
    const { user, ...me } = await visitor(service)
    const wrong = await me.remove("/v1/users/me", { password: "Wrong-Horse-7" })
    expect(refusal(wrong)).toEqual([422, "invalid_current_password"])
    const gone = await me.remove("/v1/users/me", { password: PASSWORD })
    expect([gone.status, gone.body.data]).toEqual([200, { id: user.id, deleted: true }])
    expect((await me.get("/v1/users/me")).status).toBe(401)
    const door = stranger(service)
    const credentials = { email: user.email, password: PASSWORD }
    expect((await door.post("/v1/session", credentials)).status).toBe(401)
    const { refresh_token } = me.session
    expect((await door.post("/v1/session/refresh", { refresh_token })).status).toBe(401)
  })

  test("stays while it is the last owner of an account", async () => {
    const me = await visitor(service)
    const made = await me.post("/v1/accounts", { name: "Mine" })
    const refused = await me.remove("/v1/users/me", { password: PASSWORD })
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details).toEqual({ reason: "last_owner", id: made.body.data.id })
  })
})

test("somebody without a session is nobody", async () => {
  const me = await person(service)
  for (const path of ["/v1/users/me", "/v1/session", "/v1/users/me/sessions"]) {
    expect(refusal(await stranger(service).get(path))).toEqual([401, "unauthorized"])
    expect((await me.get(path)).status).toBe(200)
  }
})
