import { describe, expect, test } from "bun:test"
import PostalMime from "postal-mime"
import { setUser } from "../../src/auth/end-users"
import type { EnvironmentSettings } from "../../src/auth/environment-settings"
import { newApplication } from "../harness/application"
import { type Reply, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { anEndUser } from "../harness/mailed-links"
import { sharedService } from "../harness/shared-service"
import { toldOf } from "./told-of"

const clock = movableClock()
const service = await sharedService()

const EMAIL = "ann@mailbox.test"
const BACK = "https://app.example.test/back"

async function shop(settings: Partial<EnvironmentSettings> = {}) {
  const project = await service.project()
  const application = await newApplication(service, project, {
    ...{ settings, redirect_urls: [BACK] },
  })
  const app = application.app()
  return {
    project,
    application,
    user: (wanted = {}) => anEndUser(service, application, { email: EMAIL, ...wanted }),
    send: (more: object = {}) => {
      clock.advance({ seconds: 31 })
      return app.post("/v1/auth/magic-link/send", { email: EMAIL, redirect_url: BACK, ...more })
    },
    verify: (token: string) => app.post("/v1/auth/magic-link/verify", { token }),
  }
}

/** The path of the link in the only mail since the last look. */
async function mailedPath(): Promise<string> {
  const [handed, ...others] = await deliverAll(service)
  expect(others).toEqual([])
  const { text = "" } = await PostalMime.parse(handed?.raw ?? "")
  return new URL(/http\S+/.exec(text)?.[0] ?? "").pathname
}

/** The button of the page. */
const press = (path: string): Promise<Reply> =>
  service.anybody.call("POST", path, {
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "",
  })

const codeOf = ({ headers }: Reply) =>
  new URL(headers.get("location") ?? BACK).searchParams.get("code") ?? ""

const REGISTER = { purpose: "register" }

describe("a magic link", () => {
  test("is scanned, pressed, and signs in once", async () => {
    const { project, send, verify, user } = await shop()
    const { id } = await user()
    const sent = await send()
    expect(sent.body.data).toEqual({ success: true, expires_in: 900, resend_after: 30 })
    const path = await mailedPath()
    for (const method of ["HEAD", "GET"]) await service.anybody.call(method, path)
    const code = codeOf(await press(path))
    const answer = await verify(code)
    expect(answer.status).toBe(200)
    expect(answer.body.data).toMatchObject({ is_new: false, user: { id, email_verified: true } })
    expect(refusal(await verify(code))).toEqual([422, "otp_expired"])
    expect(await toldOf(service, project)).toEqual([
      ...["user.login magic_link", "user.email_verified magic_link"],
    ])
  })

  test("makes one session, however many bring its code or its token at once", async () => {
    const { send, verify, user } = await shop()
    await user()
    await send()
    const path = await mailedPath()
    const presses = await Promise.all(Array.from({ length: 50 }, () => press(path)))
    const codes = presses.map(codeOf).filter((code) => code !== "")
    expect(codes).toHaveLength(1)
    const answers = await Promise.all(Array.from({ length: 50 }, () => verify(codes[0] ?? "")))
    const found = answers.map(({ status }) => status).sort()
    expect(found.slice(0, 2)).toEqual([200, 422])
    expect(refusal(await verify(path.slice(3)))).toEqual([422, "otp_expired"])
  })

  test("registers a person, and signs in whom it would register", async () => {
    const { send, verify } = await shop()
    await send()
    expect(await deliverAll(service)).toEqual([])
    await send(REGISTER)
    const first = await verify(codeOf(await press(await mailedPath())))
    expect(first.status).toBe(201)
    expect(first.body.data).toMatchObject({ is_new: true, user: { email_verified: true } })
    await send(REGISTER)
    const second = await verify(codeOf(await press(await mailedPath())))
    expect([second.status, second.body.data.is_new]).toEqual([200, false])
  })

  test("hands over a code for a minute, for its own environment", async () => {
    const { application, send, verify, user } = await shop()
    await user()
    await send()
    const code = codeOf(await press(await mailedPath()))
    const elsewhere = await application
      .app("test")
      .post("/v1/auth/magic-link/verify", { token: code })
    expect(refusal(elsewhere)).toEqual([422, "otp_expired"])
    clock.advance({ seconds: 61 })
    expect(refusal(await verify(code))).toEqual([422, "otp_expired"])
  })

  test("is not for users that are invited, nor for an address that left its user", async () => {
    const { send, verify, user } = await shop()
    await user({ status: "invited" })
    for (const purpose of ["login", "register"]) expect((await send({ purpose })).status).toBe(200)
    expect(await deliverAll(service)).toEqual([])
    const other = await shop()
    const ann = await other.user()
    await other.send()
    const code = codeOf(await press(await mailedPath()))
    await service.store.tx((tx) => setUser(tx, ann, { email: "ben@mailbox.test" }))
    expect(refusal(await other.verify(code))).toEqual([422, "otp_expired"])
    expect(refusal(await verify("nothing"))).toEqual([422, "otp_expired"])
  })

  test("tells of a suspended user, or lets the link tell where accounts are hidden", async () => {
    const open = await shop()
    await open.user({ status: "suspended" })
    expect(refusal(await open.send())).toEqual([400, "user_inactive"])
    const hidden = await shop({ hide_account_existence: true })
    await hidden.user({ status: "suspended" })
    expect((await hidden.send()).status).toBe(200)
    const code = codeOf(await press(await mailedPath()))
    expect(refusal(await hidden.verify(code))).toEqual([400, "user_inactive"])
  })

  test("asks apps for a captcha, and no server", async () => {
    const captcha = { provider: "turnstile" as const, secret: "••••" }
    const { project, application } = await shop({ captcha })
    const body = { email: EMAIL, redirect_url: BACK }
    const path = "/v1/auth/magic-link/send"
    // The secret of this environment cannot be read any more.
    const asked = await application.app().post(path, body)
    expect(refusal(asked)).toEqual([503, "service_unavailable"])
    expect((await project.post(path, body)).status).toBe(200)
  })

  test.each([
    [{ redirect_url: `${BACK}/` }, 422, "invalid_url"],
    [{ redirect_url: undefined }, 422, "missing_required_field"],
    [{ email: "ann" }, 422, "invalid_email"],
    [{ purpose: "reauthenticate" }, 422, "validation_error"],
  ])("with %j is refused", async (more, status, code) => {
    const { send } = await shop()
    expect(refusal(await send(more))).toEqual([status, code])
  })
})
