import { ApiError } from "../../../core/errors"

export const NAMED_PROVIDERS = ["google", "apple", "github", "microsoft"] as const

export type NamedProvider = (typeof NAMED_PROVIDERS)[number]

/** What an environment set up at a provider, with opened secrets, and where the instance finds the provider. */
export interface OAuthSetup {
  /** One of the named, or `oidc-<name>`. */
  provider: string
  client_id: string
  client_secret: string | null
  /** Empty: those of the adapter. */
  scopes: string[]
  /** Of `oidc-<name>`. */
  issuer: string | null
  /** Of `apple`, which takes a secret that is signed with this key. */
  team_id: string | null
  key_id: string | null
  private_key: string | null
  /** In place of the provider's own address (`auth.oauth.<name>.endpoint`). */
  endpoint: string | null
  /** Private networks, addresses and hosts where the operator lets it be. */
  allow_private: string[]
}

/** An account elsewhere, as the provider proved it. */
export interface ProvenAccount {
  provider_user_id: string
  email: string | null
  /** The provider itself proved it; a claim that anybody can set does not count. */
  email_verified: boolean
  name: string | null
  avatar_url: string | null
}

/** Of the provider: shown once to the application, and never stored. */
export interface ProviderTokens {
  access_token: string
  /** Seconds; null where the provider tells none. */
  expires_in: number | null
  scope: string | null
}

export interface AuthorizationAsked {
  config: OAuthSetup
  redirect_uri: string
  state: string
  nonce: string
  /** S256 (RFC 7636). */
  code_challenge: string
  /** Empty: those of the configuration. */
  scopes: string[]
}

export interface ExchangeAsked {
  config: OAuthSetup
  redirect_uri: string
  code: string
  code_verifier: string
  nonce: string
  /** The parameter of the redirect (RFC 9207). */
  iss?: string | undefined
}

export interface IdTokenAsked {
  config: OAuthSetup
  id_token: string
  /** What the application made for the sign-in. A token with another nonce is refused, and without one asked for, any passes. */
  nonce?: string | undefined
  /** Of the same sign-in: then the token's `at_hash` must fit. */
  access_token?: string | undefined
}

/**
 * How users sign in at one provider. All but the first prove an account; none stores anything. They throw 401
 * `unauthorized` for a code or token that is not right, 502 `provider_error` where the provider fails.
 */
export interface OAuthAdapter {
  /** Where the browser is sent. Throws 502 `provider_error`. */
  authorizationUrl(asked: AuthorizationAsked): Promise<string>
  exchange(
    asked: ExchangeAsked,
  ): Promise<{ account: ProvenAccount; provider_tokens: ProviderTokens }>
  proveIdToken(asked: IdTokenAsked): Promise<ProvenAccount>
}

/** `reason` is for the developer of the application; it says nothing of the token's content. */
export const notProven = (reason: string) =>
  new ApiError("unauthorized", "The provider's code or token is not valid.", { reason })

export const providerFault = (provider: string, reason: string) =>
  new ApiError("provider_error", `The provider ${provider} did not answer as it should.`, {
    reason,
  })
