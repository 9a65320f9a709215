import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { userSessions, users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { newApplication, signedUp, type TestApplication } from "../harness/application"
import { callingWith, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { elsewhere, letters, PASSWORD } from "./letters"

const clock = movableClock()
const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })
const mail = letters(service)
const { store, app } = service
const REDIRECT = "https://shop.example.com/verified"

type Options = Parameters<typeof newApplication>[2]
const shop = async (options: Options = {}) =>
  newApplication(service, await service.project(), options)

/** Somebody with a password, who calls from an address of their own. */
async function registered(own: TestApplication) {
  const fields = { email: `${newId()}@people.test`, password: PASSWORD }
  const from = elsewhere()
  const answer = await own.app().post("/v1/auth/users/register", fields, from)
  const { user, tokens } = answer.body.data
  const me = callingWith(app, { authorization: `Bearer ${tokens.access_token}`, ...from })
  return { id: user.id as string, email: fields.email, ...me }
}

const typesOf = async (id: string) =>
  (await store.read.select().from(events).where(eq(events.subject_id, id)).orderBy(events.id)).map(
    ({ type }) => type,
  )

const confirm = "/v1/auth/verify-email/confirm"
const send = "/v1/auth/verify-email/send"

describe("verify-email", () => {
  test("mails a link for a day and a code for ten minutes; either verifies", async () => {
    const own = await shop({ redirect_urls: [REDIRECT] })
    for (const kind of ["token", "code"] as const) {
      const me = await registered(own)
      const sent = await me.post(send, { redirect_url: REDIRECT })
      expect(sent.body.data).toEqual({ success: true, expires_in: 86_400 })
      const letter = await mail.last(me.email)
      const done = await me.post(confirm, { [kind]: letter?.[kind] })
      expect(done.body.data).toEqual({ email: me.email, email_verified: true, user_id: me.id })
      expect(await typesOf(me.id)).toEqual(["user.created", "user.email_verified"])
      expect(refusal(await me.post(send))).toEqual([409, "already_verified"])
    }
  })

  test("takes the link of whoever has it, once, and the code of its user alone", async () => {
    const own = await shop()
    const me = await registered(own)
    await me.post(send)
    const { token, code } = (await mail.last(me.email)) ?? {}
    expect(refusal(await own.app().post(confirm, { code }))).toEqual([422, "validation_error"])
    const other = await registered(own)
    expect(refusal(await other.post(confirm, { code }))).toEqual([422, "otp_expired"])
    expect(refusal(await own.app("test").post(confirm, { token }))).toEqual([422, "otp_expired"])
    expect(refusal(await own.app().post(confirm, {}))).toEqual([422, "missing_required_field"])
    expect((await own.app().post(confirm, { token })).status).toBe(200)
    expect(refusal(await own.app().post(confirm, { token }))).toEqual([422, "otp_expired"])
  })

  test("looks at five wrong codes, and sends one mail in thirty seconds", async () => {
    clock.freeze()
    const own = await shop()
    const me = await registered(own)
    await me.post(send)
    const { code = "" } = (await mail.last(me.email)) ?? {}
    const wrong = code === "123456" ? "654321" : "123456"
    for (let at = 0; at < 5; at++)
      expect(refusal(await me.post(confirm, { code: wrong }))).toEqual([422, "invalid_otp"])
    expect(refusal(await me.post(confirm, { code }))).toEqual([400, "otp_max_attempts"])
    const resend = "/v1/auth/verify-email/resend"
    expect(refusal(await me.post(resend))).toEqual([429, "otp_send_rate_limit_exceeded"])
    clock.advance({ seconds: 31 })
    expect((await me.post(resend)).status).toBe(200)
    const { code: next } = (await mail.last(me.email)) ?? {}
    clock.advance({ seconds: 601 })
    expect(refusal(await me.post(confirm, { code: next }))).toEqual([422, "otp_expired"])
  })

  test("is for servers, too, which name a user of theirs", async () => {
    const own = await shop()
    const me = await registered(own)
    const server = own.server()
    expect(refusal(await server.post(send, {}))).toEqual([422, "missing_required_field"])
    const foreign = await registered(await shop())
    const missed = await server.post(send, { user_id: foreign.id })
    expect(refusal(missed)).toEqual([404, "user_not_found"])
    expect((await server.post(send, { user_id: me.id })).status).toBe(200)
    const { token } = (await mail.last(me.email)) ?? {}
    expect((await server.post(confirm, { token })).status).toBe(200)
    const bad = { user_id: me.id, redirect_url: "https://evil.test" }
    expect(refusal(await server.post(send, bad))).toEqual([409, "already_verified"])
  })
})

describe("change-email", () => {
  const ask = "/v1/auth/change-email"

  test("takes the codes of a second factor along only after a step-up", async () => {
    const own = await shop()
    const me = await registered(own)
    const new_email = `new.${newId()}@people.test`
    await me.post(ask, { new_email, password: PASSWORD })
    const { code } = (await mail.last(new_email)) ?? {}
    const own_row = eq(users.id, me.id)
    await store.tx((tx) =>
      tx
        .update(users)
        .set({ mfa_methods: ["email"] })
        .where(own_row),
    )
    const refused = await me.post(`${ask}/confirm`, { code })
    expect(refusal(refused)).toEqual([403, "mfa_required"])
    await store.tx((tx) => tx.update(userSessions).set({ stepped_up_at: now() }))
    expect((await me.post(`${ask}/confirm`, { code })).status).toBe(200)
  })

  test("sends a code to the new address and a notice to the old one; the code makes it theirs", async () => {
    const own = await shop()
    const me = await registered(own)
    await me.post(send)
    const stale = (await mail.last(me.email))?.token
    const new_email = `New.${newId()}@People.test`
    const asked = await me.post(ask, { new_email, password: PASSWORD })
    expect(asked.body.data).toEqual({ success: true })
    const { code, subject } = (await mail.last(new_email)) ?? {}
    expect(subject).toContain(code ?? "?")
    expect((await mail.last(me.email))?.text).toContain("is being changed")
    const wrong = code === "123456" ? "654321" : "123456"
    const refused = await me.post(`${ask}/confirm`, { code: wrong })
    expect(refusal(refused)).toEqual([422, "invalid_otp"])
    const { status, body } = await me.post(`${ask}/confirm`, { code })
    expect([status, body.data.email, body.data.email_verified]).toEqual([200, new_email, true])
    expect(refusal(await me.post(`${ask}/confirm`, { code }))).toEqual([422, "otp_expired"])
    expect(refusal(await own.app().post(confirm, { token: stale }))).toEqual([422, "otp_expired"])
    expect(await typesOf(me.id)).toEqual(["user.created", "user.email_verified"])
    const fields = { email: new_email, password: PASSWORD }
    const back = await own.app().post("/v1/auth/users/login", fields, elsewhere())
    expect(back.status).toBe(200)
  })

  test("needs a proof, and an address that nobody has, then and at the end", async () => {
    const own = await shop()
    const [me, other] = [await registered(own), await registered(own)]
    const new_email = `${newId()}@people.test`
    expect(refusal(await me.post(ask, { new_email }))).toEqual([422, "missing_required_field"])
    const wrong = await me.post(ask, { new_email, password: "Wrong-Horse-7" })
    expect(refusal(wrong)).toEqual([422, "invalid_current_password"])
    const no_code = await me.post(ask, { new_email, code: "123456" })
    expect(refusal(no_code)).toEqual([422, "otp_expired"])
    for (const taken of [other.email, me.email]) {
      const refused = await me.post(ask, { new_email: taken, password: PASSWORD })
      expect(refusal(refused)).toEqual([409, "conflict"])
    }
    await me.post(ask, { new_email, password: PASSWORD })
    const { code } = (await mail.last(new_email)) ?? {}
    await signedUp(service, own, { email: new_email })
    const late = await me.post(`${ask}/confirm`, { code })
    expect(refusal(late)).toEqual([409, "conflict"])
  })

  test("tells nothing of an address that somebody has, where accounts are hidden", async () => {
    const own = await shop({ settings: { hide_account_existence: true } })
    const [me, other] = [await registered(own), await registered(own)]
    const asked = await me.post(ask, { new_email: other.email, password: PASSWORD })
    expect([asked.status, asked.body.data]).toEqual([200, { success: true }])
    expect(await mail.all(other.email)).toEqual([])
    expect((await mail.all(me.email)).length).toBe(1)
    const guess = await me.post(`${ask}/confirm`, { code: "123456" })
    expect(refusal(guess)).toEqual([422, "invalid_otp"])
  })

  test("to one more address takes the first one's code away", async () => {
    const own = await shop()
    const me = await registered(own)
    const [one, two] = [`${newId()}@people.test`, `${newId()}@people.test`]
    await me.post(ask, { new_email: one, password: PASSWORD })
    await me.post(ask, { new_email: two, password: PASSWORD })
    const first = (await mail.last(one))?.code
    const second = (await mail.last(two))?.code
    if (first !== second)
      expect(refusal(await me.post(`${ask}/confirm`, { code: first }))).toEqual([
        422,
        "invalid_otp",
      ])
    expect((await me.post(`${ask}/confirm`, { code: second })).body.data.email).toBe(two)
  })
})

describe("a user who deletes themselves", () => {
  const ME = "/v1/auth/users/me"

  test("proves it, and is gone: the address is free, and the session over", async () => {
    const own = await shop()
    const me = await registered(own)
    expect(refusal(await me.remove(ME, {}))).toEqual([422, "missing_required_field"])
    const wrong = await me.remove(ME, { password: "Wrong-Horse-7" })
    expect(refusal(wrong)).toEqual([422, "invalid_current_password"])
    const gone = await me.remove(ME, { password: PASSWORD })
    expect(gone.body.data).toEqual({ id: me.id, deleted: true })
    expect((await me.get(ME)).status).toBe(401)
    expect((await typesOf(me.id)).at(-1)).toBe("user.deleted")
    expect(await store.read.select().from(users).where(eq(users.id, me.id))).toEqual([])
    const fields = { email: me.email, password: PASSWORD }
    const again = await own.app().post("/v1/auth/users/register", fields, elsewhere())
    expect(again.status).toBe(201)
  })

  test("proves it by a code, where there is no password, once", async () => {
    const own = await shop()
    const user = await signedUp(service, own, { email_verified: true })
    const sent = await user.post("/v1/auth/email-otp/send", { purpose: "reauthenticate" })
    expect(sent.status).toBe(200)
    const { code } = (await mail.last(user.email ?? "")) ?? {}
    const other = await signedUp(service, own)
    expect(refusal(await other.remove(ME, { code }))).toEqual([422, "otp_expired"])
    expect((await user.remove(ME, { code })).status).toBe(200)
  })
})
