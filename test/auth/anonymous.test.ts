import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { newApplication, signedUp, type TestApplication } from "../harness/application"
import { callingWith, refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { elsewhere, letters, PASSWORD } from "./letters"
import { toldOf } from "./told-of"

const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })
const mail = letters(service)
const { store, app } = service
const PATH = "/v1/auth/anonymous"
const CONVERT = `${PATH}/convert`
const METHODS = { password: true, magic_link: true, email_otp: true, phone_otp: false }
const ON = { methods: { ...METHODS, oauth: true, passkey: true, anonymous: true } }

type Settings = NonNullable<Parameters<typeof newApplication>[2]>["settings"]

async function shopOf(settings: Settings = {}) {
  const project = await service.project()
  const shop = await newApplication(service, project, { settings: { ...ON, ...settings } })
  return { project, shop }
}

const device = () => `device-${newId()}`
const email = () => `${newId()}@people.test`

const enter = (shop: TestApplication, device_id: string, from = elsewhere()) =>
  shop.app().post(PATH, { device_id }, from)

/** An anonymous user, who calls from an address of their own. */
async function stranger(shop: TestApplication, device_id = device()) {
  const from = elsewhere()
  const { user, tokens } = (await enter(shop, device_id, from)).body.data
  const me = callingWith(app, { authorization: `Bearer ${tokens.access_token}`, ...from })
  return { id: user.id as string, device_id, refresh_token: tokens.refresh_token, ...me }
}

describe("a device", () => {
  test("makes a user once, and signs them in from then on", async () => {
    const { project, shop } = await shopOf()
    const device_id = device()
    const fields = { device_id, metadata: { level: 3 } }
    const first = await shop.app().post(PATH, fields)
    expect([first.status, first.body.data.is_new]).toEqual([201, true])
    expect(first.body.data.user).toMatchObject({
      ...{ is_anonymous: true, anonymous_device_id: device_id, email: null },
      ...{ metadata: { level: 3 }, status: "active" },
    })
    const again = await shop.server().post(PATH, { device_id, metadata: { level: 9 } })
    expect([again.status, again.body.data.is_new]).toEqual([200, false])
    expect(again.body.data.user.id).toBe(first.body.data.user.id)
    expect(again.body.data.user.metadata).toEqual({ level: 3 })
    expect(await toldOf(service, project)).toEqual([
      "user.created anonymous",
      "user.login anonymous",
    ])
  })

  test("of which two ask at once is one user", async () => {
    const { shop } = await shopOf()
    const device_id = device()
    const answers = await Promise.all(Array.from({ length: 10 }, () => enter(shop, device_id)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(9)
    expect(new Set(answers.map(({ body }) => body.data.user.id)).size).toBe(1)
  })

  test("is another user in another environment or application, and where one letter differs", async () => {
    const { project, shop } = await shopOf()
    const other = await newApplication(service, project, { settings: ON })
    const device_id = device()
    const places = [() => enter(shop, device_id), () => enter(other, device_id)]
    places.push(() => shop.app("test").post(PATH, { device_id }, elsewhere()))
    places.push(
      () => enter(shop, device_id.toUpperCase()),
      () => enter(shop, `${device_id}é`),
    )
    places.push(() => enter(shop, `${device_id}e\u0301`))
    const ids = new Set<string>()
    for (const ask of places) {
      const { status, body } = await ask()
      expect(status).toBe(201)
      ids.add(body.data.user.id)
    }
    expect(ids.size).toBe(places.length)
  })

  test("has a name of 8 to 255 characters, of which none is a control character", async () => {
    const { shop } = await shopOf()
    const reserved = await enter(shop, "external")
    expect(reserved.body.error.details.fields[0]).toMatchObject({ code: "reserved" })
    for (const device_id of ["1234567", "x".repeat(256), `12345678\u0000`, `1234\n56789`, 12345678])
      expect(refusal(await enter(shop, device_id as string))[0]).toBe(422)
    expect((await enter(shop, "x".repeat(255))).status).toBe(201)
  })

  test("is let in where the method is on, and its user is active", async () => {
    const off = await newApplication(service, await service.project())
    const refused = await enter(off, device())
    expect(refusal(refused)).toEqual([403, "forbidden"])
    expect(refused.body.error.details.reason).toBe("method_off")
    const { shop } = await shopOf()
    const { id, device_id } = await stranger(shop)
    await shop.server().post(`/v1/auth/users/${id}/suspend`, {})
    expect(refusal(await enter(shop, device_id))).toEqual([400, "user_inactive"])
    await shop.server().call("DELETE", `/v1/auth/users/${id}`)
    expect((await enter(shop, device_id)).status).toBe(201)
  })

  test("counts where it is new: thirty of one network in a quarter of an hour", async () => {
    const { shop } = await shopOf()
    const from = elsewhere()
    const known = device()
    await enter(shop, known, from)
    for (let at = 1; at < 30; at++) expect((await enter(shop, device(), from)).status).toBe(201)
    const refused = await enter(shop, device(), from)
    expect(refusal(refused)).toEqual([429, "login_rate_limit_exceeded"])
    expect((await enter(shop, known, from)).status).toBe(200)
  })
})

describe("a conversion", () => {
  test("keeps the user, ends their sessions, and frees the device", async () => {
    const { project, shop } = await shopOf()
    const me = await stranger(shop)
    const fields = { email: email(), password: PASSWORD, name: "Ann" }
    const { status, body } = await me.post(CONVERT, fields)
    expect([status, body.data.is_new]).toEqual([200, false])
    expect(body.data.user).toMatchObject({
      ...{ id: me.id, email: fields.email, email_verified: false, name: "Ann" },
      ...{ is_anonymous: false, anonymous_device_id: null },
    })
    expect(refusal(await me.get("/v1/auth/users/me"))).toEqual([401, "unauthorized"])
    const renewed = await shop
      .app()
      .post("/v1/auth/sessions/refresh", { refresh_token: me.refresh_token })
    expect(refusal(renewed)).toEqual([401, "unauthorized"])
    const bearer = { authorization: `Bearer ${body.data.tokens.access_token}` }
    const own = await callingWith(app, bearer).get("/v1/auth/users/me")
    expect(own.body.data.organizations).toMatchObject([{ name: "Default", role: "member" }])
    const back = await shop.app().post("/v1/auth/users/login", fields, elsewhere())
    expect([back.status, back.body.data.user.id]).toEqual([200, me.id])
    const anew = await enter(shop, me.device_id)
    expect([anew.status, anew.body.data.user.id === me.id]).toEqual([201, false])
    expect((await toldOf(service, project)).slice(0, 3)).toEqual([
      "user.created anonymous",
      "user.session_revoked",
      "user.login password",
    ])
  })

  test("waits for the address where the environment wants it verified", async () => {
    const { shop } = await shopOf({ require_verified_email: true })
    const me = await stranger(shop)
    const fields = { email: email(), password: PASSWORD }
    const { status, body } = await me.post(CONVERT, fields)
    expect([status, body.data.tokens, body.data.session]).toEqual([200, null, null])
    expect(refusal(await me.get("/v1/auth/users/me"))).toEqual([401, "unauthorized"])
    const login = () => shop.app().post("/v1/auth/users/login", fields, elsewhere())
    expect(refusal(await login())).toEqual([403, "forbidden"])
    const token = (await mail.last(fields.email))?.token
    expect((await shop.app().post("/v1/auth/verify-email/confirm", { token })).status).toBe(200)
    expect((await login()).body.data.user.id).toBe(me.id)
  })

  test("is for anonymous users, once, to an address that nobody has", async () => {
    const { shop } = await shopOf()
    const named = await signedUp(service, shop)
    const fields = { email: email(), password: PASSWORD }
    expect(refusal(await named.post(CONVERT, fields))).toEqual([409, "conflict"])
    const me = await stranger(shop)
    const taken = await me.post(CONVERT, { ...fields, email: named.email })
    expect([...refusal(taken), taken.body.error.details.reason]).toEqual([
      ...[409, "conflict", "email_taken"],
    ])
    const answers = await Promise.all([email(), email()].map((to) => convertTo(me, to)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  const convertTo = (me: Awaited<ReturnType<typeof stranger>>, to: string) =>
    me.post(CONVERT, { email: to, password: PASSWORD })

  test("gives an address to one of two who want it at once", async () => {
    const { shop } = await shopOf()
    const [one, other] = [await stranger(shop), await stranger(shop)]
    const to = email()
    const answers = await Promise.all([convertTo(one, to), convertTo(other, to.toUpperCase())])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const [loser] = await store.read
      .select()
      .from(users)
      .where(eq(users.id, answers[0].status === 200 ? other.id : one.id))
    expect(loser).toMatchObject({ is_anonymous: true, email: null })
  })

  test("has the rules of a registration", async () => {
    const { shop } = await shopOf({ blocked_email_domains: ["spam.test"] })
    const me = await stranger(shop)
    const refused = async (fields: object) =>
      refusal(await me.post(CONVERT, { email: email(), password: PASSWORD, ...fields }))
    expect(await refused({ password: "short" })).toEqual([422, "weak_password"])
    expect(await refused({ email: "me@spam.test" })).toEqual([403, "forbidden"])
    expect(await refused({ email: "nobody" })).toEqual([422, "invalid_email"])
    const off = await shopOf({ methods: { ...ON.methods, password: false } })
    const elsewise = await stranger(off.shop)
    expect(refusal(await convertTo(elsewise, email()))).toEqual([403, "forbidden"])
  })
})
