import type { JWTPayload } from "jose"
import { provenClaims } from "./id-token"
import {
  type ExchangeAsked,
  notProven,
  type OAuthAdapter,
  type OAuthSetup,
  type ProvenAccount,
  type ProviderTokens,
  providerFault,
} from "./oauth-adapter"
import { documentBelow, type IssuerDocument, type IssuerKey } from "./openid-documents"
import { provenAccount } from "./proven-account"
import {
  type Asking,
  asking,
  askJson,
  errorIn,
  fieldsIn,
  textIn,
  tokenIn,
} from "./provider-request"

/** What one provider of OpenID Connect has for itself. */
interface OpenIdTraits {
  /** Where its discovery document is, and what the document calls itself. */
  base: (config: OAuthSetup) => string
  /** Where that is not the base. */
  issuer?: string
  scopes: string[]
  /** Of the authorization request. */
  parameters?: Record<string, string>
  /** Default: the issuer of the document alone. */
  issuersOf?: (document: IssuerDocument, claims: JWTPayload, key: IssuerKey | undefined) => string[]
  any_party?: boolean
  /** Default: the secret of the setup, in the way that the document asks for. */
  secretOf?: (config: OAuthSetup, document: IssuerDocument) => Promise<string>
  isVerified: (claims: Record<string, unknown>) => boolean
  /** What ID tokens leave out is asked at the userinfo endpoint. */
  asks_userinfo?: boolean
}

const byDocument = ({ issuer }: IssuerDocument) => [issuer]

/** The adapter of a provider that speaks OpenID Connect: with PKCE and a nonce, always. */
export function openIdAdapter(traits: OpenIdTraits): OAuthAdapter {
  const { any_party = false, issuersOf = byDocument } = traits
  const rules = { issuersOf, any_party }
  return {
    async authorizationUrl({ config, scopes, ...asked }) {
      const document = await documentOf(asking(config), traits)
      const [wanted = traits.scopes] = [scopes, config.scopes].filter((list) => list.length > 0)
      const url = new URL(document.authorization_endpoint)
      const { redirect_uri, state, nonce, code_challenge } = asked
      const parameters = {
        ...{ response_type: "code", client_id: config.client_id, redirect_uri },
        ...{ scope: [...new Set(["openid", ...wanted])].join(" "), state, nonce },
        ...{ code_challenge, code_challenge_method: "S256" },
        ...traits.parameters,
      }
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
      return url.href
    },
    async exchange(asked) {
      const signing_in = asking(asked.config)
      const document = await documentOf(signing_in, traits)
      requireNamed(document, asked.iss)
      const { id_token, ...provider_tokens } = await tokensOf(signing_in, document, traits, asked)
      const { nonce } = asked
      const { access_token } = provider_tokens
      const given = { id_token, nonce, access_token, is_direct: true }
      const claims = await provenClaims(signing_in, document, rules, given)
      const account = await accountOf(signing_in, document, traits, { claims, access_token })
      return { account, provider_tokens }
    },
    async proveIdToken({ config, id_token, nonce, access_token }) {
      const signing_in = asking(config)
      const document = await documentOf(signing_in, traits)
      const given = { id_token, nonce, access_token, is_direct: false }
      const claims = await provenClaims(signing_in, document, rules, given)
      return accountOf(signing_in, document, traits, { claims, access_token })
    },
  }
}

/** Throws 502 `provider_error`, also where the document is of another issuer than the one that was set up. */
async function documentOf(signing_in: Asking, { base, issuer }: OpenIdTraits) {
  const { config } = signing_in
  const known = base(config)
  const document = await documentBelow(signing_in, config.endpoint ?? known)
  // The operator's own address may call itself what it likes.
  if (config.endpoint === null && document.issuer !== (issuer ?? known))
    throw providerFault(config.provider, "issuer")
  return document
}

const TENANT = "{tenantid}"
const GUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/

/** Against mix-up (RFC 9207, section 2.4). Throws 401 `unauthorized`. */
function requireNamed({ issuer, names_itself }: IssuerDocument, iss: string | undefined): void {
  const told = issuer.includes(TENANT) ? iss?.replace(GUID, TENANT) : iss
  if (told === undefined ? names_itself : told !== issuer) throw notProven("iss")
}

async function tokensOf(
  signing_in: Asking,
  document: IssuerDocument,
  { secretOf }: OpenIdTraits,
  { config, code, code_verifier, redirect_uri }: ExchangeAsked,
): Promise<ProviderTokens & { id_token: string }> {
  const { provider, client_id } = config
  const secret = secretOf ? await secretOf(config, document) : config.client_secret
  const is_basic = secret !== null && document.client_auth.includes("client_secret_basic")
  const grant = { grant_type: "authorization_code", code, code_verifier, redirect_uri }
  const own = { client_id, ...(secret !== null && { client_secret: secret }) }
  const { status, json } = await askJson(signing_in, {
    url: document.token_endpoint,
    form: is_basic ? grant : { ...grant, ...own },
    ...(is_basic && { headers: { authorization: basicOf(client_id, secret) } }),
  })
  const told = fieldsIn(json)
  if (status >= 400 && told.error === "invalid_grant") throw notProven("code")
  const access_token = tokenIn(told.access_token)
  const id_token = tokenIn(told.id_token)
  if (status !== 200 || access_token === null || id_token === null)
    throw providerFault(provider, errorIn(told, status))
  return { id_token, access_token, expires_in: secondsIn(told), scope: textIn(told.scope) }
}

const secondsIn = ({ expires_in }: Record<string, unknown>) => {
  const seconds = Number(expires_in)
  return Number.isInteger(seconds) && seconds > 0 ? seconds : null
}

/** RFC 6749, section 2.3.1: both are encoded as in a form first. */
function basicOf(client_id: string, secret: string): string {
  const encoded = (text: string) => new URLSearchParams({ _: text }).toString().slice("_=".length)
  return `Basic ${Buffer.from(`${encoded(client_id)}:${encoded(secret)}`).toString("base64")}`
}

async function accountOf(
  signing_in: Asking,
  document: IssuerDocument,
  { isVerified, asks_userinfo = false }: OpenIdTraits,
  { claims, access_token }: { claims: JWTPayload; access_token: string | undefined },
): Promise<ProvenAccount> {
  const { userinfo_endpoint: url } = document
  const lacks = asks_userinfo && claims.email === undefined
  const more = lacks && url && access_token ? await userinfo(signing_in, url, access_token) : {}
  if (more.sub !== undefined && more.sub !== claims.sub) throw notProven("userinfo")
  const all = { ...more, ...claims }
  return provenAccount(signing_in.config.provider, {
    ...{ id: claims.sub, email: all.email, name: all.name, picture: all.picture },
    is_verified: isVerified(all),
  })
}

/** Nothing where the token may not ask. The answer must be of the same `sub` (OpenID Connect Core 1.0, 5.3.2). */
async function userinfo(signing_in: Asking, url: string, access_token: string) {
  if (tokenIn(access_token) === null) throw notProven("access_token")
  const headers = { authorization: `Bearer ${access_token}` }
  const { status, json } = await askJson(signing_in, { url, headers })
  const told = fieldsIn(json)
  return status === 200 && textIn(told.sub) !== null ? told : {}
}
