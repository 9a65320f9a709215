import { afterAll, describe, expect, test } from "bun:test"
import { oauthFlows } from "../../../src/auth/social/tables"
import { accountIssuer } from "../../fakes/account-issuer"
import { newApplication } from "../../harness/application"
import { type Reply, refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import { sharedService } from "../../harness/shared-service"
import { eventsOf } from "../told-of"
import { accountShop, BACK, landedAt } from "./account-shop"

const clock = movableClock()
const service = await sharedService()
const one = await accountIssuer()
const two = await accountIssuer()
for (const issuer of [one, two]) afterAll(() => issuer[Symbol.dispose]())

const ANN = { sub: "ann-1", email: "ann@users.test", email_verified: true, name: "Ann" }
const ONE = "oidc-one"
const WRONG = [401, "unauthorized"]

const shop = (settings = {}) => accountShop(service, { [ONE]: one, "oidc-two": two }, settings)

/** The name and value of the cookie that an answer sets. */
const cookieOf = ({ headers }: Reply) => (headers.get("set-cookie") ?? "").split(";", 1)[0] ?? ""

describe("a sign-in at a provider", () => {
  test("makes a user, then signs them in, and shows the provider's tokens without keeping them", async () => {
    const { project, signIn } = await shop()
    const first = await signIn(ANN)
    expect(first.status).toBe(201)
    const { is_new, user, provider_tokens } = first.body.data
    expect([is_new, user.email, user.email_verified, user.name]).toEqual([
      ...[true, ANN.email, true, "Ann"],
    ])
    expect(user.identities).toMatchObject([{ provider: ONE, provider_user_id: "ann-1" }])
    const tokens = { access_token: "provider-token-of-ann-1", expires_in: 3600 }
    expect(provider_tokens).toMatchObject(tokens)
    const second = await signIn({ ...ANN, email: "other@users.test" })
    expect([second.status, second.body.data.user.id]).toEqual([200, user.id])
    const told = await eventsOf(service, project)
    expect(told.map(({ type, metadata }) => [type, metadata.provider])).toEqual([
      ["user.created", ONE],
      ["user.login", ONE],
    ])
    const rows = await service.store.read.select().from(oauthFlows)
    expect(rows.filter(({ secrets }) => secrets !== null)).toEqual([])
  })

  test("gives the application its own state back, or one of ours", async () => {
    const { begin, arrive } = await shop()
    const own = (await begin(ONE, { state: "my state & more" })).body.data
    expect(own.state).toBe("my state & more")
    const there = one.consent(own.authorization_url, ANN)
    expect(there.state).not.toBe(own.state)
    const landed = await arrive(ONE, there)
    expect(landed.status).toBe(302)
    expect(landedAt(landed)).toMatchObject({ shop: "1", state: "my state & more" })
    const { state, authorization_url } = (await begin(ONE)).body.data
    expect(new URL(authorization_url).searchParams.get("state")).toBe(state)
  })

  test("is asked for by a link with the key in it, in whose browser alone it ends", async () => {
    const { application, arrive } = await shop()
    const key = application.keys.live
    const asked = new URLSearchParams({
      redirect_url: BACK,
      mode: "redirect",
      application_key: key,
    })
    const link = (provider: string, headers = {}) =>
      service.anybody.get(`/v1/auth/oauth/${provider}/authorize?${asked}`, headers)
    const sent = await link(ONE)
    expect(sent.status).toBe(302)
    expect(sent.headers.get("set-cookie")).toEndWith("HttpOnly; Secure; SameSite=Lax")
    const there = one.consent(sent.headers.get("location") ?? "", ANN)
    expect(refusal(await arrive(ONE, there))).toEqual(WRONG)
    expect(refusal(await arrive(ONE, there, "__Host-belfry-oauth=another"))).toEqual(WRONG)
    // A second tab has the same cookie.
    expect(cookieOf(await link(ONE, { cookie: cookieOf(sent) }))).toBe(cookieOf(sent))
    expect(landedAt(await arrive(ONE, there, cookieOf(sent)))).toHaveProperty("code")
    const wrong = await link(ONE, { "x-application-key": application.keys.test })
    expect(refusal(wrong)).toEqual(WRONG)
  })

  test("ends by the form of a provider, whose cookie comes along from elsewhere", async () => {
    const { project, application, path } = await shop()
    service.settings["auth.oauth.apple.endpoint"] = two.url
    const body = { environment: "live", client_id: two.client.id, enabled: true }
    await project.call("PUT", `${path}/apple`, { body })
    const asked = new URLSearchParams({
      ...{ redirect_url: BACK, mode: "redirect", application_key: application.keys.live },
    })
    const sent = await service.anybody.get(`/v1/auth/oauth/apple/authorize?${asked}`)
    expect(sent.headers.get("set-cookie")).toEndWith("HttpOnly; Secure; SameSite=None")
    const there = two.consent(sent.headers.get("location") ?? "", ANN)
    const form = await service.anybody.call("POST", "/v1/auth/oauth/apple/callback", {
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        origin: "https://appleid.apple.test",
        cookie: cookieOf(sent),
      },
      body: new URLSearchParams({ ...there, user: '{"name":{}}' }).toString(),
    })
    expect(form.status).toBe(302)
    expect(landedAt(form)).toHaveProperty("code")
  })

  test("tells the application of a refusal, in words that a URL may have", async () => {
    const { begin, arrive } = await shop()
    const { state, authorization_url } = (await begin(ONE)).body.data
    const { searchParams } = new URL(authorization_url)
    const error = { error: "access_denied", error_description: `no\r\n"${"x".repeat(500)}` }
    const refused = await arrive(ONE, { ...error, state: searchParams.get("state") ?? "" })
    const landed = landedAt(refused)
    expect(landed).toMatchObject({ error: "access_denied", state })
    expect(landed.error_description).toMatch(/^no {3}x{195}$/)
    expect(refusal(await arrive(ONE, { code: "late", state }))).toEqual(WRONG)
  })
})

describe("a state", () => {
  test("is refused when it is forged, used, over, or of another provider", async () => {
    const { begin, arrive } = await shop()
    const start = async () => one.consent((await begin(ONE)).body.data.authorization_url, ANN)
    const there = await start()
    const forged = `${there.state.slice(0, -2)}${there.state.endsWith("AA") ? "BB" : "AA"}`
    for (const state of ["", "x", forged, there.state.split(".")[0] ?? ""])
      expect(refusal(await arrive(ONE, { ...there, state }))).toEqual(WRONG)
    expect(refusal(await arrive("oidc-two", there))).toEqual(WRONG)
    expect(refusal(await arrive("nothing", there))).toEqual([404, "not_found"])
    const all = await Promise.all(Array.from({ length: 20 }, () => arrive(ONE, there)))
    expect(all.filter(({ status }) => status === 302)).toHaveLength(1)
    const late = await start()
    clock.advance({ seconds: 601 })
    expect(refusal(await arrive(ONE, late))).toEqual(WRONG)
  })

  test("brings an answer of another issuer to nobody", async () => {
    const { begin, arrive, exchange } = await shop()
    const { state, authorization_url } = (await begin(ONE)).body.data
    const there = { ...one.consent(authorization_url, ANN), iss: two.url }
    const before = one.exchanges()
    const { code } = landedAt(await arrive(ONE, there))
    expect(refusal(await exchange(ONE, { code, state }))).toEqual(WRONG)
    expect(one.exchanges()).toBe(before)
  })
})

describe("the code of the redirect", () => {
  test("works once, also for fifty at once", async () => {
    const { land, exchange } = await shop()
    const shown = await land(ANN)
    const before = one.exchanges()
    const all = await Promise.all(Array.from({ length: 50 }, () => exchange(ONE, shown)))
    expect(
      all
        .map(({ status }) => status)
        .sort()
        .slice(0, 2),
    ).toEqual([201, 401])
    expect(one.exchanges()).toBe(before + 1)
    expect(refusal(await exchange(ONE, shown))).toEqual(WRONG)
  })

  test("is over after a minute", async () => {
    const { land, exchange } = await shop()
    const shown = await land(ANN)
    clock.advance({ seconds: 61 })
    expect(refusal(await exchange(ONE, shown))).toEqual(WRONG)
  })

  test("is of its application, environment and provider, which others do not use up", async () => {
    const { project, application, land, exchange } = await shop()
    const shown = await land(ANN)
    const other = await shop()
    expect(refusal(await other.exchange(ONE, shown))).toEqual(WRONG)
    const sibling = await newApplication(service, project)
    expect(refusal(await exchange(ONE, shown, sibling.app()))).toEqual([404, "not_found"])
    expect(refusal(await exchange(ONE, shown, application.app("test")))).toEqual(WRONG)
    expect(refusal(await exchange("oidc-two", shown))).toEqual(WRONG)
    expect(refusal(await exchange(ONE, shown, service.anybody))).toEqual(WRONG)
    expect((await exchange(ONE, shown, application.server())).status).toBe(201)
  })

  test("needs its state, and its verifier where it began with a challenge", async () => {
    const { land, begin, arrive, exchange } = await shop()
    for (const more of [{ state: "x" }, { code_verifier: "x" }, { code_verifier: undefined }]) {
      const shown = await land(ANN)
      expect(refusal(await exchange(ONE, { ...shown, ...more }))).toEqual(WRONG)
      expect(refusal(await exchange(ONE, shown))).toEqual(WRONG)
    }
    const plain = (await begin(ONE)).body.data
    const { code } = landedAt(await arrive(ONE, one.consent(plain.authorization_url, ANN)))
    const added = { code, state: plain.state, code_verifier: "x".repeat(43) }
    expect(refusal(await exchange(ONE, added))).toEqual(WRONG)
  })
})

test("an environment offers what is enabled, begins nowhere else, and comes back nowhere else", async () => {
  const { project, live, begin, path, land, exchange } = await shop()
  const shown = await land(ANN)
  const off = { environment: "live", client_id: "shop", enabled: false, issuer: two.url }
  await project.call("PUT", `${path}/oidc-two`, { body: { ...off, client_secret: "x" } })
  expect((await live.get("/v1/auth/oauth/providers")).body.data).toEqual([
    { provider: ONE, name: "one" },
  ])
  const { oauth_providers } = (await live.get("/v1/auth/config")).body.data
  expect(oauth_providers).toEqual([ONE])
  for (const provider of ["oidc-two", "google", "nothing"])
    expect(refusal(await begin(provider))).toEqual([404, "not_found"])
  const elsewhere = await begin(ONE, { redirect_url: "https://app.example.test/back" })
  expect(refusal(elsewhere)).toEqual([422, "invalid_url"])
  const closed = await shop({ methods: { oauth: false } as never })
  for (const answer of [await closed.begin(ONE), await closed.exchange(ONE, shown)])
    expect(refusal(answer)).toEqual([403, "forbidden"])
  expect((await closed.live.get("/v1/auth/config")).body.data.oauth_providers).toEqual([])
  expect((await exchange(ONE, shown)).status).toBe(201)
})

test("an issuer on this computer is asked where the setting of its name is", async () => {
  const { signIn } = await shop()
  service.settings["auth.oauth.allow_private"] = []
  service.settings["auth.oauth.oidc-two.endpoint"] = two.url
  expect(refusal(await signIn(ANN, "oidc-two"))).toEqual([201, undefined] as never)
  delete service.settings["auth.oauth.oidc-two.endpoint"]
})
