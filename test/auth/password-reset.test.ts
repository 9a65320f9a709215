import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { userLinks, users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { events } from "../../src/events/tables"
import { newApplication, signedUp, type TestApplication } from "../harness/application"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { mailedLink } from "../harness/mailed-links"
import { sharedService } from "../harness/shared-service"
import { elsewhere, letters, PASSWORD, runUserForgotten } from "./letters"

const clock = movableClock()
const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })
const mail = letters(service)
const { store } = service
const NEXT = "Deep-Forest-17"
const REDIRECT = "https://shop.example.com/reset"

type Options = Parameters<typeof newApplication>[2]
const shop = async (options: Options = {}) =>
  newApplication(service, await service.project(), options)

async function registered(own: TestApplication) {
  const fields = { email: `${newId()}@people.test`, password: PASSWORD }
  const answer = await own.app().post("/v1/auth/users/register", fields, elsewhere())
  const { user, tokens } = answer.body.data
  return { id: user.id as string, email: fields.email, access_token: tokens.access_token as string }
}

const forgot = (own: TestApplication, email: string, fields: object = {}, headers = elsewhere()) =>
  own.app().post("/v1/auth/forgot-password", { email, ...fields }, headers)

const reset = (own: TestApplication, token: string | undefined, new_password = NEXT) =>
  own.app().post("/v1/auth/reset-password", { token, new_password })

const validate = (own: TestApplication, token: string | undefined) =>
  own.app().post("/v1/auth/validate-reset-token", { token })

const login = async (own: TestApplication, email: string, password: string) =>
  (await own.app().post("/v1/auth/users/login", { email, password }, elsewhere())).status

const typesOf = async (id: string) =>
  (await store.read.select().from(events).where(eq(events.subject_id, id)).orderBy(events.id)).map(
    ({ type }) => type,
  )

async function mailedReset(own: TestApplication, email: string) {
  await forgot(own, email)
  await runUserForgotten(service)
  return (await mail.last(email))?.token
}

test("an environment that takes no passwords neither resets nor changes one", async () => {
  const project = await service.project()
  const own = await newApplication(service, project)
  const { email, access_token } = await registered(own)
  const token = await mailedReset(own, email)
  const path = `/v1/auth/applications/${own.id}/environments/live`
  await project.call("PATCH", path, { body: { methods: { password: false } } })
  expect(refusal(await reset(own, token))).toEqual([403, "forbidden"])
  const wanted = { current_password: PASSWORD, new_password: NEXT }
  const headers = { authorization: `Bearer ${access_token}` }
  const changed = await service.anybody.post("/v1/auth/change-password", wanted, headers)
  expect(refusal(changed)).toEqual([403, "forbidden"])
})

test("apps show the captcha before they register or forget a password, and servers need none", async () => {
  // The secret of this environment cannot be read any more.
  const own = await shop({ settings: { captcha: { provider: "turnstile", secret: "••••" } } })
  const fields = { email: `${newId()}@people.test`, password: PASSWORD }
  const asked = await own.app().post("/v1/auth/users/register", fields, elsewhere())
  expect(refusal(asked)).toEqual([503, "service_unavailable"])
  expect(refusal(await forgot(own, fields.email))).toEqual([503, "service_unavailable"])
  const made = await own.server().post("/v1/auth/users/register", fields)
  expect(made.status).toBe(201)
})

describe("forgot-password", () => {
  test("answers all addresses alike, and mails those that have an active user", async () => {
    const own = await shop()
    const { id, email } = await registered(own)
    const suspended = await registered(own)
    const change = { status: "suspended" } as const
    await store.tx((tx) => tx.update(users).set(change).where(eq(users.id, suspended.id)))
    const all = [email, suspended.email, "nobody@people.test", "no address at all"]
    for (const one of all) {
      const { status, body } = await forgot(own, one)
      expect([status, body.data]).toEqual([200, { success: true }])
    }
    expect(await runUserForgotten(service)).toBe(4)
    expect((await mail.all(email)).map(({ token }) => token)).toEqual([
      expect.stringMatching(/^belfry_reset_/),
    ])
    expect(await mail.all(suspended.email)).toEqual([])
    expect(await mail.all("nobody@people.test")).toEqual([])
    expect(await typesOf(id)).toEqual(["user.created", "user.password_reset_requested"])
    expect(await typesOf(suspended.id)).toEqual(["user.created"])
  })

  test("takes only a redirect that is listed", async () => {
    const own = await shop({ redirect_urls: [REDIRECT] })
    const { email } = await registered(own)
    for (const url of [`${REDIRECT}/`, "https://evil.test", `${REDIRECT}?a`])
      expect(refusal(await forgot(own, email, { redirect_url: url }))).toEqual([422, "invalid_url"])
    expect((await forgot(own, email, { redirect_url: REDIRECT })).status).toBe(200)
    await runUserForgotten(service)
    const [link] = await store.read.select().from(userLinks).where(eq(userLinks.email, email))
    expect(link?.redirect_url).toBe(REDIRECT)
  })

  test("works three times an hour, for known and unknown addresses", async () => {
    const own = await shop()
    const { email } = await registered(own)
    for (const one of [email, `${newId()}@people.test`]) {
      for (let at = 0; at < 3; at++) expect((await forgot(own, one)).status).toBe(200)
      expect(refusal(await forgot(own, one))).toEqual([429, "login_rate_limit_exceeded"])
    }
    await runUserForgotten(service)
  })
})

describe("a reset", () => {
  test("sets the password once, ends every session, and tells the user", async () => {
    const own = await shop()
    const { id, email, access_token } = await registered(own)
    const token = await mailedReset(own, email)
    const other = await mailedReset(own, email)
    const hint = { valid: true, email_hint: expect.stringMatching(/^\w?•••@people\.test$/) }
    expect((await validate(own, token)).body.data).toEqual(hint)
    expect(refusal(await reset(own, token, "weak"))).toEqual([422, "weak_password"])
    expect(refusal(await reset(own, token, PASSWORD))).toEqual([422, "password_recently_used"])
    expect((await reset(own, token)).body.data).toEqual({ success: true })
    for (const used of [token, other])
      expect(refusal(await reset(own, used, "Third-Meadow-8"))).toEqual([422, "otp_expired"])
    expect((await validate(own, token)).body.data).toEqual({ valid: false, email_hint: null })
    expect([await login(own, email, PASSWORD), await login(own, email, NEXT)]).toEqual([401, 200])
    const bearer = { authorization: `Bearer ${access_token}` }
    expect((await service.anybody.get("/v1/auth/users/me", bearer)).status).toBe(401)
    expect(await typesOf(id)).toEqual([
      ...["user.created", "user.password_reset_requested", "user.password_reset_requested"],
      ...["user.password_changed", "user.session_revoked", "user.login"],
    ])
    expect((await mail.last(email))?.subject).toMatch(/password/i)
  })

  test("works for fifteen minutes", async () => {
    const own = await shop()
    const { email } = await registered(own)
    const token = await mailedReset(own, email)
    clock.advance({ seconds: 899 })
    expect((await validate(own, token)).body.data.valid).toBe(true)
    clock.advance({ seconds: 2 })
    expect((await validate(own, token)).body.data.valid).toBe(false)
    expect(refusal(await reset(own, token))).toEqual([422, "otp_expired"])
  })

  test("of fifty at once works for one", async () => {
    const own = await shop()
    const { email } = await registered(own)
    const token = await mailedReset(own, email)
    const all = Array.from({ length: 50 }, (_, at) => reset(own, token, `Deep-Forest-${at}x`))
    const counts = Map.groupBy(await Promise.all(all), ({ status }) => status)
    expect([counts.get(200)?.length, counts.get(422)?.length]).toEqual([1, 49])
  })

  test("is of its environment, its kind and its address alone", async () => {
    const own = await shop()
    const { id, email } = await registered(own)
    const wish = { email, user_id: id }
    const token = await mailedLink(service, own, "password_reset", wish)
    const verify = await mailedLink(service, own, "verify_email", wish)
    const test_body = { token, new_password: NEXT }
    const in_test = await own.app("test").post("/v1/auth/reset-password", test_body)
    expect(refusal(in_test)).toEqual([422, "otp_expired"])
    const elsewhere = await reset(await shop(), token)
    expect(refusal(elsewhere)).toEqual([422, "otp_expired"])
    expect(refusal(await reset(own, verify))).toEqual([422, "otp_expired"])
    const former = { email: `former-${email}`, user_id: id }
    const old = await mailedLink(service, own, "password_reset", former)
    expect(refusal(await reset(own, old))).toEqual([422, "otp_expired"])
    expect((await reset(own, token)).status).toBe(200)
  })

  test("gives a first password to one who had none", async () => {
    const own = await shop()
    const { email } = await signedUp(service, own)
    expect((await reset(own, await mailedReset(own, email ?? ""))).status).toBe(200)
    expect(await login(own, email ?? "", NEXT)).toBe(200)
  })
})

describe("change-password", () => {
  const change = (access_token: string, current_password: string, new_password: string) =>
    service.anybody.post(
      "/v1/auth/change-password",
      { current_password, new_password },
      { authorization: `Bearer ${access_token}` },
    )

  test("needs the present one, ends the other sessions, and refuses the last five", async () => {
    const own = await shop()
    const { email, access_token } = await registered(own)
    const fields = { email, password: PASSWORD }
    const second = await own.app().post("/v1/auth/users/login", fields, elsewhere())
    const wrong = await change(access_token, "Wrong-Horse-7", NEXT)
    expect(refusal(wrong)).toEqual([422, "invalid_current_password"])
    expect(refusal(await change(access_token, PASSWORD, "weak"))).toEqual([422, "weak_password"])
    let present = PASSWORD
    for (const next of [NEXT, "Third-Meadow-8", "Fourth-Hill-99", "Fifth-Valley-5"]) {
      expect((await change(access_token, present, next)).body.data).toEqual({ success: true })
      present = next
    }
    const again = await change(access_token, present, PASSWORD)
    expect(refusal(again)).toEqual([422, "password_recently_used"])
    expect((await change(access_token, present, "Sixth-Lake-666")).status).toBe(200)
    expect((await change(access_token, "Sixth-Lake-666", PASSWORD)).status).toBe(200)
    const bearer = { authorization: `Bearer ${second.body.data.tokens.access_token}` }
    expect((await service.anybody.get("/v1/auth/users/me", bearer)).status).toBe(401)
    expect((await mail.all(email)).length).toBe(6)
  })

  test("is no way to guess: after ten wrong ones it is closed for that user, strangers close nothing", async () => {
    const own = await shop()
    const { email, access_token } = await registered(own)
    for (let at = 0; at < 11; at++) await login(own, email, "Wrong-Horse-7")
    for (let at = 0; at < 10; at++) {
      const wrong = await change(access_token, "Wrong-Horse-7", NEXT)
      expect(refusal(wrong)).toEqual([422, "invalid_current_password"])
    }
    const closed = await change(access_token, PASSWORD, NEXT)
    expect(refusal(closed)).toEqual([429, "login_rate_limit_exceeded"])
  })

  test("is the user's own: an impersonated token is refused", async () => {
    const own = await shop()
    const act = { id: newId(), reason: "support" }
    const user = await signedUp(service, own, { act })
    const body = { current_password: PASSWORD, new_password: NEXT }
    for (const [path, given] of [
      ["/v1/auth/change-password", body],
      ["/v1/auth/change-email", { new_email: "new@people.test", password: PASSWORD }],
      ["/v1/auth/change-email/confirm", { code: "123456" }],
    ] as const)
      expect(refusal(await user.post(path, given))).toEqual([403, "forbidden"])
  })
})
