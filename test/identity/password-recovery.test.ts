import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { passwordHistory, passwordResets } from "../../src/identity/tables"
import { client, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { BEHIND_PROXY, PASSWORD, registered, signIn, stranger, visitor } from "./entrance"
import { runForgotten } from "./forgotten"

const clock = movableClock()
const service = await sharedService(BEHIND_PROXY)
const { store, mails } = service
const CHANGE = "/v1/users/me/password"

const signsIn = async (email: string, password: string) =>
  (await stranger(service).post("/v1/session", { email, password })).status === 200

/** Asks for a reset and returns the token of the mail. */
async function forgotten(email: string): Promise<string> {
  const asked = await stranger(service).post("/v1/password/forgot", { email })
  expect([asked.status, asked.body.data]).toEqual([200, { success: true }])
  await runForgotten(service)
  const mail = mails.findLast(({ to }) => to === email)
  return /\/password-reset\/(\S+)/.exec(mail?.text ?? "")?.[1] ?? ""
}

const reset = (token: string, new_password: string) =>
  stranger(service).post("/v1/password/reset", { token, new_password })

describe("changing a password", () => {
  test("ends the other sessions and keeps this one", async () => {
    const me = await visitor(service)
    const other = await signIn(service, me.user.email)
    const changed = await me.post(CHANGE, {
      current_password: PASSWORD,
      new_password: "New-Horse-88",
    })
    expect([changed.status, changed.body.data]).toEqual([200, { success: true }])
    expect((await me.get("/v1/session")).status).toBe(200)
    expect((await other.get("/v1/session")).status).toBe(401)
    const { refresh_token } = other.session
    expect((await other.door.post("/v1/session/refresh", { refresh_token })).status).toBe(401)
    expect(await signsIn(me.user.email, PASSWORD)).toBe(false)
    expect(await signsIn(me.user.email, "New-Horse-88")).toBe(true)
  })

  test("ends the mails with which another could be set", async () => {
    const me = await visitor(service)
    const token = await forgotten(me.user.email)
    await me.post(CHANGE, { current_password: PASSWORD, new_password: "New-Horse-88" })
    expect(refusal(await reset(token, "Other-Horse-9"))).toEqual([422, "otp_expired"])
    expect(await signsIn(me.user.email, "New-Horse-88")).toBe(true)
  })

  test("needs the present one, and not for guessing", async () => {
    const me = await visitor(service)
    const guess = () => me.post(CHANGE, { current_password: "x", new_password: "New-Horse-88" })
    for (let tries = 0; tries < 10; tries++) {
      expect(refusal(await guess())).toEqual([422, "invalid_current_password"])
    }
    expect(refusal(await guess())).toEqual([429, "login_rate_limit_exceeded"])
    expect(await signsIn(me.user.email, PASSWORD)).toBe(true)
  })

  test("takes a strong one that is none of the last five", async () => {
    const me = await visitor(service)
    const change = (from: string, to: string) =>
      me.post(CHANGE, { current_password: from, new_password: to })
    for (const weak of ["Aa1!", "alllower-7", "ALLUPPER-7", "No-Digits-Here", "NoSymbol77"]) {
      expect(refusal(await change(PASSWORD, weak))).toEqual([422, "weak_password"])
    }
    const all = [PASSWORD, ...[1, 2, 3, 4, 5].map((at) => `New-Horse-${at}`)]
    expect(refusal(await change(PASSWORD, PASSWORD))).toEqual([422, "password_recently_used"])
    for (const [at, from] of all.slice(0, -1).entries()) {
      expect((await change(from, all[at + 1] ?? "")).status).toBe(200)
    }
    const last = all.at(-1) ?? ""
    expect(refusal(await change(last, all[1] ?? ""))).toEqual([422, "password_recently_used"])
    expect((await change(last, PASSWORD)).status).toBe(200) // the sixth back is free again
    const kept = store.read.select().from(passwordHistory)
    expect(await kept.where(eq(passwordHistory.user_id, me.user.id))).toHaveLength(5)
  })
})

describe("a forgotten password", () => {
  test("is set anew with the token of the mail, once, and everybody is signed out", async () => {
    const me = await visitor(service)
    const token = await forgotten(me.user.email)
    expect(token).toMatch(/^belfry_reset_/)
    expect(refusal(await reset(token, "weak"))).toEqual([422, "weak_password"])
    expect(refusal(await reset(token, PASSWORD))).toEqual([422, "password_recently_used"])
    const done = await reset(token, "Reset-Horse-9")
    expect([done.status, done.body.data]).toEqual([200, { success: true }])
    expect(refusal(await reset(token, "Other-Horse-9"))).toEqual([422, "otp_expired"])
    expect((await me.get("/v1/session")).status).toBe(401)
    expect(await signsIn(me.user.email, "Reset-Horse-9")).toBe(true)
    expect(JSON.stringify(await store.read.select().from(passwordResets))).not.toContain(token)
  })

  test("one of two who reset at once wins", async () => {
    const { email } = await registered(service)
    const token = await forgotten(email)
    const answers = await Promise.all([
      reset(token, "First-Horse-9"),
      reset(token, "Second-Horse-9"),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422])
  })

  test("has an hour, and a later mail's use ends an earlier one's", async () => {
    const { email } = await registered(service)
    const old = await forgotten(email)
    const young = await forgotten(email)
    expect((await reset(young, "Reset-Horse-9")).status).toBe(200)
    expect(refusal(await reset(old, "Older-Horse-9"))).toEqual([422, "otp_expired"])
    const late = await forgotten(email)
    clock.advance({ seconds: 3601 })
    expect(refusal(await reset(late, "Later-Horse-9"))).toEqual([422, "otp_expired"])
    expect(refusal(await reset("belfry_reset_x", "Later-Horse-9"))).toEqual([422, "otp_expired"])
  })

  test("tells nobody whether there is such a user", async () => {
    const { email } = await registered(service)
    const unknown = `${crypto.randomUUID()}@people.test`
    const before = mails.length
    const door = stranger(service)
    const answers = []
    for (const one of [email, unknown, "no address"]) {
      answers.push(await door.post("/v1/password/forgot", { email: one }))
    }
    const bodies = answers.map(({ status, body }) => JSON.stringify([status, body.data]))
    expect([...new Set(bodies)]).toEqual(['[200,{"success":true}]'])
    await runForgotten(service)
    expect(mails.slice(before).map(({ to }) => to)).toEqual([email])
  })

  test("is asked for three times an hour, for known and unknown addresses alike", async () => {
    const { email } = await registered(service)
    for (const one of [email, `${crypto.randomUUID()}@people.test`]) {
      const ask = () => stranger(service).post("/v1/password/forgot", { email: one })
      for (let tries = 0; tries < 3; tries++) expect((await ask()).status).toBe(200)
      expect(refusal(await ask())).toEqual([429, "login_rate_limit_exceeded"])
    }
  })

  test("leaves the second factor on", async () => {
    const { generate } = await import("otplib")
    const me = await visitor(service)
    const { body } = await me.post("/v1/users/me/mfa/enroll")
    await me.post("/v1/users/me/mfa/verify", { code: await generate({ secret: body.data.secret }) })
    await reset(await forgotten(me.user.email), "Reset-Horse-9")
    const door = stranger(service)
    const half = await door.post("/v1/session", {
      email: me.user.email,
      password: "Reset-Horse-9",
    })
    expect(half.body.data.mfa_required).toBe(true)
  })
})

test("an API key has no business here", async () => {
  const { key } = await service.project()
  const { app } = service
  for (const path of ["/v1/session", "/v1/users/me", "/v1/users/me/sessions"]) {
    expect((await client(app, key).get(path)).status).toBeGreaterThanOrEqual(401)
  }
})
