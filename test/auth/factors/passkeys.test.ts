import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { userPasskeys } from "../../../src/auth/factors/tables"
import { userSessions, users } from "../../../src/auth/tables"
import { newId } from "../../../src/core/ids"
import {
  newApplication,
  signedUp,
  type TestApplication,
  type TestUser,
} from "../../harness/application"
import { PAGE, softwareAuthenticator } from "../../harness/authenticator"
import { type Reply, refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import { sharedService } from "../../harness/shared-service"
import { eventsOf } from "../told-of"

const clock = movableClock()
const service = await sharedService()
const { store } = service
const PATH = "/v1/auth/passkeys"

type Options = Parameters<typeof newApplication>[2]
const shop = async (options: Options = {}) =>
  newApplication(service, await service.project(), { allowed_origins: [PAGE], ...options })

type Authenticator = ReturnType<typeof softwareAuthenticator>
type Gesture = Parameters<Authenticator["get"]>[1]

const optionsFor = async (me: TestUser) => (await me.post(`${PATH}/register/options`)).body.data

/** Registers a passkey, and answers what the server says. */
async function registered(me: TestUser, key: Authenticator, gesture: Gesture = {}) {
  const { challenge_id, public_key } = await optionsFor(me)
  const credential = key.create(public_key, gesture)
  return me.post(`${PATH}/register/verify`, { challenge_id, credential })
}

/** Somebody with a passkey. */
async function holder(own: TestApplication, wanted: Parameters<typeof signedUp>[2] = {}) {
  const me = await signedUp(service, own, { email_verified: true, ...wanted })
  const key = softwareAuthenticator()
  const made = await registered(me, key)
  expect(made.status).toBe(201)
  return { ...me, key, passkey: made.body.data }
}

const askedOf = async (own: TestApplication, wish: object = {}, kind: "live" | "test" = "live") =>
  (await own.app(kind).post(`${PATH}/login/options`, wish)).body.data

/** Signs in with a passkey, and answers what the server says. */
async function signedIn(
  own: TestApplication,
  key: Authenticator,
  { wish, ...gesture }: Gesture & { wish?: object } = {},
) {
  const { challenge_id, public_key } = await askedOf(own, wish)
  const credential = key.get(public_key, gesture)
  return own.app().post(`${PATH}/login/verify`, { challenge_id, credential })
}

const WRONG = [401, "unauthorized"]

describe("a new passkey", () => {
  test("is made for the host of the first page, and the first one brings backup codes", async () => {
    const own = await shop()
    const me = await signedUp(service, own)
    const { public_key } = await optionsFor(me)
    expect(public_key).toMatchObject({
      rp: { id: "example.com", name: "Shop" },
      user: { name: me.email },
      excludeCredentials: [],
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
      timeout: 300_000,
    })
    const key = softwareAuthenticator()
    const { status, body } = await registered(me, key)
    expect([status, body.data.backup_codes.length]).toEqual([201, 10])
    const { name, transports, backed_up, last_used_at } = body.data
    expect([name, transports, backed_up, last_used_at]).toEqual([
      "Passkey",
      ["internal"],
      false,
      null,
    ])
    const told = await eventsOf(service, own)
    expect(told.at(-1)).toMatchObject({
      type: "user.mfa_enabled",
      metadata: { mfa_method: "passkey", session_id: me.session_id },
    })
    const { mfa_enabled, mfa_methods } = (await me.get("/v1/auth/users/me")).body.data
    expect([mfa_enabled, mfa_methods]).toEqual([true, ["passkey"]])
    const [session] = await store.read
      .select()
      .from(userSessions)
      .where(eq(userSessions.id, me.session_id))
    expect(session?.amr).toEqual(["pwd", "pop", "mfa"])

    const more = await registered(me, softwareAuthenticator())
    expect([more.status, "backup_codes" in more.body.data]).toEqual([201, false])
    expect((await optionsFor(me)).public_key.excludeCredentials).toHaveLength(2)
    expect((await eventsOf(service, own)).filter(({ type }) => type.includes("mfa"))).toHaveLength(
      1,
    )
  })

  test("is refused twice, for another user, and after twenty", async () => {
    const own = await shop()
    const one = await holder(own)
    const other = await signedUp(service, own)
    expect(refusal(await registered(one, one.key))).toEqual([409, "conflict"])
    expect(refusal(await registered(other, one.key))).toEqual([409, "conflict"])
    for (let at = 1; at < 20; at++)
      expect((await registered(one, softwareAuthenticator())).status).toBe(201)
    const full = await one.post(`${PATH}/register/options`)
    expect([...refusal(full), full.body.error.details.reason]).toEqual([
      409,
      "conflict",
      "too_many",
    ])
  })

  test("is refused without user verification, for a foreign page, from a maker, and again", async () => {
    const own = await shop()
    const me = await signedUp(service, own)
    const INVALID = [401, "invalid_verification"]
    const key = softwareAuthenticator()
    expect(refusal(await registered(me, key, { verified: false }))).toEqual(INVALID)
    expect(refusal(await registered(me, key, { origin: "https://evil.example" }))).toEqual(INVALID)
    const asked = await optionsFor(me)
    const made = key.create(asked.public_key, {}, { alg: -7, sig: Buffer.of(1), x5c: [] })
    const sent = { challenge_id: asked.challenge_id, credential: made }
    expect(refusal(await me.post(`${PATH}/register/verify`, sent))).toEqual(INVALID)
    const again = { ...sent, credential: key.create(asked.public_key) }
    expect(refusal(await me.post(`${PATH}/register/verify`, again))).toEqual(INVALID)

    const mine = await optionsFor(me)
    const other = await signedUp(service, own)
    const theirs = { challenge_id: mine.challenge_id, credential: key.create(mine.public_key) }
    expect(refusal(await other.post(`${PATH}/register/verify`, theirs))).toEqual(INVALID)
    clock.freeze()
    const late = await optionsFor(me)
    clock.advance({ seconds: 301 })
    const stale = { challenge_id: late.challenge_id, credential: key.create(late.public_key) }
    expect(refusal(await me.post(`${PATH}/register/verify`, stale))).toEqual(INVALID)
  })

  test("needs the method, a page, and a session that proved the factor the user has", async () => {
    const off = await shop({ settings: { methods: { passkey: false } as never } })
    const refused = await (await signedUp(service, off)).post(`${PATH}/register/options`)
    expect(refused.body.error.details).toMatchObject({ reason: "method_off", method: "passkey" })
    const nowhere = await signedUp(service, await shop({ allowed_origins: [] }))
    const none = await nowhere.post(`${PATH}/register/options`)
    expect(none.body.error.details.reason).toBe("passkey_origin")

    const own = await shop({ settings: { mfa: { policy: "off" } as never } })
    const me = await signedUp(service, own)
    await store.tx((tx) =>
      tx
        .update(users)
        .set({ mfa_methods: ["totp"] })
        .where(eq(users.id, me.id)),
    )
    expect(refusal(await me.post(`${PATH}/register/options`))).toEqual([403, "mfa_required"])
  })

  test("is open to a session that the policy holds back, which it frees", async () => {
    const own = await shop({ settings: { mfa: { policy: "required" } as never } })
    const me = await signedUp(service, own)
    expect(refusal(await me.get(PATH))).toEqual([403, "mfa_required"])
    expect((await registered(me, softwareAuthenticator())).status).toBe(201)
    expect((await me.get(PATH)).body.data).toHaveLength(1)
  })
})

describe("signing in with a passkey", () => {
  test("names nobody, asks for no second factor, and says how", async () => {
    const own = await shop()
    const me = await holder(own)
    const { public_key } = await askedOf(own)
    expect(public_key).toMatchObject({ rpId: "example.com", userVerification: "required" })
    expect(public_key.allowCredentials).toBeUndefined()
    const { status, body } = await signedIn(own, me.key)
    expect([status, body.data.user?.id, body.data.is_new]).toEqual([200, me.id, false])
    expect((await eventsOf(service, own)).at(-1)).toMatchObject({
      type: "user.login",
      metadata: { provider: "passkey", mfa_method: "passkey" },
    })
    const [listed] = (await me.get(PATH)).body.data
    expect(listed.last_used_at).not.toBeNull()
  })

  test("is refused for each thing that is wrong with it, with one answer", async () => {
    const own = await shop()
    const me = await holder(own)
    const stranger = softwareAuthenticator()
    expect(refusal(await signedIn(own, stranger))).toEqual(WRONG)
    expect(refusal(await signedIn(own, me.key, { verified: false }))).toEqual(WRONG)
    expect(refusal(await signedIn(own, me.key, { origin: "https://evil.example" }))).toEqual(WRONG)
    const asked = await askedOf(own)
    const other = await askedOf(own)
    const sent = (options: typeof asked, id = asked.challenge_id) => ({
      ...{ challenge_id: id, credential: me.key.get(options.public_key) },
    })
    const verify = `${PATH}/login/verify`
    expect(refusal(await own.app().post(verify, sent(other)))).toEqual(WRONG)
    const right = sent(other, other.challenge_id)
    expect(refusal(await own.app("test").post(verify, right))).toEqual(WRONG)
    expect((await own.app().post(verify, right)).status).toBe(200)
    expect(refusal(await own.app().post(verify, right))).toEqual(WRONG)
    const away = await askedOf(own)
    const foreign = me.key.get({ ...away.public_key, rpId: "evil.example" })
    const wrong_host = { challenge_id: away.challenge_id, credential: foreign }
    expect(refusal(await own.app().post(verify, wrong_host))).toEqual(WRONG)
  })

  test("is refused for a counter that falls or stays, of two at once for one of them", async () => {
    const own = await shop()
    const me = await holder(own)
    expect((await signedIn(own, me.key, { counter: 9 })).status).toBe(200)
    expect(refusal(await signedIn(own, me.key, { counter: 9 }))).toEqual(WRONG)
    expect(refusal(await signedIn(own, me.key, { counter: 3 }))).toEqual(WRONG)
    const both = await Promise.all([10, 10].map((counter) => signedIn(own, me.key, { counter })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
    const [row] = await store.read
      .select()
      .from(userPasskeys)
      .where(eq(userPasskeys.id, me.passkey.id))
    expect(row?.counter).toBe(10)
  })

  test("with a counter that stays 0 works again and again", async () => {
    const own = await shop()
    const me = await signedUp(service, own)
    const key = softwareAuthenticator()
    expect((await registered(me, key, { counter: 0 })).status).toBe(201)
    for (let at = 0; at < 2; at++)
      expect((await signedIn(own, key, { counter: 0 })).status).toBe(200)
  })

  test("for an address takes the passkey of its user alone, and tells of no address", async () => {
    const own = await shop()
    const me = await holder(own)
    const other = await holder(own)
    const shape = ({ public_key }: { public_key: object }) => Object.keys(public_key).toSorted()
    const wishes = [{ email: me.email }, { email: "nobody@users.test" }]
    const [known, unknown] = await Promise.all(wishes.map((wish) => askedOf(own, wish)))
    expect(shape(known)).toEqual(shape(unknown))
    for (const wish of wishes) {
      expect(refusal(await signedIn(own, other.key, { wish }))).toEqual(WRONG)
    }
    const [wish] = wishes
    expect((await signedIn(own, me.key, wish && { wish })).status).toBe(200)
  })

  test("is refused where the method is off, and for a user that is suspended", async () => {
    const own = await shop()
    const me = await holder(own)
    const suspended = { status: "suspended" as const }
    await store.tx((tx) => tx.update(users).set(suspended).where(eq(users.id, me.id)))
    expect(refusal(await signedIn(own, me.key))).toEqual([400, "user_inactive"])
    const change = { methods: { passkey: false } }
    const path = `/v1/auth/applications/${own.id}/environments/live`
    expect((await own.server().patch(path, change)).status).toBe(200)
    const off = await signedIn(own, me.key)
    expect(off.body.error.details.reason).toBe("method_off")
  })

  test("in test needs no setting: the page that asks counts", async () => {
    const own = await shop({ allowed_origins: [] })
    const me = await signedUp(service, own, { environment: "test" })
    const origin = "http://localhost:5173"
    expect(refusal(await me.post(`${PATH}/register/options`))).toEqual([403, "forbidden"])
    const { body } = await me.post(`${PATH}/register/options`, {}, { origin })
    expect(body.data.public_key.rp.id).toBe("localhost")
    const key = softwareAuthenticator()
    const { challenge_id, public_key } = body.data
    const sent = { challenge_id, credential: key.create(public_key, { origin }) }
    expect((await me.post(`${PATH}/register/verify`, sent, { origin })).status).toBe(201)
    const app = own.app("test")
    const asked = (await app.post(`${PATH}/login/options`, {}, { origin })).body.data
    const credential = key.get(asked.public_key, { origin })
    const answer = { challenge_id: asked.challenge_id, credential }
    expect(refusal(await app.post(`${PATH}/login/verify`, answer))).toEqual([403, "forbidden"])
    expect((await app.post(`${PATH}/login/verify`, answer, { origin })).status).toBe(200)
  })
})

describe("a passkey as second factor", () => {
  /** The question of a sign-in by a code, which is one factor. */
  async function question(own: TestApplication, email: string): Promise<string> {
    await own.server().patch(`/v1/auth/applications/${own.id}/environments/live`, {
      test_identifiers: [{ email, code: "492039" }],
    })
    const typed = { email, code: "492039" }
    await own.app().post("/v1/auth/email-otp/send", { email })
    const { body } = await own.app().post("/v1/auth/email-otp/verify", typed)
    expect(body.data).toMatchObject({
      mfa_required: true,
      mfa_challenge: { methods: ["passkey", "backup_code"] },
    })
    return body.data.mfa_challenge.token
  }

  test("answers the challenge of its user, once, and in its environment", async () => {
    const own = await shop()
    const me = await holder(own)
    const other = await holder(own)
    const challenge_token = await question(own, me.email ?? "")
    const wish = { challenge_token }
    const { public_key } = await askedOf(own, wish)
    expect(public_key.allowCredentials).toHaveLength(1)
    const elsewhere = await own.app("test").post(`${PATH}/login/options`, wish)
    expect(refusal(elsewhere)).toEqual([401, "invalid_mfa"])
    expect(refusal(await signedIn(own, other.key, { wish }))).toEqual(WRONG)
    const asked = await askedOf(own, wish)
    const { status, body } = await signedIn(own, me.key, { wish })
    expect([status, body.data.user.id]).toEqual([200, me.id])
    expect((await eventsOf(service, own)).at(-1)).toMatchObject({
      type: "user.login",
      metadata: { provider: "email_otp", mfa_method: "passkey" },
    })
    const late = { challenge_id: asked.challenge_id, credential: me.key.get(asked.public_key) }
    expect(refusal(await own.app().post(`${PATH}/login/verify`, late))).toEqual([
      401,
      "invalid_mfa",
    ])
    const over = await own.app().post(`${PATH}/login/options`, wish)
    expect(refusal(over)).toEqual([401, "invalid_mfa"])
  })
})

describe("own passkeys", () => {
  test("are listed and renamed by their user alone", async () => {
    const own = await shop()
    const me = await holder(own)
    const other = await holder(own)
    const path = `${PATH}/${me.passkey.id}`
    const renamed = await me.patch(path, { name: "Phone" })
    expect([renamed.status, renamed.body.data.name]).toEqual([200, "Phone"])
    const listed = (await me.get(PATH)).body.data
    expect(listed).toEqual([renamed.body.data])
    expect(refusal(await other.patch(path, { name: "Mine" }))).toEqual([404, "not_found"])
    expect(refusal(await other.remove(path))).toEqual([404, "not_found"])
    expect(refusal(await me.remove(`${PATH}/${newId()}`))).toEqual([404, "not_found"])
  })

  test("are deleted after a step-up, but not the last way in", async () => {
    const own = await shop()
    const me = await holder(own)
    const path = `${PATH}/${me.passkey.id}`
    expect(refusal(await me.remove(path))).toEqual([403, "mfa_required"])
    const { challenge_id, public_key } = await askedOf(own)
    const proof = { challenge_id, credential: me.key.get(public_key) }
    expect((await me.post("/v1/auth/mfa/step-up", proof)).status).toBe(200)
    expect(refusal(await me.post("/v1/auth/mfa/step-up", proof))).toEqual([
      401,
      "invalid_verification",
    ])
    await store.tx((tx) =>
      tx.update(users).set({ email_verified: false }).where(eq(users.id, me.id)),
    )
    const last = await me.remove(path)
    expect([...refusal(last), last.body.error.details.reason]).toEqual([
      409,
      "conflict",
      "last_way_in",
    ])
    await store.tx((tx) =>
      tx.update(users).set({ email_verified: true }).where(eq(users.id, me.id)),
    )
    expect((await me.remove(path)).body.data).toEqual({ id: me.passkey.id, deleted: true })
    expect(refusal(await signedIn(own, me.key))).toEqual(WRONG)
    const { mfa_enabled } = (await me.get("/v1/auth/users/me")).body.data
    expect(mfa_enabled).toBe(false)
    expect((await eventsOf(service, own)).at(-1)?.type).toBe("user.mfa_disabled")
  })

  test("of another user prove nothing in a step-up", async () => {
    const own = await shop()
    const me = await holder(own)
    const other = await holder(own)
    const { challenge_id, public_key } = await askedOf(own)
    const proof = { challenge_id, credential: other.key.get(public_key) }
    const refused = await me.post("/v1/auth/mfa/step-up", proof)
    expect(refusal(refused)).toEqual([401, "invalid_verification"])
  })
})

describe("/.well-known/webauthn", () => {
  const asked = async (host: string) => {
    const url = `http://${host}/.well-known/webauthn`
    const answer = await service.app.handle(new Request(url))
    return {
      status: answer.status,
      body: (await answer.json()) as Reply["body"],
      kept: answer.headers.get("cache-control"),
    }
  }

  test("names the origins outside of a host that an environment named, without an envelope", async () => {
    const host = `${newId()}.example`
    const origins = [`https://${host}`, `https://app.${host}`, "https://shop.other.example"]
    await shop({ allowed_origins: origins, settings: { passkey_rp_id: host } })
    const { status, body, kept } = await asked(host)
    expect([status, body]).toEqual([200, { origins: ["https://shop.other.example"] }])
    expect(kept).toStartWith("public, max-age=")
    expect((await asked(`app.${host}`)).body.error.code).toBe("not_found")
  })

  test("follows a change of the setting", async () => {
    const own = await shop({ allowed_origins: ["https://a.example"] })
    const host = `${newId()}.example`
    const path = `/v1/auth/applications/${own.id}/environments/live`
    await own.server().patch(path, { passkey_rp_id: host })
    expect((await asked(host)).body).toEqual({ origins: ["https://a.example"] })
    await own.server().patch(path, { passkey_rp_id: null })
    expect((await asked(host)).status).toBe(404)
  })
})
