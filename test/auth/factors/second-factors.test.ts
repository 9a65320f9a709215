import { describe, expect, test } from "bun:test"
import PostalMime from "postal-mime"
import { refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import { deliverAll, deliverTexts } from "../../harness/delivery"
import { sharedService } from "../../harness/shared-service"
import { setTexts, whileSending } from "../text-sending"
import { appCode, enrolApp, factorShop } from "./factor-shop"

const clock = movableClock()
const service = await sharedService()

/** So that the next code of an app is a new one. */
const nextStep = () => clock.advance({ seconds: 30 })

describe("an authenticator app", () => {
  test("is on after its first code, in the session that sent it", async () => {
    clock.freeze()
    const { user, told } = await factorShop(service)
    const person = await user({ email: "ann@example.test" })
    const begun = await person.post("/v1/auth/mfa/enroll", {})
    const { data, meta } = begun.body
    expect(data.method).toBe("totp")
    expect(data.secret).toMatch(/^[A-Z2-7]+$/)
    expect(data.otpauth_url).toStartWith("otpauth://totp/Shop:ann")
    expect(data.qr_code).toStartWith("data:image/svg+xml;base64,")
    expect(data.backup_codes).toHaveLength(10)
    for (const code of data.backup_codes) expect(code).toMatch(/^[a-z2-9]{5}-[a-z2-9]{5}$/)
    expect(meta.message).toContain("verify-enrollment")
    const wrong = await person.post("/v1/auth/mfa/verify-enrollment", { code: "000000" })
    expect(refusal(wrong)).toEqual([400, "invalid_code"])
    const code = await appCode(data.secret)
    const on = await person.post("/v1/auth/mfa/verify-enrollment", { code })
    const { mfa_enabled_at } = on.body.data
    expect(on.body.data).toEqual({ enabled: true, method: "totp", mfa_enabled_at })
    const shown = await person.get("/v1/auth/mfa")
    expect(shown.body.data).toEqual({
      ...{ enabled: true, backup_codes_left: 10 },
      methods: [{ type: "totp", verified_at: mfa_enabled_at, hint: null }],
    })
    const me = await person.get("/v1/auth/users/me")
    expect(me.body.data).toMatchObject({ mfa_enabled: true, mfa_methods: ["totp"] })
    expect(await told()).toEqual(["user.created", "user.mfa_enabled totp"])
  })

  test("waits for fifteen minutes, and only once", async () => {
    const { user, mfa } = await factorShop(service)
    const person = await user()
    const verify = (code: string) => person.post("/v1/auth/mfa/verify-enrollment", { code })
    expect(refusal(await verify("123456"))).toEqual([400, "no_pending_enrollment"])
    const { secret } = (await person.post("/v1/auth/mfa/enroll", {})).body.data
    clock.advance({ seconds: 901 })
    expect(refusal(await verify(await appCode(secret)))).toEqual([400, "no_pending_enrollment"])
    await enrolApp(person)
    const again = await person.post("/v1/auth/mfa/enroll", {})
    expect(refusal(again)).toEqual([409, "mfa_already_enabled"])
    expect(refusal(await verify("123456"))).toEqual([400, "no_pending_enrollment"])
    expect(refusal(await mfa("verify", { challenge_token: "x", totp_code: "1" }))).toEqual([
      ...[401, "invalid_mfa"],
    ])
  })

  test("is asked for at the next sign-in, and each code works once", async () => {
    const { withApp, challenge, mfa, told } = await factorShop(service)
    const { id, secret } = await withApp()
    const first = await challenge(id)
    expect(first.methods).toEqual(["totp", "backup_code"])
    const { challenge_token } = first
    const used = await mfa("verify", { challenge_token, totp_code: await appCode(secret) })
    expect(refusal(used)).toEqual([401, "invalid_totp"])
    nextStep()
    const totp_code = await appCode(secret)
    const answer = await mfa("verify", { challenge_token, totp_code })
    expect(answer.status).toBe(200)
    const { tokens, user, is_new } = answer.body.data
    expect([user.id, is_new]).toEqual([id, false])
    const claims = JSON.parse(atob(tokens.access_token.split(".")[1]))
    expect(claims.amr).toEqual(["pwd", "otp", "mfa"])
    expect((await told()).at(-1)).toBe("user.login totp")
    expect(refusal(await mfa("verify", { challenge_token, totp_code }))).toEqual([
      ...[401, "invalid_mfa"],
    ])
    const second = await challenge(id)
    const replayed = await mfa("verify", { ...second, totp_code })
    expect(refusal(replayed)).toEqual([401, "invalid_totp"])
  })
})

describe("backup codes", () => {
  test("each open the door once, by verify and by recovery", async () => {
    const { withApp, challenge, mfa } = await factorShop(service)
    const { id, backup_codes, person } = await withApp()
    const [one, two] = backup_codes
    const { challenge_token } = await challenge(id)
    const entered = await mfa("verify", { challenge_token, backup_code: one?.toUpperCase() })
    expect(entered.status).toBe(200)
    const next = await challenge(id)
    const again = await mfa("verify", { ...next, backup_code: one })
    expect(refusal(again)).toEqual([401, "invalid_backup_code"])
    const recovery = await mfa("recovery", { ...next, backup_code: one })
    expect(refusal(recovery)).toEqual([422, "invalid_recovery_code"])
    const recovered = await mfa("recovery", { ...next, backup_code: two })
    expect(recovered.body.data).toMatchObject({ user: { id }, backup_codes_left: 8 })
    const shown = await person.get("/v1/auth/mfa")
    expect(shown.body.data.backup_codes_left).toBe(8)
  })

  test("are made anew with a code, and those before them die", async () => {
    const { withApp, challenge, mfa } = await factorShop(service)
    const { id, secret, backup_codes, person } = await withApp()
    const renew = (body: object) => person.post("/v1/auth/mfa/backup-codes", body)
    expect(refusal(await renew({}))).toEqual([401, "invalid_verification"])
    expect(refusal(await renew({ totp_code: "000000" }))).toEqual([401, "invalid_verification"])
    nextStep()
    const fresh = await renew({ totp_code: await appCode(secret) })
    const { challenge_token } = await challenge(id)
    const [old] = backup_codes
    const refused = await mfa("verify", { challenge_token, backup_code: old })
    expect(refusal(refused)).toEqual([401, "invalid_backup_code"])
    const [code] = fresh.body.data.backup_codes
    expect((await mfa("verify", { challenge_token, backup_code: code })).status).toBe(200)
  })

  test("of a later method take the place of the first ones, once it is verified", async () => {
    const { withApp, challenge, mfa } = await factorShop(service)
    const { id, person, backup_codes } = await withApp({ email: EMAIL, email_verified: true })
    const begun = await person.post("/v1/auth/mfa/enroll", { method: "email" })
    expect(begun.body.data).toMatchObject({
      ...{ method: "email", sent: true, destination: "a•••@mailbox.test", expires_in: 600 },
    })
    const [old] = backup_codes
    const { challenge_token } = await challenge(id)
    expect((await mfa("verify", { challenge_token, backup_code: old })).status).toBe(200)
    const code = await mailedCode()
    expect((await person.post("/v1/auth/mfa/verify-enrollment", { code })).status).toBe(200)
    const next = await challenge(id)
    expect(next.methods).toEqual(["totp", "email", "backup_code"])
    const refused = await mfa("verify", { ...next, backup_code: backup_codes[1] })
    expect(refusal(refused)).toEqual([401, "invalid_backup_code"])
    const [fresh] = begun.body.data.backup_codes
    expect((await mfa("verify", { ...next, backup_code: fresh })).status).toBe(200)
  })
})

const EMAIL = "ann@mailbox.test"
const NUMBER = "+436601234567"

const codeIn = (text: string | undefined) => /\d{6}/.exec(text ?? "")?.[0] ?? ""

async function mailedCode() {
  const [mail] = await deliverAll(service)
  return codeIn((await PostalMime.parse(mail?.raw ?? "")).text)
}

describe("a code that a message brings", () => {
  test("by mail turns the method on, and signs in", async () => {
    const { user, challenge, mfa } = await factorShop(service)
    const person = await user({ email: EMAIL })
    await person.post("/v1/auth/mfa/enroll", { method: "email" })
    const typed = { code: await mailedCode(), method: "email" }
    expect((await person.post("/v1/auth/mfa/verify-enrollment", typed)).status).toBe(200)
    const { challenge_token } = await challenge(person.id)
    const asked = { challenge_token, method: "email" }
    expect(refusal(await mfa("verify", { ...asked, code: "1" }))).toEqual([422, "otp_expired"])
    const sent = await mfa("challenge/send", asked)
    expect(refusal(await mfa("challenge/send", asked))).toEqual([
      ...[429, "otp_send_rate_limit_exceeded"],
    ])
    expect(sent.body.data).toEqual({
      ...{ sent: true, destination: "a•••@mailbox.test", expires_in: 600, resend_after: 30 },
    })
    const code = await mailedCode()
    expect(refusal(await mfa("verify", { ...asked, code: "000000" }))).toEqual([422, "invalid_otp"])
    const answer = await mfa("verify", { ...asked, code })
    expect(answer.body.data.user.id).toBe(person.id)
    const elsewhere = await mfa("challenge/send", {
      ...(await challenge(person.id)),
      method: "sms",
    })
    expect(refusal(elsewhere)).toEqual([401, "invalid_mfa"])
  })

  test("by text goes to the number of the method, and the answer waits for its first attempt", async () => {
    const { project, user, challenge, mfa } = await factorShop(service)
    const person = await user({ phone_number: NUMBER })
    const enroll = (body: object) => person.post("/v1/auth/mfa/enroll", { method: "sms", ...body })
    expect(refusal(await enroll({ phone_number: "0660" }))).toEqual([422, "invalid_phone_number"])
    expect(refusal(await enroll({}))).toEqual([503, "sms_not_configured"])
    await setTexts(service, project)
    expect((await enroll({})).body.data.destination).toBe("+43•••67")
    const [text] = await deliverTexts(service)
    const typed = { code: codeIn(text?.text) }
    expect((await person.post("/v1/auth/mfa/verify-enrollment", typed)).status).toBe(200)
    clock.advance({ seconds: 31 })
    const asked = { ...(await challenge(person.id)), method: "sms" }
    const refused = await whileSending(service, mfa("challenge/send", asked), "refused")
    expect(refusal(refused)).toEqual([400, "sms_send_failed"])
    const shown = await person.get("/v1/auth/mfa")
    expect(shown.body.data.methods).toMatchObject([{ type: "sms", hint: "+43•••67" }])
  })

  test("by mail needs an address", async () => {
    const { user } = await factorShop(service)
    const person = await user({ email: null, phone_number: NUMBER })
    const answer = await person.post("/v1/auth/mfa/enroll", { method: "email" })
    expect(refusal(answer)).toEqual([400, "email_required"])
  })
})
