import { expect, test } from "bun:test"
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto"
import { eq } from "drizzle-orm"
import { decodeJwt, decodeProtectedHeader, exportJWK } from "jose"
import { AccessTokens } from "../../src/identity/access-token"
import * as users from "../../src/identity/users"
import { instanceValues } from "../../src/store/tables"
import { movableClock } from "../harness/clock"
import { person, signedIn } from "../harness/people"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const { store, app, parts } = service

const encode = (part: object | string) =>
  Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url")

async function genuine() {
  const { id } = await person(service)
  const session = await store.tx(async (tx) => {
    const user = await users.find(tx, id)
    return parts.sessions.start(tx, user, { ip: null, user_agent: null, client_name: null })
  })
  const token = session.access_token
  return { token, header: decodeProtectedHeader(token), claims: decodeJwt(token) }
}

const status = async (token: string) => (await signedIn(app, token).get("/v1/session")).status

/** The instance's own key, as nobody outside has it. */
async function ownKey(): Promise<KeyObject> {
  const name = "console_signing_key"
  const mine = eq(instanceValues.name, name)
  const [row] = await store.read.select().from(instanceValues).where(mine)
  return createPrivateKey(JSON.parse(parts.secrets.open(row?.value ?? "", name)).pem)
}

function signedWith(key: KeyObject, header: object, claims: object): string {
  const head = `${encode(header)}.${encode(claims)}`
  return `${head}.${sign(null, Buffer.from(head), key).toString("base64url")}`
}

test("says who signed in, for whom it is and until when", async () => {
  const { token, header, claims } = await genuine()
  expect(header).toEqual({ alg: "EdDSA", typ: "at+jwt", kid: expect.any(String) })
  expect(claims).toMatchObject({ iss: "http://belfry.test/console", aud: "http://belfry.test/v1" })
  expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(900)
  expect(await status(token)).toBe(200)
})

test("ends after 15 minutes", async () => {
  const { token } = await genuine()
  clock.advance({ seconds: 890 })
  expect(await status(token)).toBe(200)
  clock.advance({ seconds: 11 })
  expect(await status(token)).toBe(401)
})

test("is refused when anything of it was made by somebody else", async () => {
  const { token, header, claims } = await genuine()
  const key = await ownKey()
  const stranger = generateKeyPairSync("ed25519")
  const public_pem = createPublicKey(key).export({ type: "spki", format: "pem" })
  const [head = "", body = "", signature = ""] = token.split(".")
  const hmac = (alg: string, secret: string | Buffer) => {
    const text = `${encode({ ...header, alg })}.${body}`
    const digest = createHmac(`sha${alg.slice(2)}`, secret).update(text)
    return `${text}.${digest.digest("base64url")}`
  }
  const jwk = await exportJWK(stranger.publicKey)
  const later = { ...claims, exp: (claims.exp ?? 0) + 86_400 }
  const forged: Record<string, string> = {
    "alg none": `${encode({ ...header, alg: "none" })}.${body}.`,
    "alg None": `${encode({ ...header, alg: "None" })}.${body}.`,
    "none with our signature": `${encode({ ...header, alg: "none" })}.${body}.${signature}`,
    "HS256 with the public key": hmac("HS256", public_pem),
    "HS512 with the public key": hmac("HS512", public_pem),
    "HS256 with nothing": hmac("HS256", ""),
    "another key": signedWith(stranger.privateKey, header, claims),
    "a key it brings along": signedWith(stranger.privateKey, { ...header, jwk }, claims),
    "a key it points to": signedWith(
      stranger.privateKey,
      { ...header, jku: "https://evil.test/jwks.json" },
      claims,
    ),
    "no signature": `${head}.${body}.`,
    "a changed claim": `${head}.${encode(later)}.${signature}`,
    "a changed header": `${encode({ ...header, typ: "JWT" })}.${body}.${signature}`,
    "two parts": `${head}.${body}`,
    "four parts": `${token}.x`,
    "no JSON": `${encode("x")}.${encode("y")}.${signature}`,
  }
  for (const [name, one] of Object.entries(forged)) {
    expect([name, await status(one)]).toEqual([name, 401])
  }
  expect(await status(token)).toBe(200)
})

test("is refused with our own signature when it was made for something else", async () => {
  const { header, claims } = await genuine()
  const key = await ownKey()
  const { sub: _, ...nobody } = claims
  const { exp: __, ...endless } = claims
  const wrong: Record<string, [object, object]> = {
    "another issuer": [header, { ...claims, iss: "http://belfry.test/v1/auth" }],
    "an issuer alike": [header, { ...claims, iss: "http://belfry.test/console/" }],
    "another audience": [header, { ...claims, aud: "http://other.test/v1" }],
    "no audience": [header, { ...claims, aud: undefined }],
    "another type": [{ ...header, typ: "JWT" }, claims],
    "no type": [{ ...header, typ: undefined }, claims],
    "another key id": [{ ...header, kid: "other" }, claims],
    "no key id": [{ ...header, kid: undefined }, claims],
    "a key of its own": [{ ...header, jwk: { kty: "OKP" } }, claims],
    "a key elsewhere": [{ ...header, jku: "https://evil.test/" }, claims],
    "a certificate": [{ ...header, x5u: "https://evil.test/" }, claims],
    "something critical": [{ ...header, crit: ["exp"] }, claims],
    nobody: [header, nobody],
    "no end": [header, endless],
    "no session": [header, { ...claims, sid: undefined }],
    "a session that is no id": [header, { ...claims, sid: "x' or 1=1" }],
    "a session of somebody else": [header, { ...claims, sub: claims.sid }],
    "a caller of another kind": [header, { ...claims, caller: "app" }],
    "a person as a key": [header, { ...claims, caller: "key" }],
    "not yet": [header, { ...claims, nbf: (claims.iat ?? 0) + 600 }],
  }
  for (const [name, [head, body]] of Object.entries(wrong)) {
    expect([name, await status(signedWith(key, head, body))]).toEqual([name, 401])
  }
  expect(await status(signedWith(key, header, claims))).toBe(200)
})

test("is refused by an instance with another address or another key", async () => {
  const { token } = await genuine()
  const moved = new AccessTokens({ ...parts, base_url: () => "http://elsewhere.test" })
  expect(moved.verify(token)).rejects.toMatchObject({ code: "unauthorized" })
  const other = await testService()
  try {
    const same_address = other.parts.verifyAccess(token)
    expect(same_address).rejects.toMatchObject({ code: "unauthorized" })
    await same_address.catch(() => {})
  } finally {
    await other[Symbol.asyncDispose]()
  }
})

test("two nodes share one key, which is sealed", async () => {
  const node = new AccessTokens({ ...parts })
  const { token, claims } = await genuine()
  expect(await node.verify(token)).toEqual({
    user_id: String(claims.sub),
    session_id: String(claims.sid),
  })
  const rows = await store.read.select().from(instanceValues)
  expect(JSON.stringify(rows)).not.toContain("PRIVATE KEY")
})
