import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { generate } from "otplib"
import { millis } from "../../src/core/time"
import { backupCodes, consoleUsers, mfaChallenges } from "../../src/identity/tables"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { BEHIND_PROXY, PASSWORD, stranger, visitor } from "./entrance"

const clock = movableClock()
const service = await sharedService(BEHIND_PROXY)
const { store } = service
const MFA = "/v1/users/me/mfa"

/** The code that an app shows, some steps of 30 s from now. */
const codeOf = (secret: string, steps = 0) =>
  generate({ secret, epoch: Math.floor(millis() / 1000) + steps * 30 })

/** A user who just turned his second factor on. */
async function guarded() {
  const me = await visitor(service)
  const { body } = await me.post(`${MFA}/enroll`)
  const { secret, backup_codes } = body.data as { secret: string; backup_codes: string[] }
  const on = await me.post(`${MFA}/verify`, { code: await codeOf(secret) })
  if (on.status !== 200) throw new Error(JSON.stringify(on.body))
  return { ...me, secret, backup_codes }
}

async function challenged(email: string) {
  const door = stranger(service)
  const { status, body } = await door.post("/v1/session", { email, password: PASSWORD })
  expect([status, body.data.mfa_required]).toEqual([200, true])
  const { token } = body.data.mfa_challenge
  return (code: string) => door.post("/v1/session/mfa", { token, code })
}

describe("turning it on", () => {
  test("shows a secret, an image of it and recovery codes, and waits for a first code", async () => {
    const me = await visitor(service)
    const { status, body } = await me.post(`${MFA}/enroll`)
    expect(status).toBe(200)
    const { secret, otpauth_url, qr_code, backup_codes } = body.data
    const url = new URL(otpauth_url)
    expect(url.protocol + url.host).toBe("otpauth:totp")
    expect(url.searchParams.get("secret")).toBe(secret)
    expect(url.searchParams.get("issuer")).toBe("Belfry belfry.test")
    expect(atob(qr_code.replace("data:image/svg+xml;base64,", ""))).toMatch(/^<svg.*<\/svg>$/s)
    expect(new Set(backup_codes).size).toBe(10)
    for (const code of backup_codes) expect(code).toMatch(/^[2-9a-z]{5}-[2-9a-z]{5}$/)

    const again = await stranger(service).post("/v1/session", {
      email: me.user.email,
      password: PASSWORD,
    })
    expect(again.body.data.access_token).toBeString() // nothing is asked for yet
    expect(refusal(await me.post(`${MFA}/verify`, { code: "abcdef" }))).toEqual([
      400,
      "invalid_code",
    ])
    const on = await me.post(`${MFA}/verify`, { code: await codeOf(secret) })
    expect([on.status, on.body.data]).toEqual([200, { enabled: true }])
    expect((await me.get("/v1/users/me")).body.data.mfa_enabled).toBe(true)
    expect(refusal(await me.post(`${MFA}/enroll`))).toEqual([409, "mfa_already_enabled"])
    expect(refusal(await me.post(`${MFA}/verify`, { code: await codeOf(secret) }))).toEqual([
      400,
      "no_pending_enrollment",
    ])
  })

  test("needs an enrolment of the last 15 minutes", async () => {
    clock.freeze()
    const me = await visitor(service)
    expect(refusal(await me.post(`${MFA}/verify`, { code: "123456" }))).toEqual([
      400,
      "no_pending_enrollment",
    ])
    const { body } = await me.post(`${MFA}/enroll`)
    clock.advance({ seconds: 899 })
    const second = await me.post(`${MFA}/enroll`) // takes the place of the first
    const stale = await me.post(`${MFA}/verify`, { code: await codeOf(body.data.secret) })
    expect(refusal(stale)).toEqual([400, "invalid_code"])
    clock.advance({ seconds: 901 })
    const renewed = await stranger(service).post("/v1/session/refresh", {
      refresh_token: me.session.refresh_token,
    })
    const { signedIn } = await import("../harness/people")
    const late = signedIn(service.app, renewed.body.data.access_token)
    const code = await codeOf(second.body.data.secret)
    expect(refusal(await late.post(`${MFA}/verify`, { code }))).toEqual([
      400,
      "no_pending_enrollment",
    ])
  })

  test("leaves neither secret nor code readable in the database", async () => {
    const { secret, backup_codes, user } = await guarded()
    const rows = JSON.stringify([
      await store.read.select().from(consoleUsers),
      await store.read.select().from(backupCodes),
    ])
    for (const hidden of [secret, ...backup_codes, ...backup_codes.map((one) => one.slice(0, 5))]) {
      expect(rows).not.toContain(hidden)
    }
    const mine = store.read.select().from(consoleUsers).where(eq(consoleUsers.id, user.id))
    expect((await mine)[0]?.mfa_pending).toBeNull()
  })
})

describe("signing in", () => {
  test("asks for a code, which works once", async () => {
    const { user, secret } = await guarded()
    clock.advance({ seconds: 60 })
    const code = await codeOf(secret)
    const first = await challenged(user.email)
    const second = await challenged(user.email)
    const entered = await first(code)
    expect([entered.status, entered.body.data.user.mfa_enabled]).toEqual([200, true])
    expect(refusal(await second(code))).toEqual([401, "invalid_totp"]) // replayed
    expect(refusal(await first(code))).toEqual([401, "invalid_mfa"]) // the challenge is spent
    expect((await second(await codeOf(secret, 1))).status).toBe(200)
  })

  test("takes one of two who come with the same code at once", async () => {
    const { user, secret } = await guarded()
    clock.advance({ seconds: 60 })
    const code = await codeOf(secret)
    const [first, second] = [await challenged(user.email), await challenged(user.email)]
    const statuses = (await Promise.all([first(code), second(code)])).map(({ status }) => status)
    expect(statuses.sort()).toEqual([200, 401])
  })

  test("takes the code of one step before and after, and no older", async () => {
    const { user, secret } = await guarded()
    clock.advance({ seconds: 300 })
    for (const steps of [-3, -2, 2, 3]) {
      const answer = await challenged(user.email)
      expect([steps, refusal(await answer(await codeOf(secret, steps)))[1]]).toEqual([
        steps,
        "invalid_totp",
      ])
    }
    for (const steps of [-1, 0, 1]) {
      const answer = await challenged(user.email)
      expect([steps, (await answer(await codeOf(secret, steps))).status]).toEqual([steps, 200])
    }
    const answer = await challenged(user.email)
    expect((await answer(await codeOf(secret, 0))).status).toBe(401) // older than the last one
  })

  test("takes each recovery code once, however it is typed", async () => {
    const { user, backup_codes } = await guarded()
    const [code = "", other = ""] = backup_codes
    expect((await (await challenged(user.email))(code)).status).toBe(200)
    const again = await challenged(user.email)
    expect(refusal(await again(code))).toEqual([401, "invalid_backup_code"])
    expect((await again(` ${other.toUpperCase().replace("-", " ")}`)).status).toBe(200)
  })

  test("does not take the recovery code of somebody else", async () => {
    const [one, other] = [await guarded(), await guarded()]
    const answer = await challenged(one.user.email)
    expect(refusal(await answer(other.backup_codes[0] ?? ""))).toEqual([401, "invalid_backup_code"])
  })

  test("gives a challenge five tries and five minutes", async () => {
    const { user, secret } = await guarded()
    clock.advance({ seconds: 60 })
    const answer = await challenged(user.email)
    for (let tries = 0; tries < 5; tries++) {
      expect(refusal(await answer("12345x"))).toEqual([401, "invalid_backup_code"])
    }
    expect(refusal(await answer(await codeOf(secret)))).toEqual([401, "invalid_mfa"])
    const late = await challenged(user.email)
    clock.advance({ seconds: 301 })
    expect(refusal(await late(await codeOf(secret)))).toEqual([401, "invalid_mfa"])
    const unknown = await stranger(service).post("/v1/session/mfa", { token: "x", code: "123456" })
    expect(refusal(unknown)).toEqual([401, "invalid_mfa"])
  })

  test("does not let codes be guessed through many challenges", async () => {
    const { user, secret } = await guarded()
    const refusals = new Set<unknown>()
    for (let round = 0; round < 3; round++) {
      const answer = await challenged(user.email)
      for (let tries = 0; tries < 5; tries++) refusals.add(refusal(await answer("000000"))[1])
    }
    expect([...refusals].sort()).toEqual(["invalid_totp", "login_rate_limit_exceeded"])
    const answer = await challenged(user.email)
    expect((await answer(await codeOf(secret, 1))).status).toBe(429)
  })

  test("keeps challenges as hashes", async () => {
    const { user } = await guarded()
    const door = stranger(service)
    const { body } = await door.post("/v1/session", { email: user.email, password: PASSWORD })
    const rows = JSON.stringify(await store.read.select().from(mfaChallenges))
    expect(rows).not.toContain(body.data.mfa_challenge.token)
  })
})

describe("turning it off", () => {
  test("needs a code that was not used before, and then asks for none", async () => {
    const me = await guarded()
    clock.advance({ seconds: 60 })
    expect(refusal(await me.post(`${MFA}/disable`, { code: "000000" }))).toEqual([
      401,
      "invalid_verification",
    ])
    const code = await codeOf(me.secret)
    const answer = await challenged(me.user.email)
    await answer(code)
    expect(refusal(await me.post(`${MFA}/disable`, { code }))).toEqual([
      401,
      "invalid_verification",
    ])
    const off = await me.post(`${MFA}/disable`, { code: await codeOf(me.secret, 1) })
    expect([off.status, off.body.data]).toEqual([200, { enabled: false }])
    const own = eq(backupCodes.user_id, me.user.id)
    expect(await store.read.select().from(backupCodes).where(own)).toEqual([])
    const door = stranger(service)
    const entered = await door.post("/v1/session", { email: me.user.email, password: PASSWORD })
    expect(entered.body.data.access_token).toBeString()
  })

  test("works with a recovery code too, and not where nothing is on", async () => {
    const me = await guarded()
    const off = await me.post(`${MFA}/disable`, { code: me.backup_codes[3] })
    expect(off.status).toBe(200)
    expect(refusal(await me.post(`${MFA}/disable`, { code: me.backup_codes[4] }))).toEqual([
      400,
      "mfa_not_enabled",
    ])
  })
})
