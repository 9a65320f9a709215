import { describe, expect, test } from "bun:test"
import PostalMime from "postal-mime"
import type { EnvironmentSettings } from "../../src/auth/environment-settings"
import { ENVIRONMENT_DEFAULTS } from "../../src/auth/environment-settings"
import { newApplication } from "../harness/application"
import { type Reply, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { NOBODY } from "../harness/mail"
import { anEndUser } from "../harness/mailed-links"
import { sharedService } from "../harness/shared-service"
import { enrolApp } from "./factors/factor-shop"
import { toldOf } from "./told-of"

const clock = movableClock()
const service = await sharedService()

const ANN = "ann@mailbox.test"
const NUMBER = "+436601234567"
const FIXED = "424242"
const methods = { ...ENVIRONMENT_DEFAULTS.methods, phone_otp: true }

/** Both addresses of the tests take a fixed code, unless these settings say otherwise. */
const REVIEWED = [
  { email: ANN, code: FIXED },
  { phone_number: NUMBER, code: FIXED },
]

async function shop(settings: Partial<EnvironmentSettings> = {}) {
  const project = await service.project()
  const defaults = { methods, test_identifiers: REVIEWED }
  const application = await newApplication(service, project, {
    settings: { ...defaults, ...settings },
  })
  const post = (path: string, body: object) => project.post(`/v1/auth/${path}`, body)
  return {
    project,
    application,
    post,
    user: (wanted = {}) => anEndUser(service, application, { email: ANN, ...wanted }),
    /** Past the pause between two codes. */
    send: (body: object = { email: ANN }) => {
      clock.advance({ seconds: 31 })
      return post("email-otp/send", body)
    },
    verify: (code: string, more: object = {}) =>
      post("email-otp/verify", { email: ANN, code, ...more }),
    told: () => toldOf(service, project),
  }
}

/** What was mailed since the last look. */
async function mailed() {
  const handed = await deliverAll(service)
  return Promise.all(handed.map(({ raw }) => PostalMime.parse(raw)))
}

const codeIn = (text: string | undefined) => /\d{6}/.exec(text ?? "")?.[0] ?? ""

const wrong = (at: number) => String(100_000 + at)

const REGISTER = { email: ANN, purpose: "register" }

describe("a code by email", () => {
  test("reaches its person, signs them in once, and their address is verified", async () => {
    const { send, verify, user, told } = await shop({ test_identifiers: [] })
    const { id } = await user()
    expect((await send()).body.data).toEqual({
      ...{ sent: true, destination: "a•••@mailbox.test", expires_in: 600, resend_after: 30 },
    })
    const [mail] = await mailed()
    const answer = await verify(codeIn(mail?.subject))
    expect(answer.status).toBe(200)
    const { data } = answer.body
    expect(data).toMatchObject({ is_new: false, user: { id, email: ANN, email_verified: true } })
    expect(data.tokens.access_token.split(".")).toHaveLength(3)
    expect(refusal(await verify(codeIn(mail?.subject)))).toEqual([400, "otp_expired"])
    expect(await told()).toEqual(["user.login email_otp", "user.email_verified email_otp"])
  })

  test("registers a person, with name and metadata, once", async () => {
    const { send, verify, told } = await shop()
    expect(refusal(await send())).toEqual([400, "email_not_found"])
    expect((await send(REGISTER)).status).toBe(200)
    const profile = { purpose: "register", name: "Ann", metadata: { plan: "gold" } }
    expect(refusal(await verify(FIXED))).toEqual([400, "email_not_found"])
    const answer = await verify(FIXED, profile)
    expect(answer.status).toBe(201)
    expect(answer.body.data).toMatchObject({
      is_new: true,
      user: { name: "Ann", metadata: { plan: "gold" }, email_verified: true, status: "active" },
    })
    expect(await told()).toEqual(["user.created email_otp", "user.email_verified email_otp"])
    expect(refusal(await send(REGISTER))).toEqual([400, "email_already_registered"])
  })

  test("makes one user and one session, however many bring it at once", async () => {
    const { send, verify } = await shop()
    await send(REGISTER)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => verify(FIXED, { purpose: "register" })),
    )
    const found = answers.map(({ status, body }) => body.error?.code ?? status).sort()
    expect(found).toEqual([201, ...Array(4).fill("otp_expired")])
  })

  test("of a first proof takes a stranger's password, factors and session away, and no others", async () => {
    const { application, project, send, verify } = await shop()
    const password = "Quiet-River-42"
    const app = application.app()
    const stranger = await app.post("/v1/auth/users/register", { email: ANN, password })
    const token = stranger.body.data.tokens.access_token
    const me = () => service.anybody.get("/v1/auth/users/me", { authorization: `Bearer ${token}` })
    expect((await me()).status).toBe(200)
    const signed = { authorization: `Bearer ${token}` }
    await enrolApp({ post: (path, body) => service.anybody.post(path, body, signed) })
    await send()
    const owner = await verify(FIXED)
    expect(owner.body.data.user.id).toBe(stranger.body.data.user.id)
    expect(owner.body.data.user.mfa_methods).toEqual([])
    expect((await me()).status).toBe(401)
    const login = (typed: string) =>
      app.post("/v1/auth/users/login", { email: ANN, password: typed })
    expect(refusal(await login(password))).toEqual([401, "unauthorized"])

    const path = `/v1/auth/users/${owner.body.data.user.id}`
    await project.post(`${path}/password`, { password: "Deep-Forest-17", keep_sessions: true })
    await send()
    expect((await verify(FIXED)).status).toBe(200)
    expect((await login("Deep-Forest-17")).status).toBe(200)
    await mailed() // the notices, before the clock is as it was
  })

  test("is tried five times, then not even the right one passes; a new code takes its place", async () => {
    const { send, verify, user } = await shop()
    await user()
    await send()
    for (const at of [1, 2, 3, 4, 5])
      expect(refusal(await verify(wrong(at)))).toEqual([400, "otp_invalid"])
    expect(refusal(await verify(FIXED))).toEqual([400, "otp_max_attempts"])
    await send()
    expect((await verify(FIXED)).status).toBe(200)
  })

  test("has fifteen tries an hour for its address, however often it is sent anew", async () => {
    const { send, verify, user } = await shop()
    await user()
    const codes: string[] = []
    for (let at = 0; at < 24; at++) {
      if (at % 4 === 0) await send()
      codes.push((await verify(wrong(at))).body.error.code)
    }
    const limit = "otp_verify_rate_limit_exceeded"
    expect(codes).toEqual([...Array(15).fill("otp_invalid"), ...Array(9).fill(limit)])
    expect(refusal(await verify(FIXED))).toEqual([429, limit])
    clock.advance({ seconds: 3600 })
    await send()
    expect((await verify(FIXED)).status).toBe(200)
  })

  test("holds for ten minutes", async () => {
    const { send, verify, user } = await shop()
    await user()
    await send()
    clock.advance({ seconds: 601 })
    expect(refusal(await verify(FIXED))).toEqual([400, "otp_expired"])
  })

  test("waits for 30 seconds after the one before, whatever it is for", async () => {
    const { post, user } = await shop()
    await user()
    expect((await post("email-otp/send", { email: ANN })).status).toBe(200)
    const again = await post("email-otp/send", { email: ` ${ANN}`.trim().toUpperCase() })
    expect(refusal(again)).toEqual([429, "otp_send_rate_limit_exceeded"])
    expect(again.body.error.details).toMatchObject({ limit: 1, window_seconds: 30 })
  })

  test("is sent once for an idempotency key", async () => {
    const { project, user } = await shop({ test_identifiers: [] })
    await user()
    const once = { "idempotency-key": "first" }
    const ask = () => project.post("/v1/auth/email-otp/send", { email: ANN }, once)
    const [first, second] = [await ask(), await ask()]
    expect(second.body.data).toEqual(first.body.data)
    expect(second.headers.get("idempotent-replayed")).toBe("true")
    expect(await mailed()).toHaveLength(1)
  })

  test("is not for users that are invited or suspended", async () => {
    const { send, verify, user } = await shop()
    await user({ status: "invited" })
    expect(refusal(await send())).toEqual([400, "email_not_found"])
    expect(refusal(await verify(FIXED))).toEqual([400, "email_not_found"])
    expect(refusal(await send(REGISTER))).toEqual([400, "email_already_registered"])
    const other = await shop()
    await other.user({ status: "suspended" })
    expect(refusal(await other.send())).toEqual([400, "user_inactive"])
  })

  test.each([
    [{ email: "ann" }, 400, "invalid_email"],
    [{ email: "Ann <ann@mailbox.test>" }, 400, "invalid_email"],
    [{}, 422, "missing_required_field"],
    [{ email: ANN, purpose: "reauthenticate" }, 422, "validation_error"],
    [{ email: ANN, purpose: "delete" }, 422, "validation_error"],
    [{ email: ANN, application_id: NOBODY }, 404, "not_found"],
  ])("with %j is refused", async (body, status, code) => {
    const { send } = await shop()
    expect(refusal(await send(body))).toEqual([status, code])
  })

  test("is not sent where the method is off, or the domain blocked", async () => {
    const off = await shop({ methods: { ...methods, email_otp: false } })
    expect(refusal(await off.send())).toEqual([403, "forbidden"])
    expect(refusal(await off.verify(FIXED))).toEqual([403, "forbidden"])
    const blocked = await shop({ blocked_email_domains: ["mailbox.test"] })
    const answer = await blocked.send(REGISTER)
    expect(answer.body.error.details).toMatchObject({ reason: "email_domain_not_allowed" })
  })

  test("of environment test knows no user of live", async () => {
    const { send, user, post } = await shop()
    await user()
    const there = { email: ANN, environment: "test" }
    expect(refusal(await send(there))).toEqual([400, "email_not_found"])
    expect((await send()).status).toBe(200)
    const elsewhere = await post("email-otp/verify", { ...there, code: FIXED })
    expect(refusal(elsewhere)).toEqual([400, "email_not_found"])
  })
})

describe("an environment that hides which accounts exist", () => {
  const hiding = { hide_account_existence: true }

  test("answers for everybody the same, and mails only those that it knows", async () => {
    const { send, verify, user } = await shop({ ...hiding, test_identifiers: [] })
    const sent = await send()
    const tries: Reply[] = []
    for (let at = 0; at < 6; at++) tries.push(await verify(wrong(at)))
    expect(await mailed()).toHaveLength(0)
    await user()
    const known = await send()
    expect(known.body.data).toEqual(sent.body.data)
    for (const one of tries)
      expect(refusal(await verify(wrong(9)))).toEqual(refusal(one) as [number, string])
    expect(await mailed()).toHaveLength(1)
    expect((await send(REGISTER)).body.data).toEqual(sent.body.data)
    expect(await mailed()).toHaveLength(0)
  })

  test("gives nobody the fixed code of a tester without a user", async () => {
    const { send, verify } = await shop(hiding)
    expect((await send()).status).toBe(200)
    expect(refusal(await verify(FIXED))).toEqual([400, "otp_invalid"])
  })

  test("tells a suspended user so when they bring the code", async () => {
    const { send, verify, user } = await shop(hiding)
    await user({ status: "suspended" })
    expect((await send()).status).toBe(200)
    expect(refusal(await verify(FIXED))).toEqual([400, "user_inactive"])
  })
})
