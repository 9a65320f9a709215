import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { decodeJwt } from "jose"
import PostalMime from "postal-mime"
import {
  ENVIRONMENT_DEFAULTS,
  type EnvironmentSettings,
} from "../../../src/auth/environment-settings"
import { userFactors, userPasskeys } from "../../../src/auth/factors/tables"
import { userSessions } from "../../../src/auth/tables"
import { refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import { deliverAll } from "../../harness/delivery"
import { sharedService } from "../../harness/shared-service"
import { asUser, signInAgain } from "../signed-up"
import { appCode, enrolApp, factorShop } from "./factor-shop"

const clock = movableClock()
const service = await sharedService()
const { store } = service

const STEP_UP = "/v1/auth/mfa/step-up"
const DISABLE = "/v1/auth/mfa/disable"
const ENROLL = "/v1/auth/mfa/enroll"
const ME = "/v1/auth/users/me"
const PROOF = { password: "Quiet-River-42" }

const nextStep = () => clock.advance({ seconds: 30 })

const policy = (
  name: EnvironmentSettings["mfa"]["policy"],
  methods = ENVIRONMENT_DEFAULTS.mfa.methods,
) => ({ mfa: { policy: name, methods } })

describe("a step-up", () => {
  test("brings a fresh token, and for ten minutes calls need no code", async () => {
    const { withApp } = await factorShop(service)
    const { person, secret } = await withApp()
    const before = decodeJwt(person.access_token)
    const wrong = await person.post(STEP_UP, { totp_code: "000000" })
    expect(refusal(wrong)).toEqual([401, "invalid_verification"])
    nextStep()
    const { body } = await person.post(STEP_UP, { totp_code: await appCode(secret) })
    expect(body.data.expires_in).toBe(3600)
    const claims = decodeJwt(body.data.access_token)
    expect(claims.amr).toEqual(["pwd", "otp", "mfa"])
    expect(Number(claims.auth_time) - Number(before.auth_time)).toBeGreaterThanOrEqual(30)
    expect((await person.post("/v1/auth/mfa/backup-codes", {})).status).toBe(200)
    clock.advance({ seconds: 601 })
    const late = await person.post("/v1/auth/mfa/backup-codes", {})
    expect(refusal(late)).toEqual([401, "invalid_verification"])
  })

  test("without a code has one sent, where a method sends codes", async () => {
    const { withApp, user } = await factorShop(service)
    const { person } = await withApp()
    expect(refusal(await person.post(STEP_UP, {}))).toEqual([422, "missing_required_field"])
    const asked = await person.post(STEP_UP, { method: "email" })
    expect(refusal(asked)).toEqual([400, "mfa_not_enabled"])
    const nobody = await user()
    expect(refusal(await nobody.post(STEP_UP, {}))).toEqual([400, "mfa_not_enabled"])
  })

  test("comes before a user with a second factor deletes themselves", async () => {
    const { withApp, user } = await factorShop(service)
    const { person, backup_codes } = await withApp()
    expect(refusal(await person.call("DELETE", ME, { body: PROOF }))).toEqual([403, "mfa_required"])
    expect((await person.post(STEP_UP, { backup_code: backup_codes[0] })).status).toBe(200)
    expect(refusal(await person.call("DELETE", ME, { body: PROOF }))).toEqual([
      422,
      "invalid_current_password",
    ])
    const plain = await user()
    expect(refusal(await plain.call("DELETE", ME, { body: PROOF }))).toEqual([
      422,
      "invalid_current_password",
    ])
  })

  test("comes before another method, in a session that has not proven one", async () => {
    const { withApp, application, user } = await factorShop(service)
    const { id, secret } = await withApp()
    const stale = asUser(service, await signInAgain(service, application, id, { amr: ["mfa"] }))
    await store.tx((tx) =>
      tx
        .update(userSessions)
        .set({ amr: ["pwd"] })
        .where(eq(userSessions.user_id, id)),
    )
    expect(refusal(await stale.post(ENROLL, { method: "email" }))).toEqual([403, "mfa_required"])
    const early = await user({ email: "ben@mailbox.test" })
    const begun = await early.post(ENROLL, {})
    const server = { user_id: early.id }
    const theirs = await application.server().post(ENROLL, { ...server, method: "email" })
    expect(theirs.status).toBe(200)
    const [mail] = await deliverAll(service)
    const code = /\d{6}/.exec((await PostalMime.parse(mail?.raw ?? "")).text ?? "")?.[0]
    const verify = "/v1/auth/mfa/verify-enrollment"
    expect((await application.server().post(verify, { ...server, code })).status).toBe(200)
    const late = await early.post(verify, {
      ...{ method: "totp", code: await appCode(begun.body.data.secret) },
    })
    expect(refusal(late)).toEqual([403, "mfa_required"])
    nextStep()
    await stale.post(STEP_UP, { totp_code: await appCode(secret) })
    expect((await stale.post(ENROLL, { method: "email" })).status).toBe(200)
  })
})

describe("a method", () => {
  test("whose secret was lost with its key takes no code", async () => {
    const { withApp, challenge, mfa } = await factorShop(service)
    const { id } = await withApp()
    const lost = { secret: null }
    await store.tx((tx) => tx.update(userFactors).set(lost).where(eq(userFactors.user_id, id)))
    const answer = await mfa("verify", { ...(await challenge(id)), totp_code: "123456" })
    expect(refusal(answer)).toEqual([401, "invalid_totp"])
  })

  test("is turned off with a code, and the last one takes the backup codes along", async () => {
    const { withApp, told, user } = await factorShop(service)
    const { person, secret, backup_codes } = await withApp()
    expect(refusal(await person.post(DISABLE, {}))).toEqual([401, "invalid_verification"])
    const wrong = await person.post(DISABLE, { backup_code: "aaaaa-aaaaa" })
    expect(refusal(wrong)).toEqual([401, "invalid_backup_code"])
    const absent = await person.post(DISABLE, { backup_code: backup_codes[0], method: "sms" })
    expect(refusal(absent)).toEqual([400, "mfa_not_enabled"])
    nextStep()
    const off = await person.post(DISABLE, { totp_code: await appCode(secret) })
    expect(off.body.data).toEqual({ enabled: false, methods: [] })
    const shown = await person.get("/v1/auth/mfa")
    expect(shown.body.data).toEqual({ enabled: false, methods: [], backup_codes_left: 0 })
    expect((await told()).at(-1)).toBe("user.mfa_disabled totp")
    const nobody = await user()
    expect(refusal(await nobody.post(DISABLE, {}))).toEqual([400, "mfa_not_enabled"])
  })

  test("is turned on by a server for its own users alone", async () => {
    const { application, user } = await factorShop(service)
    const other = await factorShop(service)
    const person = await user()
    const server = application.server()
    const foreign = await other.application.server().post(ENROLL, { user_id: person.id })
    expect(refusal(foreign)).toEqual([404, "user_not_found"])
    expect(refusal(await server.post(ENROLL, {}))).toEqual([422, "missing_required_field"])
    const begun = await server.post(ENROLL, { user_id: person.id })
    const code = await appCode(begun.body.data.secret)
    const typed = { code, user_id: person.id }
    expect((await server.post("/v1/auth/mfa/verify-enrollment", typed)).status).toBe(200)
    const me = await person.get(ME)
    expect(me.body.data.mfa_methods).toEqual(["totp"])
    await server.post(`/v1/auth/users/${person.id}/suspend`, {})
    const suspended = await server.post(ENROLL, { user_id: person.id, method: "email" })
    expect(refusal(suspended)).toEqual([400, "user_inactive"])
  })

  test("and all others are removed by a server, and the sessions of the user end", async () => {
    const { withApp, project, told } = await factorShop(service)
    const { person, id } = await withApp()
    const removed = await project.call("DELETE", `/v1/auth/users/${id}/mfa`)
    expect(removed.body.data).toMatchObject({ id, mfa_enabled: false, mfa_methods: [] })
    expect((await person.get(ME)).status).toBe(401)
    expect((await told()).slice(-2)).toEqual(["user.mfa_disabled", "user.session_revoked"])
    const again = await project.call("DELETE", `/v1/auth/users/${id}/mfa`)
    expect(refusal(again)).toEqual([400, "mfa_not_enabled"])
    const left = store.read.select().from(userPasskeys).where(eq(userPasskeys.user_id, id))
    expect(await left).toEqual([])
  })
})

describe("the policy", () => {
  test("off takes no enrolment, and asks for nothing", async () => {
    const { withApp, project, application, user } = await factorShop(service)
    const { id } = await withApp()
    const path = `/v1/auth/applications/${application.id}/environments/live`
    await project.call("PATCH", path, { body: { mfa: { policy: "off" } } })
    const shown = await application.app().get("/v1/auth/config")
    expect(shown.body.data.mfa_policy).toBe("off")
    const answer = await (await user()).post(ENROLL, {})
    expect(refusal(answer)).toEqual([403, "forbidden"])
    expect(answer.body.error.details).toMatchObject({ reason: "method_off", method: "totp" })
    expect((await signInAgain(service, application, id)).tokens.token_type).toBe("Bearer")
  })

  test("off takes the enrolment that an organization demands", async () => {
    const { user, project, application } = await factorShop(service, policy("off"))
    const person = await user()
    const { default_organization_id } = await application.environment()
    const path = `/v1/auth/organizations/${default_organization_id}`
    await project.call("PATCH", path, { body: { mfa_required: true } })
    const held = asUser(service, await signInAgain(service, application, person.id))
    expect(refusal(await held.get("/v1/auth/sessions"))).toEqual([403, "mfa_required"])
    await enrolApp(held)
    expect((await held.get("/v1/auth/sessions")).status).toBe(200)
  })

  test("names the methods that can be enrolled", async () => {
    const { user } = await factorShop(service, policy("optional", ["email"]))
    expect(refusal(await (await user()).post(ENROLL, {}))).toEqual([403, "forbidden"])
    expect((await (await user()).post(ENROLL, { method: "email" })).status).toBe(200)
  })

  test("required leaves little open before a second factor is on", async () => {
    const { user, application, mfa, challenge } = await factorShop(service, policy("required"))
    const person = await user()
    const other = asUser(service, await signInAgain(service, application, person.id))
    expect(refusal(await person.get("/v1/auth/sessions"))).toEqual([403, "mfa_required"])
    expect((await person.get(ME)).status).toBe(200)
    expect((await person.get("/v1/auth/mfa")).body.data.enabled).toBe(false)
    const { secret } = await enrolApp(person)
    expect((await person.get("/v1/auth/sessions")).status).toBe(200)
    expect(refusal(await other.get("/v1/auth/sessions"))).toEqual([403, "mfa_required"])
    nextStep()
    const proven = await other.post(STEP_UP, { totp_code: await appCode(secret) })
    expect(proven.status).toBe(200)
    expect((await other.get("/v1/auth/sessions")).status).toBe(200)
    nextStep()
    const answer = { ...(await challenge(person.id)), totp_code: await appCode(secret) }
    const { data } = (await mfa("verify", answer)).body
    expect((await asUser(service, data).get("/v1/auth/sessions")).status).toBe(200)
  })
})

describe("a challenge", () => {
  test("that began with a password ends with it", async () => {
    const { withApp, challenge, project, mfa } = await factorShop(service)
    const { id, backup_codes } = await withApp()
    const [backup_code] = backup_codes
    const open = await challenge(id)
    const next = { password: "Louder-River-43" }
    expect((await project.post(`/v1/auth/users/${id}/password`, next)).status).toBe(200)
    expect(refusal(await mfa("verify", { ...open, backup_code }))).toEqual([401, "invalid_mfa"])
    expect((await mfa("verify", { ...(await challenge(id)), backup_code })).status).toBe(200)
  })

  test("holds for its own application and environment alone", async () => {
    const { withApp, challenge, application, mfa } = await factorShop(service)
    const { id, secret } = await withApp()
    const other = await factorShop(service)
    nextStep()
    const totp_code = await appCode(secret)
    const given = { challenge_token: (await challenge(id)).challenge_token, totp_code }
    const asked = { ...given, method: "email" }
    for (const app of [other.application.app(), application.app("test")])
      for (const [path, body] of [
        ["verify", given],
        ["recovery", { ...given, backup_code: "x" }],
        ["challenge/send", asked],
      ] as const)
        expect(refusal(await app.post(`/v1/auth/mfa/${path}`, body))).toEqual([401, "invalid_mfa"])
    expect((await mfa("verify", given)).status).toBe(200)
  })

  test("ends after five minutes, and lets in nobody who was suspended meanwhile", async () => {
    const { withApp, challenge, project, mfa } = await factorShop(service)
    const { id, secret } = await withApp()
    const late = await challenge(id)
    clock.advance({ seconds: 301 })
    const totp_code = await appCode(secret)
    expect(refusal(await mfa("verify", { ...late, totp_code }))).toEqual([401, "invalid_mfa"])
    const open = await challenge(id)
    expect(refusal(await mfa("verify", open))).toEqual([422, "missing_required_field"])
    await project.post(`/v1/auth/users/${id}/suspend`, {})
    expect(refusal(await mfa("verify", { ...open, totp_code }))).toEqual([400, "user_inactive"])
  })
})
