import { createLocalJWKSet, type JWK, type JWTVerifyGetKey } from "jose"
import { assertPublic, NetError } from "../../../core/net"
import { millis, monotonic } from "../../../core/time"
import { providerFault } from "./oauth-adapter"
import { type Asking, askJson, fieldsIn, textIn } from "./provider-request"

/** What an issuer tells of itself (OpenID Connect Discovery 1.0, section 3). */
export interface IssuerDocument {
  issuer: string
  authorization_endpoint: string
  token_endpoint: string
  jwks_uri: string
  userinfo_endpoint: string | null
  /** How clients prove themselves at the token endpoint. */
  client_auth: unknown[]
  /** Each redirect of it names it (RFC 9207, section 3). */
  names_itself: boolean
}

/** The keys of an issuer, and the function by which `jose` finds the one of a token. */
export interface IssuerKeys {
  select: JWTVerifyGetKey
  list: IssuerKey[]
}

/** Microsoft says of each key which issuer it is for. */
export type IssuerKey = JWK & { issuer?: string }

const DOCUMENT_MS = 3_600_000
const KEYS_MS = 600_000
const MOST_KEPT = 500
const MOST_KEY_BYTES = 262_144
const MOST_KEYS = 50
/** A token may name a key that is new. Anybody can make one that does. */
const RELOAD_MS = 30_000

interface Kept<Value> {
  value: Promise<Value>
  until: number
}

interface KeptKeys extends Kept<IssuerKeys> {
  /** What came, or comes, when a token asked for more than these. */
  newer?: { value: Promise<IssuerKeys>; at: number }
}

const documents = new Map<string, Kept<IssuerDocument>>()
const key_sets = new Map<string, KeptKeys>()

/** What one setup may not ask is not answered to it from what another one asked. */
const nameOf = ({ config }: Asking, url: string) => `${config.allow_private.join()} ${url}`

function keep<Entry extends Kept<unknown>>(kept: Map<string, Entry>, name: string, entry: Entry) {
  kept.delete(name)
  const [oldest] = kept.size >= MOST_KEPT ? kept.keys() : []
  if (oldest !== undefined) kept.delete(oldest)
  kept.set(name, entry)
  entry.value.catch(() => {
    if (kept.get(name) === entry) kept.delete(name)
  })
}

/** The discovery document below that address. The caller checks its issuer. Throws 502 `provider_error`. */
export function documentBelow(asking: Asking, base: string): Promise<IssuerDocument> {
  const url = `${base.replace(/\/$/, "")}/.well-known/openid-configuration`
  const name = nameOf(asking, url)
  const known = documents.get(name)
  if (known && millis() < known.until) return known.value
  const value = loadDocument(asking, url)
  keep(documents, name, { value, until: millis() + DOCUMENT_MS })
  return value
}

async function loadDocument(asking: Asking, url: string): Promise<IssuerDocument> {
  const { provider } = asking.config
  const { status, json } = await askJson(asking, { url })
  const told = fieldsIn(json)
  const required = (name: string): string => {
    const value = textIn(told[name])
    if (status !== 200 || value === null) throw providerFault(provider, `no_${name}`)
    return value
  }
  const { token_endpoint_auth_methods_supported: client_auth } = told
  const document = {
    issuer: required("issuer"),
    authorization_endpoint: required("authorization_endpoint"),
    token_endpoint: required("token_endpoint"),
    jwks_uri: required("jwks_uri"),
    userinfo_endpoint: textIn(told.userinfo_endpoint),
    client_auth: Array.isArray(client_auth) ? client_auth : ["client_secret_basic"],
    names_itself: told.authorization_response_iss_parameter_supported === true,
  }
  await requireOutside(asking, document.authorization_endpoint)
  return document
}

/** Browsers are sent there: neither to a script, nor into a network where only they are. */
async function requireOutside({ config, until }: Asking, url: string): Promise<void> {
  const { provider, allow_private } = config
  const signal = AbortSignal.timeout(Math.max(1, Math.round(until - monotonic())))
  await assertPublic(url, { allow_private, tls_outside: true }, signal).catch((error) => {
    if (error instanceof NetError) throw providerFault(provider, error.kind)
    throw error
  })
}

/** Throws 502 `provider_error`. */
export function keysOf(asking: Asking, jwks_uri: string): Promise<IssuerKeys> {
  const name = nameOf(asking, jwks_uri)
  const known = key_sets.get(name)
  if (known && millis() < known.until) return known.value
  const value = readKeys(asking, jwks_uri)
  keep(key_sets, name, { value, until: millis() + KEYS_MS })
  return value
}

/** The keys anew, for a token that none of them fits: anybody makes such tokens, so not at once again. */
export function newerKeys(asking: Asking, jwks_uri: string): Promise<IssuerKeys> {
  const name = nameOf(asking, jwks_uri)
  const known = key_sets.get(name)
  if (known?.newer && millis() - known.newer.at < RELOAD_MS) return known.newer.value
  const newer = { value: readKeys(asking, jwks_uri), at: millis() }
  if (known) known.newer = newer
  const entry = { value: newer.value, until: millis() + KEYS_MS, newer }
  // Until then, and where they cannot be had, the keys before are the ones.
  newer.value.then(
    () => keep(key_sets, name, entry),
    () => {},
  )
  return newer.value
}

async function readKeys(asking: Asking, url: string): Promise<IssuerKeys> {
  const { provider } = asking.config
  const { status, json } = await askJson(asking, { url, most_bytes: MOST_KEY_BYTES })
  const { keys } = fieldsIn(json)
  if (status !== 200 || !Array.isArray(keys)) throw providerFault(provider, "no_keys")
  const list = keys.slice(0, MOST_KEYS).map(publicPart).filter(isUsable)
  return { list, select: createLocalJWKSet({ keys: list }) }
}

/** Certificates and all else that nobody reads are left out. */
function publicPart(key: unknown): IssuerKey {
  const { kty, kid, alg, use, crv, n, e, x, y, issuer } = fieldsIn(key)
  const told = { kty, kid, alg, use, crv, n, e, x, y, issuer }
  return Object.fromEntries(Object.entries(told).filter(([, value]) => typeof value === "string"))
}

/** Of an asymmetric kind, and no longer than 8192 bits: longer ones take seconds to calculate with. */
const isUsable = ({ kty = "", n = "", e = "" }: JWK) =>
  ["RSA", "EC", "OKP"].includes(kty) && n.length <= 1400 && e.length <= 8
