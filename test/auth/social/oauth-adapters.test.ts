import { describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { adapterOf } from "../../../src/auth/social/oauth-adapters"
import type { Person } from "../../fakes/code-grants"
import { gitHubSite } from "../../fakes/github-site"
import { identityProvider, type OpenIdKind, SETUPS } from "../../fakes/identity-provider"
import { oidcProvider, signInByPages } from "../../harness/oidc-provider"
import { quietLog } from "../../harness/quiet"
import { ANN, begun, faulty, redirect_uri, refused, setupOf, signIn } from "./signing-in"

quietLog()

function fakeOf(name: string, person: Person) {
  if (name === "github") return gitHubSite(person)
  return identityProvider(name.startsWith("oidc-") ? "oidc" : (name as OpenIdKind), person)
}

describe.each(["google", "apple", "github", "microsoft", "oidc-acme"])("%s", (name) => {
  function opened(person = ANN) {
    const fake = fakeOf(name, person)
    return {
      fake,
      config: setupOf(name, fake.setup, fake.url),
      [Symbol.dispose]: fake[Symbol.dispose],
    }
  }

  test("proves the account of who signed in, and hands out its tokens", async () => {
    using it = opened()
    const { account, provider_tokens } = await signIn(it)
    expect(account).toMatchObject({
      ...{ provider_user_id: ANN.id, email: ANN.email, email_verified: true },
      name: name === "apple" ? null : ANN.name,
    })
    expect(provider_tokens.access_token).toBeString()
    expect(provider_tokens.scope).toContain("email")
  })

  test("says so where it did not verify the address", async () => {
    using it = opened({ ...ANN, is_verified: false })
    const { account } = await signIn(it)
    expect(account).toMatchObject({ email: ANN.email, email_verified: false })
  })

  test("takes a code once, with its own verifier and redirect", async () => {
    using it = opened()
    const { exchange } = await begun(it)
    await exchange()
    expect(exchange()).rejects.toMatchObject(refused("code"))
    const other = { code_verifier: randomBytes(32).toString("base64url") }
    expect(signIn(it, other)).rejects.toMatchObject(refused("code"))
    const elsewhere = { redirect_uri: "http://127.0.0.1:9/elsewhere" }
    expect(signIn(it, elsewhere)).rejects.toMatchObject(refused("code"))
  })

  test("that refuses its client, fails or is away is a fault of the provider", async () => {
    using it = opened()
    const { exchange } = await begun(it)
    const config = { ...it.config, client_secret: "wrong", key_id: "wrong" }
    const code = await exchange({ config }).catch((error) => error.code)
    expect(code).toBe("provider_error")
    const gone = setupOf(name, SETUPS.google, "http://127.0.0.1:1")
    expect(exchange({ config: gone })).rejects.toMatchObject(faulty("connection"))
  })

  test("on a private address is not asked, unless the operator allows it", async () => {
    using it = opened()
    const { exchange } = await begun(it)
    const before = it.fake.it.asked.length
    const config = { ...it.config, allow_private: [] }
    expect(exchange({ config })).rejects.toMatchObject(faulty("invalid_url"))
    const https = it.fake.url.replace("http:", "https:")
    const named = { ...config, endpoint: config.endpoint && https, issuer: config.issuer && https }
    expect(exchange({ config: named })).rejects.toMatchObject(faulty("blocked_address"))
    expect(it.fake.it.asked).toHaveLength(before)
  })
})

test("the primary address of GitHub is null where the scope for it was not given", async () => {
  using site = gitHubSite({ ...ANN, name: null })
  site.it.has_scope = false
  const { account } = await signIn({ config: setupOf("github", site.setup, site.url) })
  expect(account).toMatchObject({ email: null, email_verified: false, name: "ann" })
})

test("an app brings an ID token of its platform, with the nonce and the access token that it belongs to", async () => {
  for (const kind of ["google", "apple", "microsoft"] as const) {
    using fake = identityProvider(kind, ANN)
    const config = setupOf(kind, fake.setup, fake.url)
    const { proveIdToken } = adapterOf(kind)
    const id_token = await fake.idToken({ nonce: "n" })
    const account = await proveIdToken({ config, id_token, nonce: "n" })
    expect(account).toMatchObject({ provider_user_id: ANN.id, email_verified: true })
    const prove = (own: object) => proveIdToken({ config, id_token, ...own })
    expect(prove({ nonce: "other" })).rejects.toMatchObject(refused("nonce"))
    expect(prove({ access_token: "other" })).rejects.toMatchObject(refused("at_hash"))
    expect(prove({ id_token: "no token" })).rejects.toMatchObject(refused("signature"))
  }
  using fake = identityProvider("google", ANN)
  const config = setupOf("google", fake.setup, fake.url)
  const id_token = await fake.idToken({ azp: "shop.android" })
  const account = await adapterOf("google").proveIdToken({ config, id_token })
  expect(account.provider_user_id).toBe(ANN.id)
})

test("oidc-provider signs people in, also after it changed its keys", async () => {
  const client = { client_id: "shop:web", client_secret: "s3cret of: acme/+%", redirect_uri }
  await using provider = await oidcProvider(client)
  const { client_id, client_secret } = client
  const config = setupOf("oidc-acme", { client_id, client_secret }, provider.issuer)
  const start = { config, signIn: (url: string) => signInByPages(url, redirect_uri, "ann") }
  const ann = {
    ...{ provider_user_id: "ann", email: "ann@oidc.test", email_verified: true },
    ...{ name: "ann", avatar_url: null },
  }
  expect((await signIn(start)).account).toEqual(ann)
  await provider.rotateKeys()
  const { exchange } = await begun(start)
  expect((await exchange()).account).toEqual(ann)
  expect(exchange()).rejects.toMatchObject(refused("code"))
  expect(signIn(start, { iss: "https://other.example" })).rejects.toMatchObject(refused("iss"))
})
