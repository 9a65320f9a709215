import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { linksAmong, prepareLink } from "../../src/auth/mailed-links"
import { users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { events } from "../../src/events/tables"
import * as passwords from "../../src/sign-in/passwords"
import { newApplication, signedUp } from "../harness/application"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { signedIn } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { elsewhere, letters, PASSWORD } from "./letters"

const clock = movableClock()
const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })
const mail = letters(service)
const { store } = service

type Options = Parameters<typeof newApplication>[2]

const someone = () => `${newId()}@people.test`
const shop = async (settings: NonNullable<Options>["settings"] = {}) =>
  newApplication(service, await service.project(), { settings })

type Shop = Awaited<ReturnType<typeof shop>>

const register = (own: Shop, fields: object = {}, headers: object = elsewhere()) =>
  own
    .app()
    .post("/v1/auth/users/register", { email: someone(), password: PASSWORD, ...fields }, headers)

const login = (own: Shop, email: string, password = PASSWORD, headers: object = elsewhere()) =>
  own.app().post("/v1/auth/users/login", { email, password }, headers)

const eventsOf = async (user_id: string) =>
  (
    await store.read.select().from(events).where(eq(events.subject_id, user_id)).orderBy(events.id)
  ).map(({ type, data }) => [type, (data as { metadata: object }).metadata])

describe("register", () => {
  test("makes a user with a session, in the environment of the key", async () => {
    const own = await shop()
    const email = someone()
    const fields = { email, name: "Ann", locale: "de", metadata: { plan: "gold" } }
    const { status, body } = await register(own, fields)
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      user: { ...fields, environment: "live", email_verified: false, status: "active" },
      tokens: { token_type: "Bearer", expires_in: 3600 },
      organization: { name: "Default", role: "member" },
      is_new: true,
    })
    const me = await signedIn(service.app, body.data.tokens.access_token).get("/v1/auth/users/me")
    expect(me.body.data.id).toBe(body.data.user.id)
    const { id: session_id } = body.data.session
    expect(await eventsOf(body.data.user.id)).toEqual([
      ["user.created", expect.objectContaining({ provider: "password", session_id })],
    ])
    const other = await own.app("test").post("/v1/auth/users/login", { email, password: PASSWORD })
    expect(refusal(other)).toEqual([401, "unauthorized"])
  })

  test("is refused for an address that has a user, in any spelling", async () => {
    const own = await shop()
    const name = newId()
    await register(own, { email: `${name}@BÜCHER.example` })
    const again = await register(own, { email: `${name.toUpperCase()}@xn--bcher-kva.example` })
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toEqual({ field: "email", reason: "email_taken" })
  })

  test("makes one user of fifty requests for one new address", async () => {
    const own = await shop()
    const email = someone()
    const answers = await Promise.all(Array.from({ length: 50 }, () => register(own, { email })))
    const counts = Map.groupBy(answers, ({ status }) => status)
    expect([201, 409, 429].map((status) => counts.get(status)?.length)).toEqual([1, 9, 40])
    const rows = await store.read.select().from(users).where(eq(users.email, email))
    expect(rows.length).toBe(1)
  })

  test("says what a password lacks, and counts no try for it", async () => {
    const own = await shop({ password_policy: { min_length: 12 } as never })
    const email = someone()
    for (let at = 0; at < 12; at++)
      expect(refusal(await register(own, { email, password: "aB1" }))).toEqual([
        422,
        "weak_password",
      ])
    const weak = await register(own, { email, password: "aB1" })
    expect(weak.body.error.details.missing).toEqual(["length", "symbol"])
    const common = await register(await shop(), { email, password: "P@ssw0rd" })
    expect(common.body.error.details.missing).toEqual(["common"])
    expect((await register(own, { email, password: "Quiet-River-4242" })).status).toBe(201)
  })

  test("reads its fields: an address, a language, and metadata within limits", async () => {
    const own = await shop()
    const bad = await register(own, { email: "a@b@c" })
    expect(refusal(bad)).toEqual([422, "invalid_email"])
    const more = await register(own, { locale: "no language", metadata: { ["k".repeat(65)]: 1 } })
    expect(refusal(more)).toEqual([422, "validation_error"])
    expect(complaints(more)).toContain("locale")
  })

  test("is refused where passwords are off, and for a domain that is blocked", async () => {
    const off = await shop({ methods: { password: false } as never })
    expect(refusal(await register(off))).toEqual([403, "forbidden"])
    expect(refusal(await login(off, someone()))).toEqual([403, "forbidden"])
    const blocked = await register(await shop({ blocked_email_domains: ["people.test"] }))
    expect(refusal(blocked)).toEqual([403, "forbidden"])
    expect(blocked.body.error.details.reason).toBe("email_domain_not_allowed")
  })

  test("answers a repeated Idempotency-Key with what it answered, sealed in between", async () => {
    const own = await shop()
    const email = someone()
    const headers = { ...elsewhere(), "idempotency-key": newId() }
    const first = await register(own, { email }, headers)
    const second = await register(own, { email }, headers)
    expect(second.status).toBe(201)
    expect(second.body.data).toEqual(first.body.data)
    expect(second.headers.get("idempotent-replayed")).toBe("true")
  })

  test("of an invited person makes the same user active, with the address verified", async () => {
    const own = await shop()
    const environment = await own.environment()
    const email = someone()
    const { id } = await signedUp(service, own, { email })
    await store.tx((tx) => tx.update(users).set({ status: "invited" }).where(eq(users.id, id)))
    const wish = { kind: "invitation", to: { email } } as const
    const letter = await prepareLink(service.parts.auth, environment, wish)
    await store.tx((tx) => letter.accept(tx, id))
    const invitation_token = (await mail.last(email))?.token
    expect(linksAmong(environment, "invitation")).toBeDefined()
    expect(refusal(await register(own, { email }))).toEqual([409, "conflict"])
    expect(refusal(await register(own, { invitation_token }))).toEqual([422, "otp_expired"])
    const { status, body } = await register(own, { email, name: "Ann", invitation_token })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      user: { id, name: "Ann", status: "active", email_verified: true },
      is_new: true,
    })
    expect(refusal(await register(own, { email, invitation_token }))).toEqual([422, "otp_expired"])
    expect((await login(own, email)).status).toBe(200)
  })
})

describe("where addresses must be verified", () => {
  test("a new user gets a mail and no session, and comes in when the link was used", async () => {
    const own = await shop({ require_verified_email: true })
    const email = someone()
    const { status, body } = await register(own, { email })
    expect([status, body.data.tokens, body.data.session]).toEqual([201, null, null])
    expect(refusal(await login(own, email, "Wrong-Horse-7"))).toEqual([401, "unauthorized"])
    for (let at = 0; at < 11; at++) {
      const early = await login(own, email)
      expect(refusal(early)).toEqual([403, "forbidden"])
      expect(early.body.error.details.reason).toBe("email_not_verified")
    }
    const token = (await mail.last(email))?.token
    const verified = await own.app().post("/v1/auth/verify-email/confirm", { token })
    expect(verified.body.data).toEqual({ email, email_verified: true, user_id: body.data.user.id })
    expect((await login(own, email)).status).toBe(200)
  })

  test("and accounts are hidden, nothing tells a known address from a new one", async () => {
    const own = await shop({ require_verified_email: true, hide_account_existence: true })
    const email = someone()
    const headers = { ...elsewhere(), "idempotency-key": newId() }
    const fields = { email, name: "Ann", metadata: { a: 1 } }
    const [first, known] = [await register(own, fields), await register(own, fields, headers)]
    const shape = ({ status, body: { data } }: typeof first) => ({
      ...{ status, ...data },
      user: { ...data.user, id: "", created_at: "", updated_at: "", first_activity_at: "" },
    })
    expect(shape(known)).toEqual(shape(first))
    expect(known.body.data.user.id).not.toBe(first.body.data.user.id)
    const repeated = await register(own, fields, headers)
    expect(repeated.body.data).toEqual(known.body.data)
    expect((await mail.all(email)).length).toBe(1)
    const rows = await store.read
      .select()
      .from(users)
      .where(eq(users.environment_id, own.environment_ids.live))
    expect(rows.map(({ id }) => id)).toEqual([first.body.data.user.id])
  })
})

describe("login", () => {
  test("starts a session, with an event", async () => {
    const own = await shop()
    const { body } = await register(own)
    const { email, id } = body.data.user
    const { status, body: again } = await login(own, email.toUpperCase())
    expect([status, again.data.is_new, again.data.user.id]).toEqual([200, false, id])
    expect((await eventsOf(id)).at(-1)).toEqual([
      "user.login",
      expect.objectContaining({ provider: "password", session_id: again.data.session.id }),
    ])
    const server = await own.server().post("/v1/auth/users/login", { email, password: PASSWORD })
    expect(server.status).toBe(200)
  })

  test("tells nothing of an unknown address, a wrong password, one without a password, or a suspended user", async () => {
    const own = await shop()
    const { body } = await register(own)
    const suspended = (await register(own)).body.data.user
    const { email } = await signedUp(service, own)
    const gone = { status: "suspended" } as const
    await store.tx((tx) => tx.update(users).set(gone).where(eq(users.id, suspended.id)))
    const answers = [
      await login(own, body.data.user.email, "Wrong-Horse-7"),
      await login(own, someone()),
      await login(own, "no address at all"),
      await login(own, email ?? ""),
      await login(own, suspended.email, "Wrong-Horse-7"),
    ]
    const texts = new Set(answers.map((one) => `${one.status} ${JSON.stringify(one.body.error)}`))
    expect([...texts]).toEqual([expect.stringMatching(/^401 .*"unauthorized"/)])
    expect(refusal(await login(own, suspended.email))).toEqual([400, "user_inactive"])
  })

  test("renews a hash of another making", async () => {
    const own = await shop()
    const foreign = await Bun.password.hash(PASSWORD, { algorithm: "bcrypt", cost: 4 })
    const { id, email } = await signedUp(service, own, { password_hash: foreign })
    const hash = async () =>
      (await store.read.select().from(users).where(eq(users.id, id)))[0]?.password_hash
    expect(refusal(await login(own, email ?? "", "Wrong-Horse-7"))).toEqual([401, "unauthorized"])
    expect(await hash()).toBe(foreign)
    expect((await login(own, email ?? "")).status).toBe(200)
    expect(await hash()).toStartWith("$argon2id$")
    expect(await passwords.verify(PASSWORD, await hash())).toBe(true)
  })
})

describe("a lockout", () => {
  test("begins with the first try, counts all addresses, and is alike for known and unknown", async () => {
    clock.freeze()
    const own = await shop()
    const known = (await register(own)).body.data.user.email
    for (const email of [known, someone()]) {
      for (let at = 0; at < 10; at++)
        expect((await login(own, email, `Wrong-Horse-${at}`)).status).toBe(401)
      const refused = await login(own, email)
      expect(refusal(refused)).toEqual([429, "login_rate_limit_exceeded"])
      const details = { limit: 10, window_seconds: 900, retry_after: 900, scope: "user_login" }
      expect(refused.body.error.details).toEqual(details)
    }
    clock.advance({ seconds: 901 })
    expect((await login(own, known)).status).toBe(200)
  })

  test("counts tries side by side, and a right password begins anew", async () => {
    const own = await shop()
    const { email } = (await register(own)).body.data.user
    for (let round = 0; round < 2; round++) {
      for (let at = 0; at < 9; at++) await login(own, email, "Wrong-Horse-7")
      expect((await login(own, email)).status).toBe(200)
    }
    const wave = Array.from({ length: 30 }, (_, at) => login(own, email, `Wrong-Horse-${at}`))
    const counts = Map.groupBy(await Promise.all(wave), ({ status }) => status)
    expect([401, 429].map((status) => counts.get(status)?.length)).toEqual([10, 20])
  })

  test("of a network comes after thirty failures, whoever they name, and right ones do not count", async () => {
    const own = await shop()
    const headers = elsewhere()
    const { email } = (await register(own, {}, headers)).body.data.user
    for (let at = 0; at < 30; at++) {
      expect((await login(own, email, PASSWORD, headers)).status).toBe(200)
      expect((await login(own, someone(), PASSWORD, headers)).status).toBe(401)
    }
    expect(refusal(await login(own, email, PASSWORD, headers))).toEqual([
      429,
      "login_rate_limit_exceeded",
    ])
    expect((await login(own, email)).status).toBe(200)
  })
})
