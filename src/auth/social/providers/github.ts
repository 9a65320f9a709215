import {
  type ExchangeAsked,
  notProven,
  type OAuthAdapter,
  type OAuthSetup,
  type ProviderTokens,
  providerFault,
} from "./oauth-adapter"
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

const SCOPES = ["read:user", "user:email"]

const placesOf = ({ endpoint }: OAuthSetup) => ({
  issuer: `${endpoint ?? "https://github.com"}/login/oauth`,
  api: endpoint ?? "https://api.github.com",
})

/** OAuth 2.0 without OpenID Connect: the API of GitHub names the account. */
export const github: OAuthAdapter = {
  async authorizationUrl({ config, redirect_uri, state, code_challenge, scopes }) {
    const [wanted = SCOPES] = [scopes, config.scopes].filter((list) => list.length > 0)
    const url = new URL(`${placesOf(config).issuer}/authorize`)
    const { client_id } = config
    const asked = { client_id, redirect_uri, scope: wanted.join(" "), state, code_challenge }
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
    url.searchParams.set("code_challenge_method", "S256")
    return url.href
  },
  async exchange(asked) {
    const { config, iss } = asked
    const { issuer, api } = placesOf(config)
    if (iss !== undefined && iss !== issuer) throw notProven("iss")
    const signing_in = asking(config)
    const provider_tokens = await tokensOf(signing_in, `${issuer}/access_token`, asked)
    const account = await accountOf(signing_in, api, provider_tokens.access_token)
    return { account, provider_tokens }
  },
  proveIdToken: () => Promise.reject(notProven("no_id_tokens")),
}

/** Its errors have the status 200. */
async function tokensOf(
  signing_in: Asking,
  url: string,
  { config, code, code_verifier, redirect_uri }: ExchangeAsked,
): Promise<ProviderTokens> {
  const { client_id, client_secret } = config
  const form = { client_id, client_secret: client_secret ?? "", code, code_verifier, redirect_uri }
  const { status, json } = await askJson(signing_in, { url, form })
  const told = fieldsIn(json)
  if (told.error === "bad_verification_code") throw notProven("code")
  const access_token = tokenIn(told.access_token)
  if (status !== 200 || access_token === null)
    throw providerFault(config.provider, errorIn(told, status))
  return { access_token, expires_in: null, scope: textIn(told.scope) }
}

async function accountOf(signing_in: Asking, api: string, access_token: string) {
  const { provider } = signing_in.config
  const authorization = `Bearer ${access_token}`
  const headers = { accept: "application/vnd.github+json", authorization }
  const user = await askJson(signing_in, { url: `${api}/user`, headers })
  const { id, login, name, avatar_url } = fieldsIn(user.json)
  if (user.status !== 200 || !Number.isSafeInteger(id)) throw providerFault(provider, "no_user")
  // Without the scope for it the list of addresses is refused.
  const emails = await askJson(signing_in, { url: `${api}/user/emails`, headers })
  const list: unknown[] = emails.status === 200 && Array.isArray(emails.json) ? emails.json : []
  const primary = list.map(fieldsIn).find((one) => one.primary === true)
  return provenAccount(provider, {
    ...{ id: String(id), email: primary?.email, name: name ?? login, picture: avatar_url },
    is_verified: primary?.verified === true,
  })
}
