import { type KeyObject, sign } from "node:crypto"
import { decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify } from "jose"

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
  return `${head}.${sign(alg === "ES256" ? "sha256" : null, Buffer.from(head), key).toString("base64url")}`
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
    const { iss }: { iss?: unknown } = decodeJwt(token)
    const { kid }: { kid?: unknown } = decodeProtectedHeader(token)
    return typeof iss === "string" && typeof kid === "string" ? { iss, kid } : undefined
  } catch {
    return undefined
  }
}

/**
 * The claims of a token (RFC 7519) that this key signed with its own algorithm, by the rules of RFC 8725.
 * Throws for every other text. A token that is right in all but its age throws `JWTExpired` of jose.
 */
export async function verifyToken(
  token: string,
  { kid, public_key }: ProvingKey,
  { issuer, audience, type, claims, at }: TokenRules,
): Promise<JWTPayload> {
  if (!FORM.test(token)) throw new Error("The text is no token.")
  const { payload } = await jwtVerify(
    token,
    (header) => {
      const is_foreign = FOREIGN_KEYS.some((name) => Object.hasOwn(header, name))
      if (is_foreign || header.kid !== kid) throw new Error("The token names another key.")
      return public_key
    },
    {
      algorithms: [algorithmOf(public_key)],
      issuer,
      audience,
      typ: type,
      requiredClaims: [...claims, "iat", "exp"],
      currentDate: at,
    },
  )
  return payload
}
