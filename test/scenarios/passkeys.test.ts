import { describe, expect, test } from "bun:test"
import { type Belfry, startBelfry } from "../harness/binary"
import { type BrowserPage, startBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { write } from "./page-mails"
import { lean } from "./serve"
import { siteOf, tabWithAuthenticator, WEBAUTHN } from "./shop"

const PASSWORD = "Quiet-River-42"

/** A page that asks by itself. */
const PAGE = `<!doctype html><meta charset="utf-8"><title>Shop</title><script>${WEBAUTHN}
const post = async (url, headers, body) => {
  const answer = await fetch(url, { method: "POST",
    headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) })
  return { status: answer.status, body: await answer.json() }
}
</script>`

const site = () => siteOf(() => PAGE)

interface Answer<Data> {
  status: number
  body: { data: Data; error?: { code: string } }
}

interface Ceremony {
  challenge_id: string
  public_key: Record<string, unknown>
}

interface SignedIn {
  user: { id: string }
  tokens: { access_token: string }
  mfa_challenge: { token: string; methods: string[] }
}

type Headers = Record<string, string>

const inPage = <Value>(page: BrowserPage, name: string, ...words: unknown[]) =>
  page.read<Value>(`${name}(${words.map((one) => JSON.stringify(one)).join(", ")})`)

interface Application {
  public_keys: { live: string; test: string }
}

/** An application whose page may use passkeys, and the ways to ask for it. */
async function application(server: Belfry, origin: string) {
  const wanted = { name: "Shop", allowed_origins: [origin] }
  const made = await write<Application>(server, "POST", "/v1/auth/applications", wanted)
  const key = { "x-application-key": made.public_keys.live }
  const send = async <Data>(path: string, headers: Headers, body: object, method = "POST") => {
    const asked = { ...headers, "content-type": "application/json" }
    const init = { method, headers: asked, body: JSON.stringify(body) }
    const answer = await fetch(`${server.url}/v1/auth/${path}`, init)
    return { status: answer.status, body: await answer.json() } as Answer<Data>
  }
  return { key, test_key: { "x-application-key": made.public_keys.test }, send }
}

const bearer = ({ tokens }: SignedIn) => ({ authorization: `Bearer ${tokens.access_token}` })

const outcome = ({ status, body }: Answer<unknown>) => [status, body.error?.code]

const WRONG = [401, "unauthorized"]

describe.skipIf(missing("chromium-headless-shell"))("passkeys in Chromium", () => {
  test("register, sign in without a name, are a second factor and a step-up, and go", async () => {
    await using server = await startBelfry({ env: lean })
    using shop = site()
    const { key, send } = await application(server, shop.origin)
    await using browser = await startBrowser()
    const { page } = await tabWithAuthenticator(browser, shop.origin)
    await using _ = page
    const asPage = <Data>(path: string, headers: Headers, body: object) =>
      inPage<Answer<Data>>(page, "post", `${server.url}/v1/auth/${path}`, headers, body)
    const signature = async (wish: object = {}) => {
      const asked = await asPage<Ceremony>("passkeys/login/options", key, wish)
      const { challenge_id, public_key } = asked.body.data
      return { challenge_id, credential: await inPage(page, "get", public_key) }
    }

    const person = { email: "ann@shop.test", password: PASSWORD }
    const signed = await send<SignedIn>("users/register", key, person)
    const me = bearer(signed.body.data)
    const begun = await asPage<Ceremony>("passkeys/register/options", me, {})
    const { challenge_id, public_key } = begun.body.data
    const credential = await inPage(page, "create", public_key)
    const wanted = { challenge_id, credential, name: "Laptop" }
    const made = await asPage<{ id: string; name: string; backup_codes: string[] }>(
      ...(["passkeys/register/verify", me, wanted] as const),
    )
    const { name, backup_codes } = made.body.data
    expect([made.status, name, backup_codes.length]).toEqual([201, "Laptop", 10])

    const entered = await asPage<SignedIn>("passkeys/login/verify", key, await signature())
    expect([entered.status, entered.body.data.user.id]).toEqual([200, signed.body.data.user.id])

    const asked = await send<SignedIn>("users/login", key, person)
    const { token, methods } = asked.body.data.mfa_challenge
    expect(methods).toEqual(["passkey", "backup_code"])
    const second = await signature({ challenge_token: token })
    const answered = await asPage<SignedIn>("passkeys/login/verify", key, second)
    expect(answered.status).toBe(200)

    const own = bearer(answered.body.data)
    const path = `passkeys/${made.body.data.id}`
    expect(outcome(await send(path, own, {}, "DELETE"))).toEqual([403, "mfa_required"])
    expect((await asPage("mfa/step-up", own, await signature())).status).toBe(200)
    expect((await send(path, own, {}, "DELETE")).status).toBe(200)
    const gone = await asPage("passkeys/login/verify", key, await signature())
    expect(outcome(gone)).toEqual(WRONG)
  }, 60_000)

  test("are refused when copied, replayed, of another page or environment, or of nobody known", async () => {
    await using server = await startBelfry({ env: lean })
    using shop = site()
    using elsewhere = site()
    const { key, test_key, send } = await application(server, shop.origin)
    await using browser = await startBrowser()
    const tab = await tabWithAuthenticator(browser, shop.origin)
    const foreign = await tabWithAuthenticator(browser, elsewhere.origin)
    await using page = tab.page
    await using other = foreign.page
    const asked = async (headers: Headers = key) =>
      (await send<Ceremony>("passkeys/login/options", { ...headers, origin: shop.origin }, {})).body
        .data
    const verify = (given: object, headers: Headers = key) =>
      send<SignedIn>("passkeys/login/verify", headers, given)
    const signature = async (at = page, more: object = {}) => {
      const { challenge_id, public_key } = await asked()
      return { challenge_id, credential: await inPage(at, "get", { ...public_key, ...more }) }
    }

    const person = { email: "ann@shop.test", password: PASSWORD }
    const me = bearer((await send<SignedIn>("users/register", key, person)).body.data)
    const begun = await send<Ceremony>("passkeys/register/options", me, {})
    const { challenge_id, public_key } = begun.body.data
    const credential = await inPage(page, "create", public_key)
    const made = await send("passkeys/register/verify", me, { challenge_id, credential })
    expect(made.status).toBe(201)
    const [copy] = await tab.kept()
    if (!copy) throw new Error("the authenticator kept no passkey")

    const right = await signature()
    expect(outcome(await verify(right, test_key))).toEqual(WRONG)
    expect((await verify(right)).status).toBe(200)
    expect(outcome(await verify(right))).toEqual(WRONG)

    await foreign.keep({ ...copy, signCount: 100 })
    expect(outcome(await verify(await signature(other)))).toEqual(WRONG)

    await tab.know(false)
    const unasked = await signature(page, { userVerification: "discouraged" })
    expect(outcome(await verify(unasked))).toEqual(WRONG)
    await tab.know(true)

    await tab.keep(copy)
    expect(outcome(await verify(await signature()))).toEqual(WRONG)
    await tab.keep({ ...copy, signCount: 50 })
    expect((await verify(await signature())).status).toBe(200)
  }, 60_000)
})
