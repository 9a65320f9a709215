import { afterAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { setUser } from "../../../src/auth/end-users"
import { userIdentities } from "../../../src/auth/social/tables"
import { users } from "../../../src/auth/tables"
import { accountIssuer } from "../../fakes/account-issuer"
import { signedUp } from "../../harness/application"
import { refusal } from "../../harness/client"
import { anEndUser } from "../../harness/mailed-links"
import { signedIn } from "../../harness/people"
import { sharedService } from "../../harness/shared-service"
import { accountShop, BACK, landedAt } from "./account-shop"

const service = await sharedService()
const one = await accountIssuer()
afterAll(() => one[Symbol.dispose]())

const ANN = { sub: "ann-1", email: "Ann@users.test", email_verified: true }
const ONE = "oidc-one"
const shop = (settings = {}) => accountShop(service, { [ONE]: one, "oidc-two": one }, settings)

type Shop = Awaited<ReturnType<typeof shop>>

const identitiesOf = (user_id: string) =>
  service.store.read.select().from(userIdentities).where(eq(userIdentities.user_id, user_id))

describe.each([
  [true, true, 200],
  [true, false, 409],
  [false, true, 409],
  [false, false, 409],
])("where our address is verified: %p, and theirs: %p", (ours, theirs, status) => {
  test(`the answer is ${status}, and the accounts are linked in one case alone`, async () => {
    const { application, signIn } = await shop()
    const user = await anEndUser(service, application, {
      ...{ email: "ann@USERS.test", email_verified: ours },
    })
    const answer = await signIn({ ...ANN, email_verified: theirs })
    expect(answer.status).toBe(status)
    expect(await identitiesOf(user.id)).toHaveLength(status === 200 ? 1 : 0)
    if (status === 200) expect(answer.body.data.user.id).toBe(user.id)
    else expect(answer.body.error.details.reason).toBe("email_in_use")
  })
})

describe("an account that nobody has", () => {
  test("makes one user, however many bring it at once", async () => {
    for (const account of [ANN, { sub: "no-address" }]) {
      const { land, exchange } = await shop()
      const shown = await Promise.all(Array.from({ length: 10 }, () => land(account)))
      const all = await Promise.all(shown.map((code) => exchange(ONE, code)))
      expect(all.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 201])
      expect(new Set(all.map(({ body }) => body.data.user.id)).size).toBe(1)
    }
  })

  test("is not taken for an invited or suspended user, nor from a domain that is blocked", async () => {
    const { application, signIn } = await shop({ blocked_email_domains: ["bad.test"] })
    await anEndUser(service, application, { email: ANN.email, status: "invited" })
    expect(refusal(await signIn(ANN))).toEqual([409, "conflict"])
    const bad = { sub: "bad", email: "x@bad.test", email_verified: true }
    expect(refusal(await signIn(bad))).toEqual([403, "forbidden"])
    const ben = { sub: "ben", email: "ben@users.test", email_verified: true }
    await anEndUser(service, application, { ...ben, status: "suspended" } as never)
    expect(refusal(await signIn(ben))).toEqual([400, "user_inactive"])
  })

  test("brings no address that its provider did not verify, where addresses must be verified", async () => {
    const { signIn } = await shop({ require_verified_email: true })
    const { status, body } = await signIn({ ...ANN, email_verified: false })
    expect([status, body.data.user.email]).toEqual([201, null])
    expect((await signIn({ ...ANN, sub: "ann-2" })).body.data.user.email).toBe(ANN.email)
  })

  test("waits for the second factor that its user has", async () => {
    const { application, signIn } = await shop()
    const user = await anEndUser(service, application, { email: ANN.email, email_verified: true })
    await service.store.tx((tx) => setUser(tx, user, { mfa_methods: ["totp"] }))
    const { status, body } = await signIn(ANN)
    expect([status, body.data.mfa_required, body.data.tokens]).toEqual([200, true, undefined])
    expect(body.data.provider_tokens.access_token).toBe("provider-token-of-ann-1")
  })

  test("signs in by its id token, with the nonce that is asked for", async () => {
    const { live, application } = await shop()
    const show = (body: object) => live.post(`/v1/auth/oauth/${ONE}/id-token`, body)
    const id_token = await one.idToken(ANN, "n-1")
    expect(refusal(await show({ id_token, nonce: "n-2" }))).toEqual([401, "unauthorized"])
    expect((await show({ id_token, nonce: "n-1" })).status).toBe(201)
    const server = application.server()
    const again = await server.post(`/v1/auth/oauth/${ONE}/id-token`, { id_token, nonce: "n-1" })
    expect([again.status, again.body.data.is_new]).toEqual([200, false])
  })
})

test("a stranger's account is gone once the owner of the address proves it", async () => {
  const code = "424242"
  const { live, signIn } = await shop({ test_identifiers: [{ email: ANN.email, code }] } as never)
  const stranger = await signIn({ ...ANN, email_verified: false })
  expect(stranger.status).toBe(201)
  const { id } = stranger.body.data.user
  await live.post("/v1/auth/email-otp/send", { email: ANN.email })
  const owner = await live.post("/v1/auth/email-otp/verify", { email: ANN.email, code })
  expect([owner.body.data.user.id, owner.body.data.user.identities]).toEqual([id, []])
  expect(await identitiesOf(id)).toEqual([])
  expect(refusal(await signIn({ ...ANN, email_verified: false }))).toEqual([409, "conflict"])
})

describe("a signed-in user", () => {
  const linking = async (user: Pick<Shop["live"], "post">, provider = ONE) =>
    user.post(`/v1/auth/oauth/${provider}/link`, { redirect_url: BACK })

  /** The user comes back with an account. */
  async function link(home: Shop, user: Pick<Shop["live"], "post">, account: typeof ANN) {
    const { authorization_url, state } = (await linking(user)).body.data
    const { code } = landedAt(await home.arrive(ONE, one.consent(authorization_url, account)))
    return home.exchange(ONE, { code, state })
  }

  test("links an account of another address once, and nobody else can have it", async () => {
    const home = await shop()
    const user = await signedUp(service, home.application)
    const linked = await link(home, user, ANN)
    expect([linked.status, linked.body.data.user.id]).toEqual([200, user.id])
    const [identity] = (await user.get("/v1/auth/identities")).body.data
    expect(identity).toMatchObject({ provider: ONE, provider_user_id: "ann-1", email: ANN.email })
    expect((await linking(user)).body.error.details).toEqual({
      ...{ reason: "already_linked", id: identity.id },
    })
    expect((await home.signIn(ANN)).body.data.user.id).toBe(user.id)
    const other = await signedUp(service, home.application)
    expect(refusal(await link(home, other, ANN))).toEqual([409, "conflict"])
    expect((await linking(user, "google")).status).toBe(404)
  })

  test("links nothing once the session where it began is over, as by the first proof of the address", async () => {
    const code = "424242"
    const email = "victim@users.test"
    const home = await shop({ test_identifiers: [{ email, code }] } as never)
    const proving = async () => {
      await home.live.post("/v1/auth/email-otp/send", { email })
      return home.live.post("/v1/auth/email-otp/verify", { email, code })
    }
    const leaving = (user: Pick<Shop["live"], "post">) => user.post("/v1/auth/users/logout", {})
    const vanishing = async ({ id }: { id: string }) => {
      await service.store.tx((tx) => tx.delete(users).where(eq(users.id, id)))
      return { status: 200 }
    }
    for (const ending of [proving, leaving, vanishing]) {
      const user = await signedUp(service, home.application, ending === proving ? { email } : {})
      const { authorization_url, state } = (await linking(user)).body.data
      const there = one.consent(authorization_url, { ...ANN, sub: user.id })
      const { code = "" } = landedAt(await home.arrive(ONE, there))
      expect((await ending(user)).status).toBe(200)
      expect(refusal(await home.exchange(ONE, { code, state }))).toEqual([401, "unauthorized"])
      expect(await identitiesOf(user.id)).toEqual([])
    }
  })

  test("unlinks an account that is not the last way in, once", async () => {
    const home = await shop()
    const made = (await home.signIn({ sub: "nameless" })).body.data
    const nameless = signedIn(service.app, made.tokens.access_token)
    const [{ id }] = made.user.identities
    const last = await nameless.call("DELETE", `/v1/auth/identities/${id}`)
    expect([last.status, last.body.error.details.reason]).toEqual([409, "last_way_in"])
    const known = (await home.signIn({ ...ANN, sub: "known" })).body.data
    const person = signedIn(service.app, known.tokens.access_token)
    const path = `/v1/auth/identities/${known.user.identities[0].id}`
    expect(refusal(await nameless.call("DELETE", path))).toEqual([404, "not_found"])
    expect((await person.call("DELETE", path)).status).toBe(200)
    expect(refusal(await person.call("DELETE", path))).toEqual([404, "not_found"])
    expect((await person.get("/v1/auth/identities")).body.data).toEqual([])
  })
})
