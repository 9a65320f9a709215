import { createHash } from "node:crypto"
import { errors, type JWTPayload, type JWTVerifyResult, jwtVerify } from "jose"
import { millis } from "../../../core/time"
import { notProven, providerFault } from "./oauth-adapter"
import { type IssuerDocument, type IssuerKey, keysOf, newerKeys } from "./openid-documents"
import type { Asking } from "./provider-request"

/** Never `none`, and no MAC: its key would be a text that others know. */
const ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]
const TOLERANCE_SECONDS = 60
const OLDEST = "1 day"

interface TokenRules {
  /** The issuers that a token of the document may name, which its key is for. */
  issuersOf: (document: IssuerDocument, claims: JWTPayload, key: IssuerKey | undefined) => string[]
  /** Another party of the same owner may have asked for a token that is for this client alone. */
  any_party?: boolean
}

interface GivenToken {
  id_token: string
  nonce?: string | undefined
  access_token?: string | undefined
  /** The access token came with it from the provider itself, so its hash may be absent. */
  is_direct: boolean
}

/**
 * The claims of an ID token, each checked (OpenID Connect Core 1.0, section 3.1.3.7). Throws 401 `unauthorized`, 502
 * `provider_error` where the keys cannot be had.
 */
export async function provenClaims(
  asking: Asking,
  document: IssuerDocument,
  rules: TokenRules,
  { id_token, nonce, access_token, is_direct }: GivenToken,
): Promise<JWTPayload> {
  const { payload, protectedHeader, key } = await verified(asking, document, id_token)
  const { client_id } = asking.config
  const { iss, aud, azp, at_hash } = payload
  if (!rules.issuersOf(document, payload, key).includes(String(iss))) throw notProven("iss")
  const is_shared = Array.isArray(aud) && aud.length > 1
  const is_ours = azp === client_id || (azp === undefined && !is_shared)
  if (!is_ours && !(rules.any_party && !is_shared)) throw notProven("azp")
  if (nonce !== undefined && payload.nonce !== nonce) throw notProven("nonce")
  const hash = access_token === undefined ? undefined : hashOf(protectedHeader.alg, access_token)
  const is_bare = at_hash === undefined && is_direct
  if (hash !== undefined && at_hash !== hash && !is_bare) throw notProven("at_hash")
  return payload
}

/** The left half of the digest of the token's own algorithm (OpenID Connect Core 1.0, section 3.1.3.6). */
function hashOf(alg: string, access_token: string): string {
  const digest = createHash(alg === "EdDSA" ? "sha512" : "sha256")
    .update(access_token)
    .digest()
  return digest.subarray(0, digest.length / 2).toString("base64url")
}

async function verified(asking: Asking, { jwks_uri }: IssuerDocument, id_token: string) {
  const checks = {
    algorithms: ALGORITHMS,
    audience: asking.config.client_id,
    requiredClaims: ["iss", "sub", "exp", "iat"],
    maxTokenAge: OLDEST,
    clockTolerance: TOLERANCE_SECONDS,
    currentDate: new Date(millis()),
  }
  let keys = await keysOf(asking, jwks_uri)
  let result: JWTVerifyResult
  try {
    result = await jwtVerify(id_token, keys.select, checks).catch(async (error) => {
      if (!isUnknownKey(error)) throw error
      keys = await newerKeys(asking, jwks_uri)
      return jwtVerify(id_token, keys.select, checks)
    })
  } catch (error) {
    throw refusalOf(asking, error)
  }
  const { typ = "JWT", kid } = result.protectedHeader
  // Other tokens of the same issuer (RFC 9068, logout) are no proof of a sign-in.
  if (typ.toUpperCase() !== "JWT") throw notProven("typ")
  const { sub } = result.payload
  if (typeof sub !== "string" || sub === "") throw notProven("sub")
  return { ...result, key: keys.list.find((one) => one.kid === kid) }
}

const isUnknownKey = (error: unknown) => error instanceof errors.JWKSNoMatchingKey

function refusalOf({ config }: Asking, error: unknown): unknown {
  if (error instanceof errors.JWTExpired) return notProven("exp")
  if (error instanceof errors.JWTClaimValidationFailed) return notProven(error.claim)
  if (error instanceof errors.JOSEError) return notProven("signature")
  // A key of the issuer that is none, or that is too short.
  if (error instanceof TypeError || error instanceof DOMException)
    return providerFault(config.provider, "no_keys")
  return error
}
