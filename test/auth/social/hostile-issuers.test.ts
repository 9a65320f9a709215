import { describe, expect, test } from "bun:test"
import { createHmac, generateKeyPairSync } from "node:crypto"
import { SignJWT } from "jose"
import { askJson } from "../../../src/auth/social/providers/provider-request"
import { monotonic } from "../../../src/core/time"
import { hostileReceiver } from "../../fakes/hostile-receiver"
import { identityProvider, TENANT } from "../../fakes/identity-provider"
import { movableClock } from "../../harness/clock"
import { quietLog } from "../../harness/quiet"
import { ANN, begun, faulty, refused, setupOf, signIn } from "./signing-in"

const logged = quietLog()
const clock = movableClock()

/** An issuer, what an environment set up there, and a place inside that nobody may ask. */
function hostile(kind: "oidc" | "microsoft" = "oidc") {
  const fake = identityProvider(kind, ANN)
  const canary = { hits: 0 }
  const inside = Bun.serve({
    hostname: "127.0.0.2",
    port: 0,
    fetch: () => Response.json({ hit: ++canary.hits }),
  })
  const config = setupOf(kind === "oidc" ? "oidc-acme" : kind, fake.setup, fake.url)
  return {
    ...{ fake, config, canary, lies: fake.it.lies, inward: `http://127.0.0.2:${inside.port}` },
    [Symbol.dispose]() {
      fake[Symbol.dispose]()
      inside.stop(true)
    },
  }
}

const base64 = (json: object) => Buffer.from(JSON.stringify(json)).toString("base64url")
const seconds = () => Math.floor(Date.now() / 1000)

describe("a token is refused", () => {
  test.each<[string, object]>([
    ["iss", { iss: "https://other.example" }],
    ["aud", { aud: "another client" }],
    ["azp", { aud: ["shop oidc", "another client"] }],
    ["azp", { azp: "another client" }],
    ["nonce", { nonce: "of another sign-in" }],
    ["nonce", { nonce: undefined }],
    ["exp", { exp: seconds() - 120 }],
    ["exp", { exp: undefined }],
    ["iat", { iat: undefined }],
    ["iat", { iat: seconds() + 3600 }],
    ["nbf", { nbf: seconds() + 3600 }],
    ["sub", { sub: "" }],
    ["at_hash", { at_hash: "of another token" }],
  ])("for a wrong %s: %j", async (reason, claims) => {
    using it = hostile()
    it.lies.claims = { ...claims }
    expect(signIn(it)).rejects.toMatchObject(refused(reason))
  })

  test("without a signature, and with one that anybody can make of the public key", async () => {
    using it = hostile()
    const { kid } = it.fake.it.key
    const text = (alg: string, claims: object) => `${base64({ alg, kid })}.${base64(claims)}`
    const mac = (key: string, body: string) => createHmac("sha256", key).update(body)
    const lies = [
      (claims: object) => `${text("none", claims)}.`,
      (claims: object) => {
        const body = text("HS256", claims)
        return `${body}.${mac(it.fake.publicPem(), body).digest("base64url")}`
      },
      (claims: object) => {
        const body = text("HS256", claims)
        return `${body}.${mac(it.fake.setup.client_secret ?? "", body).digest("base64url")}`
      },
    ]
    for (const token of lies) {
      it.lies.token = token
      expect(signIn(it)).rejects.toMatchObject(refused("signature"))
    }
  })

  test("that is of another kind, or signed by a key of somebody else, also one that it brings along", async () => {
    using it = hostile()
    it.lies.header = { typ: "at+jwt" }
    expect(signIn(it)).rejects.toMatchObject(refused("typ"))
    it.lies.header = { kid: "unknown" }
    expect(signIn(it)).rejects.toMatchObject(refused("signature"))
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
    const jwk = { ...publicKey.export({ format: "jwk" }), kty: "RSA" }
    const { kid } = it.fake.it.key
    it.lies.token = (claims) =>
      new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid, jwk }).sign(privateKey)
    expect(signIn(it)).rejects.toMatchObject(refused("signature"))
  })

  test("of Microsoft whose issuer is not that of its tenant, or whose key is of another one", async () => {
    using it = hostile("microsoft")
    const other = TENANT.replaceAll("1", "9")
    const of = (tenant: string) => `${it.fake.url}/${tenant}/v2.0`
    it.lies.claims = { iss: of(other) }
    expect(signIn(it)).rejects.toMatchObject(refused("iss"))
    it.lies.claims = { iss: of("{tenantid}"), tid: "{tenantid}" }
    expect(signIn(it)).rejects.toMatchObject(refused("iss"))
    it.lies.claims = {}
    expect((await signIn(it)).account.provider_user_id).toBe(ANN.id)
    it.fake.rotate()
    const { kid, publicKey } = it.fake.it.key
    const key = { ...publicKey.export({ format: "jwk" }), kid, issuer: of(other) }
    it.lies.answers = { "/keys": () => Response.json({ keys: [key] }) }
    expect(signIn(it)).rejects.toMatchObject(refused("iss"))
  })
})

test("a redirect that another issuer answered, or none, is a mix-up", async () => {
  using it = hostile()
  const { exchange } = await begun(it)
  for (const iss of ["https://other.example", `${it.fake.url}/`, undefined])
    expect(exchange({ iss })).rejects.toMatchObject(refused("iss"))
  expect(it.fake.it.asked).not.toContain("/token")
})

describe("a document", () => {
  test("of another issuer is refused, be it by a slash", async () => {
    using it = hostile()
    it.lies.document = { issuer: `${it.fake.url}/` }
    expect(signIn(it)).rejects.toMatchObject(faulty("issuer"))
  })

  test.each(["authorization_endpoint", "token_endpoint", "jwks_uri"])(
    "whose %s points inward makes no request there",
    async (name) => {
      for (const scheme of ["http:", "https:"]) {
        using it = hostile()
        it.lies.document = { [name]: `${it.inward.replace("http:", scheme)}/inside` }
        const reason = scheme === "http:" ? "invalid_url" : "blocked_address"
        expect(signIn(it)).rejects.toMatchObject(faulty(reason))
        expect(it.canary.hits).toBe(0)
      }
    },
  )

  test("that sends browsers to a script is refused", async () => {
    using it = hostile()
    it.lies.document = { authorization_endpoint: "javascript:alert(1)" }
    expect(signIn(it)).rejects.toMatchObject(faulty("invalid_url"))
  })

  test("that is none, or says nothing, is a fault", async () => {
    for (const body of ["<html>", "[]", "null", "{}", '{"issuer":5}']) {
      using it = hostile()
      const path = "/.well-known/openid-configuration"
      it.lies.answers = { [path]: () => new Response(body) }
      expect(signIn(it)).rejects.toMatchObject({ code: "provider_error" })
    }
  })
})

describe("an answer", () => {
  test.each(["/.well-known/openid-configuration", "/token", "/keys"])(
    "of %s that leads elsewhere is not followed",
    async (path) => {
      using it = hostile()
      it.lies.answers = { [path]: () => Response.redirect(it.inward, 307) }
      expect(signIn(it)).rejects.toMatchObject({ code: "provider_error" })
      expect(it.canary.hits).toBe(0)
    },
  )

  test("with 5 MB of keys is not read to its end", async () => {
    using it = hostile()
    const keys = JSON.stringify({ keys: [], filler: "x".repeat(5_000_000) })
    it.lies.answers = { "/keys": () => new Response(keys) }
    expect(signIn(it)).rejects.toMatchObject(faulty("too_large"))
  })

  test("with keys that are secrets of both sides, or too long, has no key at all", async () => {
    using it = hostile()
    const { kid, publicKey } = it.fake.it.key
    const secret = { kty: "oct", kid, k: base64({}), alg: "RS256" }
    const long = { ...publicKey.export({ format: "jwk" }), kid, n: "A".repeat(100_000) }
    it.lies.answers = { "/keys": () => Response.json({ keys: [secret, long, null, "x", []] }) }
    expect(signIn(it)).rejects.toMatchObject(refused("signature"))
  })

  test("that comes byte by byte ends with the time of the sign-in", async () => {
    using slow = hostileReceiver("one byte a second")
    const config = setupOf("oidc-acme", { client_id: "x" }, slow.url)
    const asked = askJson({ config, until: monotonic() + 200 }, { url: slow.url })
    expect(asked).rejects.toMatchObject(faulty("timeout"))
  })
})

test("the log tells which provider failed, and nothing that it said", async () => {
  using it = hostile()
  const { exchange } = await begun(it)
  it.lies.answers = { "/token": () => Response.json({ access_token: "planted", error: "Planted" }) }
  await exchange().catch(() => {})
  const gone = setupOf("oidc-acme", it.fake.setup, "http://127.0.0.1:1")
  await exchange({ config: gone }).catch(() => {})
  const log = logged().join()
  expect(log).toContain("oidc-acme")
  for (const word of ["lanted", it.fake.setup.client_secret, "eyJ"]) expect(log).not.toContain(word)
})

test("keys that changed half way are asked for once, and then not again at once", async () => {
  using it = hostile()
  const keyRequests = () => it.fake.it.asked.filter((path) => path === "/keys").length
  await signIn(it)
  const { exchange } = await begun(it)
  it.fake.rotate()
  const others = await Promise.all([begun(it), begun(it)])
  await Promise.all([exchange(), ...others.map((one) => one.exchange())])
  expect(keyRequests()).toBe(2)
  it.lies.header = { kid: "unknown" }
  for (let at = 0; at < 5; at++) expect(signIn(it)).rejects.toMatchObject(refused("signature"))
  expect(keyRequests()).toBe(2)
  it.lies.header = {}
  it.fake.rotate()
  expect(signIn(it)).rejects.toMatchObject(refused("signature"))
  clock.advance({ seconds: 31 })
  expect((await signIn(it)).account.provider_user_id).toBe(ANN.id)
  expect(keyRequests()).toBe(3)
})
