import { describe, expect, test } from "bun:test"
import { throttles } from "../../src/identity/tables"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"
import { BEHIND_PROXY, PASSWORD, registered, signIn, stranger, visitor } from "./entrance"

const clock = movableClock()
const service = await sharedService(BEHIND_PROXY)

const attempt = (email: string, password: string, door = stranger(service)) =>
  door.post("/v1/session", { email, password })

test("an email and its password bring a session", async () => {
  const user = await registered(service)
  const { status, body } = await attempt(user.email, PASSWORD)
  expect(status).toBe(200)
  expect(body.data).toEqual({
    access_token: expect.stringMatching(/^eyJ/),
    refresh_token: expect.stringMatching(/^belfry_refresh_[\w-]{43}$/),
    token_type: "Bearer",
    expires_in: 900,
    user: {
      id: user.id,
      email: user.email,
      name: "Pat",
      locale: "en",
      timezone: "UTC",
      mfa_enabled: false,
      operator: false,
      created_at: user.created_at,
      last_login_at: expect.any(String),
    },
    accounts: [],
  })
})

test("an email is one in any case and spelling of its domain", async () => {
  const name = crypto.randomUUID()
  await registered(service, { email: `${name}@BÜCHER.example` })
  const again = await attempt(`${name.toUpperCase()}@xn--bcher-kva.EXAMPLE`, PASSWORD)
  expect(again.status).toBe(200)
})

test("one password is one, however its letters are composed", async () => {
  const user = await registered(service)
  const me = await signIn(service, user.email)
  const composed = "Gru\u0308n-Kohl-77"
  await me.post("/v1/users/me/password", { current_password: PASSWORD, new_password: composed })
  expect((await attempt(user.email, composed.normalize("NFC"))).status).toBe(200)
})

test("nothing tells an unknown address from a wrong password or a locked user", async () => {
  const known = await registered(service)
  const locked = await registered(service)
  const { lockUser } = await import("../../src/tenancy/operator")
  await lockUser(service.store, locked.email)
  const answers = [
    await attempt(known.email, "Wrong-Horse-7"),
    await attempt(`${crypto.randomUUID()}@people.test`, PASSWORD),
    await attempt("no address at all", PASSWORD),
    await attempt(locked.email, PASSWORD),
    await attempt(known.email, ""),
  ]
  const texts = new Set(
    answers.map(({ status, body }) => `${status} ${JSON.stringify(body.error)}`),
  )
  expect([...texts]).toEqual([expect.stringMatching(/^401 .*"unauthorized"/)])
})

describe("guessing", () => {
  test("a password ends after ten tries, for known and unknown addresses alike", async () => {
    const { user } = await visitor(service)
    for (const email of [user.email, `${crypto.randomUUID()}@people.test`]) {
      for (let tries = 0; tries < 10; tries++) {
        expect((await attempt(email, `Wrong-Horse-${tries}`)).status).toBe(401)
      }
      const refused = await attempt(email, PASSWORD)
      expect(refusal(refused)).toEqual([429, "login_rate_limit_exceeded"])
      const { retry_after, ...details } = refused.body.error.details
      expect(details).toEqual({ limit: 10, window_seconds: 900, scope: "sign_in" })
      expect(refused.headers.get("retry-after")).toBe(String(retry_after))
    }
  })

  test("many tries side by side count as many", async () => {
    const { email } = await registered(service)
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, at) => attempt(email, `Wrong-Horse-${at}`)),
    )
    const counts = Map.groupBy(answers, ({ status }) => status)
    expect(counts.get(401)?.length).toBe(10)
    expect(counts.get(429)?.length).toBe(30)
  })

  test(`${sizes.guesses} times compares ten, and the owner stays signed in and may sign in`, async () => {
    const me = await visitor(service)
    const { door, session, user } = me
    const statuses = new Map<number, number>()
    for (let tries = 0; tries < sizes.guesses; tries += 100) {
      const wave = Array.from({ length: 100 }, (_, at) =>
        attempt(user.email, `Guess-${tries + at}`),
      )
      for (const { status } of await Promise.all(wave)) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    expect([...statuses.keys()].sort()).toEqual([401, 429])
    expect(statuses.get(401)).toBe(10)
    expect((await me.get("/v1/session")).status).toBe(200)
    const renewed = await door.post("/v1/session/refresh", {
      refresh_token: session.refresh_token,
    })
    expect(renewed.status).toBe(200)
    expect((await attempt(user.email, PASSWORD, door)).status).toBe(200)
    expect((await attempt(user.email, PASSWORD)).status).toBe(429) // from elsewhere not now
    clock.advance({ seconds: 901 })
    expect((await attempt(user.email, PASSWORD)).status).toBe(200)
  })

  test("from one address ends after thirty tries, whomever they are at", async () => {
    const door = stranger(service)
    for (let tries = 0; tries < 30; tries++) {
      const email = `${crypto.randomUUID()}@people.test`
      expect((await attempt(email, PASSWORD, door)).status).toBe(401)
    }
    const refused = await attempt(`${crypto.randomUUID()}@people.test`, PASSWORD, door)
    expect(refusal(refused)).toEqual([429, "login_rate_limit_exceeded"])
    expect(refused.body.error.details.scope).toBe("sign_in_address")
  })

  test("is not what somebody does who knows the password", async () => {
    const user = await registered(service)
    const door = stranger(service)
    for (let tries = 0; tries < 35; tries++) {
      expect((await attempt(user.email, PASSWORD, door)).status).toBe(200)
    }
  })

  test("leaves no address in the database", async () => {
    const email = `${crypto.randomUUID()}@people.test`
    await attempt(email, PASSWORD)
    expect(JSON.stringify(await service.store.read.select().from(throttles))).not.toContain(email)
  })
})

test("GET /v1/session tells who, where and since when", async () => {
  const { user, door, ...me } = await visitor(service)
  const { body } = await me.get("/v1/session")
  expect(body.data.user.id).toBe(user.id)
  expect(body.data.accounts).toEqual([])
  expect(body.data.session).toMatchObject({ current: true, ip: door.ip, client_name: null })
})
