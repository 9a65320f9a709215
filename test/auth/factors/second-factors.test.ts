import { describe, expect, test } from "bun:test"
import { refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import { sharedService } from "../../harness/shared-service"
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
