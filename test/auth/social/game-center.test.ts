import { afterAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { usedAssertions } from "../../../src/auth/social/tables"
import { environments, users } from "../../../src/auth/tables"
import { newId } from "../../../src/core/ids"
import { millis } from "../../../src/core/time"
import { events } from "../../../src/events/tables"
import { BUNDLE, gameCenter, type Vector } from "../../fakes/game-center"
import { newApplication, signedUp } from "../../harness/application"
import { callingWith, type Reply, refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import { signedIn } from "../../harness/people"
import { sharedService } from "../../harness/shared-service"
import { elsewhere } from "../letters"

const PATH = "/v1/auth/game-center"

const clock = movableClock()
const platform = gameCenter()
const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })
Object.assign(service.settings, platform.settings)
afterAll(() => platform.stop())
const { store } = service

const somebody = () => `T:_${newId().replaceAll("-", "")}`

async function game(settings: object = {}) {
  const shop = await newApplication(service, await service.project())
  const body = { enabled: true, bundle_ids: [BUNDLE], team_id: "DEF123GHIJ", ...settings }
  const path = `/v1/auth/applications/${shop.id}/gaming-providers/game-center`
  for (const environment of ["live", "test"])
    await shop.server().call("PUT", path, { body: { ...body, environment } })
  const signIn = (assertion: object, headers: object = elsewhere()) =>
    shop.app().post(PATH, assertion, headers)
  const usersThere = () =>
    store.read.select().from(users).where(eq(users.application_id, shop.id)).orderBy(users.id)
  return { shop, signIn, usersThere }
}

/** All of an answer but the name of the request. */
const opaque = ({ status, body }: Reply) => {
  const { request_id: _, ...meta } = body.meta
  return JSON.stringify({ status, ...body, meta })
}

describe("a player of Game Center", () => {
  test("is a new user once, and the same user from then on", async () => {
    const { shop, signIn } = await game()
    const player_id = somebody()
    const first = await signIn({ ...platform.assertion(player_id), display_name: "Ann" })
    expect(first.status).toBe(201)
    const { user, tokens, is_new } = first.body.data
    const identity = { provider: "game-center", provider_user_id: player_id, email: null }
    expect(user).toMatchObject({ email: null, name: "Ann", identities: [identity] })
    expect(is_new).toBe(true)
    const me = await signedIn(service.app, tokens.access_token).get("/v1/auth/users/me")
    expect(me.body.data.id).toBe(user.id)
    clock.advance({ seconds: 1 })
    const again = await signIn({ ...platform.assertion(player_id), display_name: "Other" })
    expect([again.status, again.body.data.user.id]).toEqual([200, user.id])
    expect(again.body.data).toMatchObject({ is_new: false, user: { name: "Ann" } })
    const rows = await store.read.select().from(events).where(eq(events.subject_id, user.id))
    expect(rows.map(({ type }) => type).sort()).toEqual(["user.created", "user.login"])
    const provider = "game-center"
    for (const { data } of rows) expect(data).toMatchObject({ metadata: { provider } })
    expect((await shop.app("test").post(PATH, platform.assertion(player_id))).status).toBe(201)
  })

  test("is one user of two requests at once with two signatures", async () => {
    const { signIn, usersThere } = await game()
    const player_id = somebody()
    const both = [0, 1].map((at) =>
      signIn(platform.assertion(player_id, { signed: { timestamp: millis() + at } })),
    )
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 201])
    expect((await usersThere()).length).toBe(1)
  })

  test("gets in by a certificate that brings its issuer along, which is then kept", async () => {
    const { signIn } = await game()
    const signed = { public_key_url: platform.url("bundled.pem") }
    for (let at = 0; at < 3; at++) {
      const answer = await signIn(platform.assertion(somebody(), { signed }))
      expect(answer.status).toBe(201)
    }
    expect(platform.asked.filter((path) => path === "/bundled.pem").length).toBe(1)
  })

  test("does not get in when the kept certificate has ended", async () => {
    const { signIn } = await game()
    expect((await signIn(platform.assertion(somebody()))).status).toBe(201)
    clock.advance({ seconds: 25 * 3600 })
    const refused = await signIn(platform.assertion(somebody()))
    expect(refusal(refused)).toEqual([401, "invalid_assertion"])
  })
})

const other = (text: string) => text.replace(/^./, (first) => (first === "A" ? "B" : "A"))
const at = (name: string): Vector => ({ signed: { public_key_url: platform.url(name) } })
const sent = (public_key_url: string): Vector => ({ sent: { public_key_url } })

/** What is wrong, and how. */
const VECTORS: [string, () => Vector][] = [
  ["another player", () => ({ sent: { player_id: somebody() } })],
  ...["G:1965586982", "A:_0f2c", "U:_0f2c", "T:0f2c", "t:_0f2c", "T:_", "T:_a.b", "0f2c"].map(
    (player_id): [string, () => Vector] => [player_id, () => ({ signed: { player_id } })],
  ),
  ["foreign bundle", () => ({ signed: { bundle_id: "com.example.other" } })],
  ["bundle that was not signed", () => ({ sent: { bundle_id: "com.example.second" } })],
  ["another time", () => ({ sent: { timestamp: millis() + 1000 } })],
  ["too old", () => ({ signed: { timestamp: millis() - 301_000 } })],
  ["too early", () => ({ signed: { timestamp: millis() + 310_000 } })],
  ["time before all times", () => ({ sent: { timestamp: -1 } })],
  ["time in seconds", () => ({ signed: { timestamp: Math.floor(millis() / 1000) } })],
  ["another salt", () => ({ sent: { salt: "AAAA" } })],
  ["no salt", () => ({ sent: { salt: "" } })],
  ["no signature", () => ({ sent: { signature: "" } })],
  ["no base64", () => ({ sent: { signature: "♥♥♥" } })],
  ["another key", () => ({ key: "other" })],
  ["SHA-1", () => ({ algorithm: "sha1" })],
  ["http", () => sent(platform.url().replace("https", "http"))],
  ["no URL", () => sent("gc-prod-1.cer")],
  ["lying host", () => sent(platform.url().replace("localhost", "localhost.evil.test"))],
  ["host as user", () => sent(platform.url().replace("//", "//localhost@"))],
  ["another port", () => sent(platform.url().replace(/:\d+\//, ":444/"))],
  ["no port", () => sent(platform.url().replace(/:\d+\//, "/"))],
  ["dot behind the host", () => sent(platform.url().replace("localhost", "localhost."))],
  ["address of the host", () => sent(platform.url().replace("localhost", "127.0.0.1"))],
  ["backslashes", () => sent(platform.url().replace("https://", "https:\\\\"))],
  ["capitals", () => sent(platform.url().replace("localhost", "LOCALHOST"))],
  ["query", () => sent(`${platform.url()}?x`)],
  ["forged root", () => at("forged.cer")],
  ["expired certificate", () => at("expired.cer")],
  ["certificate of a web page", () => at("page.cer")],
  ["certificate for other uses", () => at("reader.cer")],
  ["certificate of an authority", () => at("authority.cer")],
  ["certificate without its issuer", () => at("lonely.cer")],
  ["certificate of another kind of key", () => at("curve.cer")],
  [
    "certificate by one that may not issue",
    () => ({ key: "other", signed: { public_key_url: platform.url("below.pem") } }),
  ],
  ["no certificate", () => at("garbage.cer")],
  ["large file", () => at("large.cer")],
  ["missing file", () => at("missing.cer")],
]

describe("a wrong assertion", () => {
  test("gets one answer, whatever is wrong with it, and makes nobody", async () => {
    const { signIn, usersThere } = await game({ bundle_ids: [BUNDLE, "com.example.second"] })
    const answers: string[] = []
    const bodies = new Set<string>()
    for (const [name, vector] of VECTORS) {
      const answer = await signIn(platform.assertion(somebody(), vector()))
      answers.push(`${name}: ${refusal(answer).join(" ")}`)
      bodies.add(opaque(answer))
    }
    expect(answers).toEqual(VECTORS.map(([name]) => `${name}: 401 invalid_assertion`))
    expect(bodies.size).toBe(1)
    expect(await usersThere()).toEqual([])
  })

  test("is refused by the form of its body alone where a field is missing", async () => {
    const { signIn } = await game()
    const whole = platform.assertion(somebody())
    for (const field of Object.keys(whole))
      expect((await signIn({ ...whole, [field]: undefined })).status).toBe(422)
    expect((await signIn({ ...whole, timestamp: `${whole.timestamp}` })).status).toBe(422)
    expect((await signIn({ ...whole, display_name: "a\nb" })).status).toBe(422)
    expect((await signIn(whole)).status).toBe(201)
  })

  test("counts for its network, and a right one does not", async () => {
    const { signIn } = await game()
    const here = elsewhere()
    const wrong = (from: object) => signIn(platform.assertion(somebody(), { key: "other" }), from)
    for (let tries = 0; tries < 29; tries++) await wrong(here)
    for (let tries = 0; tries < 3; tries++)
      expect((await signIn(platform.assertion(somebody()), here)).status).toBe(201)
    expect(refusal(await wrong(here))).toEqual([401, "invalid_assertion"])
    const full = await signIn(platform.assertion(somebody()), here)
    expect(refusal(full)).toEqual([429, "login_rate_limit_exceeded"])
    expect((await signIn(platform.assertion(somebody()))).status).toBe(201)
  })
})

describe("an assertion", () => {
  test("lets in one of 50 at once, in whatever spelling, and nobody later", async () => {
    const { shop, signIn, usersThere } = await game()
    const right = platform.assertion(somebody())
    const spellings = [right.signature, right.signature.replaceAll("=", ""), ` ${right.signature}`]
    const tries = Array.from({ length: 50 }, (_, at) =>
      signIn({ ...right, signature: spellings[at % 3] }),
    )
    const answers = await Promise.all(tries)
    const refused = answers.filter(({ status }) => status !== 201)
    expect(refused.length).toBe(49)
    const wrong = await signIn({ ...right, signature: other(right.signature) })
    expect(new Set(refused.map(opaque))).toEqual(new Set([opaque(wrong)]))
    expect((await usersThere()).length).toBe(1)
    const used = eq(usedAssertions.project_id, shop.project_id)
    const [row, ...others] = await store.read.select().from(usedAssertions).where(used)
    expect(others).toEqual([])
    // It is kept until nobody would take it for fresh.
    expect(Date.parse(row?.expires_at ?? "")).toBeGreaterThan(right.timestamp + 300_000)
  })

  test("is not looked at where the platform is not set up, or is off", async () => {
    const off = await game({ enabled: false })
    const assertion = platform.assertion(somebody())
    expect(refusal(await off.signIn(assertion))).toEqual([401, "provider_not_configured"])
    const bare = await newApplication(service, await service.project())
    const answer = await bare.app().post(PATH, assertion)
    expect(refusal(answer)).toEqual([401, "provider_not_configured"])
  })

  test("needs a public key with an environment: no other credential counts", async () => {
    const { shop } = await game()
    const project = await service.project()
    const { access_token } = await signedUp(service, shop)
    const assertion = platform.assertion(somebody())
    const key = { "x-application-key": shop.keys.live }
    const all = [
      project,
      shop.server(),
      callingWith(service.app, { ...key, "x-application-secret": shop.secret }),
      service.anybody,
    ]
    for (const who of all)
      expect(refusal(await who.post(PATH, assertion))).toEqual([401, "unauthorized"])
    const user = callingWith(service.app, { ...key, authorization: `Bearer ${access_token}` })
    expect(refusal(await user.post(PATH, assertion))).toEqual([403, "forbidden"])
    const legacy = await shop.app("legacy").post(PATH, assertion)
    expect(refusal(legacy)).toEqual([400, "environment_required"])
  })
})

describe("the user of a player", () => {
  test("is refused while inactive, and a removed one is made anew", async () => {
    const { shop, signIn } = await game()
    const player_id = somebody()
    const { user } = (await signIn(platform.assertion(player_id))).body.data
    await shop.server().post(`/v1/auth/users/${user.id}/suspend`, {})
    clock.advance({ seconds: 1 })
    const suspended = await signIn(platform.assertion(player_id))
    expect(refusal(suspended)).toEqual([400, "user_inactive"])
    await shop.server().remove(`/v1/auth/users/${user.id}`)
    clock.advance({ seconds: 1 })
    const anew = await signIn(platform.assertion(player_id))
    expect(anew.status).toBe(201)
    expect(anew.body.data.user.id).not.toBe(user.id)
  })

  test("is asked for a second factor, and needs an address where domains are listed", async () => {
    const { shop, signIn } = await game()
    const player_id = somebody()
    const { user } = (await signIn(platform.assertion(player_id))).body.data
    const own = eq(users.id, user.id)
    await store.tx((tx) =>
      tx
        .update(users)
        .set({ mfa_methods: ["totp"] })
        .where(own),
    )
    clock.advance({ seconds: 1 })
    const answer = await signIn(platform.assertion(player_id))
    expect([answer.status, answer.body.data.mfa_required]).toEqual([200, true])
    const here = eq(environments.id, shop.environment_ids.live)
    const listed = { allowed_email_domains: ["example.com"] }
    await store.tx((tx) => tx.update(environments).set(listed).where(here))
    const refused = await signIn(platform.assertion(somebody()))
    expect(refusal(refused)).toEqual([403, "forbidden"])
  })
})
