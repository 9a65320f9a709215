import { type KeyObject, sign, verify } from "node:crypto"
import { errors, type JWTPayload } from "jose"

/** A compact token (RFC 7515, section 7.1), also where its signature is absent. */
const FORM = /^[\w-]+\.[\w-]+\.[\w-]*$/

/** Headers that would let the token itself say which key proves it. */
const FOREIGN_KEYS = ["jku", "jwk", "x5u", "x5c", "crit"]

/** The key that a token has to be signed with. */
export interface ProvingKey {
  kid: string
  public_key: KeyObject
}

/** The key that signs a token. */
export interface TokenSigner {
  kid: string
  private_key: KeyObject
}

/** The key alone decides: Ed25519 keys sign with EdDSA, and the others, which are of P-256, with ES256. */
const algorithmOf = ({ asymmetricKeyType }: KeyObject) =>
  asymmetricKeyType === "ed25519" ? "EdDSA" : "ES256"

/** Ed25519 has its own. */
const digestOf = (alg: "EdDSA" | "ES256") => (alg === "ES256" ? "sha256" : null)

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url")

/**
 * A compact token with these claims (RFC 7519). It is synchronous, for transactions, which wait for
 * nothing but themselves: hence without `jose`.
 */
export function signToken(
  { kid, private_key }: TokenSigner,
  type: string,
  claims: JWTPayload,
): string {
  const alg = algorithmOf(private_key)
  const head = `${encode({ alg, typ: type, kid })}.${encode(claims)}`
  const key = { key: private_key, dsaEncoding: "ieee-p1363" } as const // RFC 7518, section 3.4
  return `${head}.${sign(digestOf(alg), Buffer.from(head), key).toString("base64url")}`
}

/** What a token must say, beside a signature that is right. */
interface TokenRules {
  issuer: string
  audience: string
  /** The header `typ`. */
  type: string
  /** Claims that must be there. */
  claims: string[]
  at: Date
}

/** What a token says of itself, without any proof; undefined for a text that is no token. */
export function unprovenParts(token: string): { iss: string; kid: string } | undefined {
  if (!FORM.test(token)) return undefined
  try {
    const [head = "", body = ""] = token.split(".")
    const { iss } = decoded(body)
    const { kid } = decoded(head)
    return typeof iss === "string" && typeof kid === "string" ? { iss, kid } : undefined
  } catch {
    return undefined
  }
}

/**
 * The claims of a token (RFC 7519) that this key signed with its own algorithm, by the rules of RFC 8725.
 * Throws for every other text. A token that is right in all but its age throws `JWTExpired` of jose. The signature
 * is proven on this thread: the others may be at work on passwords, and a request would wait for those.
 */
export async function verifyToken(
  token: string,
  { kid, public_key }: ProvingKey,
  { issuer, audience, type, claims, at }: TokenRules,
): Promise<JWTPayload> {
  if (!FORM.test(token)) throw new Error("The text is no token.")
  const [head = "", body = "", signature = ""] = token.split(".")
  const header = decoded(head)
  const alg = algorithmOf(public_key)
  const is_foreign = FOREIGN_KEYS.some((name) => Object.hasOwn(header, name))
  if (is_foreign || header.kid !== kid || header.alg !== alg || header.typ !== type)
    throw new Error("The header names another key, algorithm or type.")
  const key = { key: public_key, dsaEncoding: "ieee-p1363" } as const
  const text = Buffer.from(`${head}.${body}`)
  if (!verify(digestOf(alg), text, key, Buffer.from(signature, "base64url")))
    throw new Error("The signature is not of this key.")

  const payload: JWTPayload = decoded(body)
  const { iss, aud, iat, exp, nbf = 0 } = payload
  const second = Math.floor(at.getTime() / 1000)
  const is_for_us = [aud].flat().includes(audience)
  if (iss !== issuer || !is_for_us || claims.some((name) => !Object.hasOwn(payload, name)))
    throw new Error("The token is of somebody else, for somebody else, or lacks a claim.")
  if (typeof iat !== "number" || typeof exp !== "number" || !(nbf <= second))
    throw new Error("A time is no number, or the token is not valid yet.")
  if (exp <= second)
    throw new errors.JWTExpired("The token is over.", payload, "exp", "check_failed")
  return payload
}

function decoded(part: string): Record<string, unknown> {
  const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString())
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error("A part of the token is no object.")
  return value as Record<string, unknown>
}
