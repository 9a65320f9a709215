import { expect, test } from "bun:test"
import { createPrivateKey, createPublicKey, sign } from "node:crypto"
import { errors } from "jose"
import { unprovenParts, verifyToken } from "../../src/lib/signed-token"

/** The key of RFC 8037, appendix A.1. */
const private_key = createPrivateKey({
  key: {
    kty: "OKP",
    crv: "Ed25519",
    d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
  },
  format: "jwk",
})
const key = { kid: "one", public_key: createPublicKey(private_key) }
const at = new Date("2026-11-22T12:00:00.000Z")
const iat = at.getTime() / 1000
const rules = { issuer: "https://a.test", audience: "inbox", type: "t+jwt", claims: ["sub"], at }
const claims = { iss: "https://a.test", aud: "inbox", sub: "ann", iat, exp: iat + 60 }
const header = { alg: "EdDSA", typ: "t+jwt", kid: "one" }

const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString("base64url")

function signed(head: object, body: unknown): string {
  const text = `${encode(head)}.${encode(body)}`
  return `${text}.${sign(null, Buffer.from(text), private_key).toString("base64url")}`
}

test("a token says its issuer and its key, and other texts say nothing", () => {
  expect(unprovenParts(signed(header, claims))).toEqual({ iss: "https://a.test", kid: "one" })
  const nothing = [
    ...["", ".", "a.b.c", "svc_live_x", `${encode(header)}.${encode(claims)}`, "e30.e30.e30"],
    signed({ ...header, kid: 7 }, claims),
    signed({ ...header, kid: undefined }, claims),
    signed(header, { ...claims, iss: ["https://a.test"] }),
    signed(header, [claims]),
    signed(header, null),
  ]
  for (const text of nothing) expect([text, unprovenParts(text)]).toEqual([text, undefined])
})

test("the claims of a token are answered while it lives, and a token that is over says so", async () => {
  const token = signed(header, claims)
  expect(await verifyToken(token, key, rules)).toEqual(claims)
  const later = { ...rules, at: new Date(at.getTime() + 60_000) }
  const over = await verifyToken(token, key, later).catch((error: unknown) => error)
  expect(over).toBeInstanceOf(errors.JWTExpired)
})

test.each<[string, object, unknown]>([
  ["another key", { ...header, kid: "two" }, claims],
  ["another algorithm", { ...header, alg: "ES256" }, claims],
  ["a key of its own", { ...header, jwk: { kty: "OKP" } }, claims],
  ["a type of another use", { ...header, typ: "at+jwt" }, claims],
  ["another audience", header, { ...claims, aud: ["outbox"] }],
  ["another issuer", header, { ...claims, iss: "https://b.test" }],
  ["no subject", header, { ...claims, sub: undefined }],
  ["a time that is none", header, { ...claims, exp: "tomorrow" }],
])("a token with %s is refused", async (_, head, body) => {
  const refused = await verifyToken(signed(head, body), key, rules).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(Error)
  expect(refused).not.toBeInstanceOf(errors.JWTExpired)
})
