import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { insertUser } from "../../src/auth/end-users"
import { ENVIRONMENT_DEFAULTS, type EnvironmentSettings } from "../../src/auth/environment-settings"
import { messages } from "../../src/messages/tables"
import { newApplication, signedUp } from "../harness/application"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { anEndUser } from "../harness/mailed-links"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { setTexts, whileSending } from "./text-sending"
import { toldOf } from "./told-of"

const clock = movableClock()
const service = await sharedService()
const { store } = service

const NUMBER = "+436601234567"
const FIXED = "424242"
const methods = { ...ENVIRONMENT_DEFAULTS.methods, phone_otp: true }
const test_identifiers = [{ phone_number: NUMBER, code: FIXED }]

async function shop(settings: Partial<EnvironmentSettings> = {}) {
  const project = await service.project()
  const application = await newApplication(service, project, { settings: { methods, ...settings } })
  const app = application.app()
  return {
    project,
    application,
    app,
    user: (wanted = {}) => anEndUser(service, application, { phone_number: NUMBER, ...wanted }),
    send: (body: object = { phone_number: NUMBER }) => app.post("/v1/auth/phone/send", body),
    verify: (code: string, more: object = {}) =>
      app.post("/v1/auth/phone/verify", { phone_number: NUMBER, code, ...more }),
  }
}

const textsOf = ({ project_id }: TestProject) =>
  store.read.select().from(messages).where(eq(messages.project_id, project_id))

describe("a code by text", () => {
  test("is sent while the answer waits for its first attempt", async () => {
    const { project, app, send, user } = await shop()
    await setTexts(service, project, [])
    await user()
    const answer = await whileSending(service, send({ phone: NUMBER }))
    expect(answer.body.data).toEqual({
      ...{ sent: true, destination: "+43•••67", expires_in: 600, resend_after: 30 },
    })
    const [text] = await textsOf(project)
    expect(text).toMatchObject({ channel: "sms", status: "sent", stream: "auth" })
    const open = await app.get("/v1/auth/phone/availability")
    expect(open.body.data).toEqual({
      ...{ available: true, reason: null, purposes: ["login", "register"] },
    })
  })

  test("is refused where the provider refuses it, unless that would tell who has an account", async () => {
    for (const hide_account_existence of [false, true]) {
      const { project, send, user } = await shop({ hide_account_existence })
      await setTexts(service, project, [])
      await user()
      const answer = await whileSending(service, send(), "refused")
      const wanted = hide_account_existence ? [200, undefined] : [400, "sms_send_failed"]
      expect(refusal(answer)).toEqual(wanted)
    }
  })

  test("registers and signs in, and the number is verified", async () => {
    const { project, send, verify } = await shop({ test_identifiers })
    expect(refusal(await send())).toEqual([400, "phone_not_found"])
    clock.advance({ seconds: 31 })
    expect((await send({ phone_number: NUMBER, purpose: "register" })).status).toBe(200)
    const made = await verify(FIXED, { purpose: "register" })
    expect(made.status).toBe(201)
    expect(made.body.data.user).toMatchObject({ phone_number: NUMBER, phone_verified: true })
    expect(await textsOf(project)).toEqual([])
    expect(await toldOf(service, project)).toEqual([
      ...["user.created phone_otp", "user.phone_verified phone_otp"],
    ])
    clock.advance({ seconds: 31 })
    const again = await send({ phone_number: NUMBER, purpose: "register" })
    expect(refusal(again)).toEqual([400, "phone_already_registered"])
    const other = await shop({ test_identifiers })
    await other.user()
    await other.send()
    expect((await other.verify(FIXED)).body.data.user.phone_verified).toBe(true)
  })

  test("of environment test stays in the sink and counts in no quota", async () => {
    const { project, application } = await shop()
    await store.tx(async (tx) => {
      await insertUser(tx, await application.environment("test"), { phone_number: NUMBER })
    })
    const sent = application.app("test").post("/v1/auth/phone/send", { phone_number: NUMBER })
    expect((await whileSending(service, sent)).status).toBe(200)
    expect(await textsOf(project)).toMatchObject([{ sandbox: true }])
  })

  test.each([
    ["0660123", 400, "invalid_phone"],
    ["+43 660 1234567", 400, "invalid_phone"],
    ["+4917612345678", 422, "validation_error"],
  ])("to %s is refused", async (phone_number, status, code) => {
    const { project, send } = await shop()
    await setTexts(service, project, ["+43"])
    const answer = await send({ phone_number })
    expect(refusal(answer)).toEqual([status, code])
    if (code !== "validation_error") return
    expect(answer.body.error.details).toMatchObject({
      ...{ reason: "country_not_allowed", fields: [{ path: "phone_number" }] },
    })
  })

  test("needs a provider, and the method", async () => {
    const { app, send } = await shop()
    expect(refusal(await send())).toEqual([503, "sms_not_configured"])
    const silent = await app.get("/v1/auth/phone/availability")
    expect(silent.body.data).toMatchObject({ available: false, reason: "sms_not_configured" })
    const off = await shop({ methods: ENVIRONMENT_DEFAULTS.methods })
    expect(refusal(await off.send())).toEqual([403, "forbidden"])
    const closed = await off.app.get("/v1/auth/phone/availability")
    expect(closed.body.data).toMatchObject({ available: false, reason: "method_off" })
  })
})

describe("a code that proves a signed-in user again", () => {
  const again = { purpose: "reauthenticate" }
  const EMAIL = "ann@mailbox.test"

  async function signedIn() {
    const { project, application } = await shop({
      test_identifiers: [{ email: EMAIL, code: FIXED }],
    })
    const user = await signedUp(service, application, { email: EMAIL })
    const send = (body: object) => user.post("/v1/auth/email-otp/send", body)
    return { project, application, user, send }
  }

  test("is for the own address, which may be left out", async () => {
    const { send, user } = await signedIn()
    expect(refusal(await send({ ...again, email: "ben@mailbox.test" }))).toEqual([403, "forbidden"])
    expect((await send(again)).body.data.destination).toBe("a•••@mailbox.test")
    const phone = await user.post("/v1/auth/phone/send", again)
    expect(refusal(phone)).toEqual([422, "missing_required_field"])
    clock.advance({ seconds: 31 })
    expect((await send({ ...again, email: EMAIL.toUpperCase() })).status).toBe(200)
  })

  test("is all that a user's token may ask for, and signs nobody in", async () => {
    const { application, send } = await signedIn()
    for (const body of [{ email: EMAIL }, { email: EMAIL, purpose: "login" }])
      expect(refusal(await send(body))).toEqual([422, "validation_error"])
    const stranger = application.app()
    const asked = await stranger.post("/v1/auth/email-otp/send", { ...again, email: EMAIL })
    expect(refusal(asked)).toEqual([422, "validation_error"])
    await send(again)
    const typed = { email: EMAIL, code: FIXED }
    const tried = await stranger.post("/v1/auth/email-otp/verify", typed)
    expect(refusal(tried)).toEqual([400, "otp_expired"])
    const named = await stranger.post("/v1/auth/email-otp/verify", { ...typed, ...again })
    expect(refusal(named)).toEqual([422, "validation_error"])
  })
})
