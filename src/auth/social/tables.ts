import {
  bool,
  bytewiseText,
  id,
  index,
  json,
  key,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../../store/columns"
import { life } from "../../store/life"

/** Finds a user by an account elsewhere. The user's row shows the same. */
export const userIdentities = table(
  "user_identities",
  {
    id: id(),
    project_id: ref().notNull(),
    environment_id: ref().notNull(),
    user_id: ref().notNull(),
    provider: text().notNull(),
    provider_user_id: bytewiseText().notNull(),
  },
  (identity) => [
    uniqueIndex("user_identities_by_account").on(
      identity.environment_id,
      identity.provider,
      identity.provider_user_id,
    ),
    index("user_identities_by_user").on(identity.user_id),
    index("user_identities_by_project").on(identity.project_id, identity.id),
  ],
)
life(userIdentities, { owner: "project", ends: "with row", names: { user_id: "users" } })

/** A service of an environment by which users sign in with an account elsewhere. */
export const oauthProviders = table(
  "oauth_providers",
  {
    id: id(),
    project_id: ref().notNull(),
    application_id: ref().notNull(),
    environment_id: ref().notNull(),
    /** `google`, `apple`, `github`, `microsoft`, or `oidc-<name>`. */
    provider: text().notNull(),
    client_id: text().notNull(),
    /** Sealed. */
    client_secret: text(),
    scopes: json<string[]>().notNull(),
    enabled: bool().notNull(),
    issuer: text(),
    /** Of `apple`, with which this server signs a client secret. The key is sealed. */
    team_id: text(),
    key_id: text(),
    private_key: text(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (provider) => [
    uniqueIndex("oauth_providers_by_name").on(provider.environment_id, provider.provider),
    index("oauth_providers_by_application").on(provider.application_id, provider.id),
    index("oauth_providers_by_project").on(provider.project_id, provider.id),
  ],
)
life(oauthProviders, {
  owner: "project",
  ends: "never",
  names: { environment_id: "auth_environments" },
  sealed: {
    client_secret: {
      what: "secrets of social sign-in",
      remedy: "`belfry applications oauth set ID PROVIDER` with the secret",
      drop: "value",
    },
    private_key: {
      what: "keys of social sign-in",
      remedy: "`belfry applications oauth set ID PROVIDER` with the key",
      drop: "value",
    },
  },
})

/** A sign-in at a provider, from its start to the exchange of its code. */
export const oauthFlows = table(
  "oauth_flows",
  {
    id: id(),
    project_id: ref().notNull(),
    environment_id: ref().notNull(),
    provider: text().notNull(),
    /** The signed-in user that links an account. */
    user_id: ref(),
    redirect_url: text().notNull(),
    /** Of the application, which gets it back. */
    client_state: text(),
    code_challenge: text(),
    /** Of the cookie that binds it to the browser. */
    cookie_hash: text(),
    /** Towards the provider (RFC 7636, OpenID Connect Core 1.0 section 3.1.2.1). Sealed together. */
    secrets: text(),
    /** The code of the redirect to the application, and until when it works. */
    code_hash: text(),
    code_expires_at: time(),
    used_at: time(),
    created_at: time().notNull(),
    expires_at: time().notNull(),
  },
  (flow) => [
    index("oauth_flows_by_code").on(flow.code_hash),
    index("oauth_flows_by_user").on(flow.user_id),
    index("oauth_flows_by_expiry").on(flow.expires_at),
    index("oauth_flows_by_project").on(flow.project_id, flow.id),
  ],
)
life(oauthFlows, {
  owner: "project",
  ends: "after minutes",
  sealed: {
    secrets: {
      what: "sign-ins at providers that are under way",
      remedy: "nothing; these people begin again",
      drop: "row",
    },
  },
})

export const GAMING_PROVIDERS = ["game-center", "play-games"] as const

export type GamingProvider = (typeof GAMING_PROVIDERS)[number]

/** A platform of games whose players sign in to an environment. */
export const gamingProviders = table(
  "gaming_providers",
  {
    id: id(),
    project_id: ref().notNull(),
    application_id: ref().notNull(),
    environment_id: ref().notNull(),
    provider: text<GamingProvider>().notNull(),
    enabled: bool().notNull(),
    /** Of `game-center`. */
    bundle_ids: json<string[]>().notNull(),
    team_id: text(),
    /** Of `play-games`. The secret is sealed. */
    client_id: text(),
    client_secret: text(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (provider) => [
    uniqueIndex("gaming_providers_by_name").on(provider.environment_id, provider.provider),
    index("gaming_providers_by_application").on(provider.application_id, provider.id),
    index("gaming_providers_by_project").on(provider.project_id, provider.id),
  ],
)
life(gamingProviders, {
  owner: "project",
  ends: "never",
  names: { environment_id: "auth_environments" },
  sealed: {
    client_secret: {
      what: "secrets of gaming platforms",
      remedy: "`belfry applications gaming set ID play-games` with the secret",
      drop: "value",
    },
  },
})

/** Assertions of players that were taken: each works once. */
export const usedAssertions = table(
  "used_assertions",
  {
    /** Over the environment, the provider and the signature or code. */
    hash: key(),
    project_id: ref().notNull(),
    expires_at: time().notNull(),
  },
  (assertion) => [
    index("used_assertions_by_expiry").on(assertion.expires_at),
    index("used_assertions_by_project").on(assertion.project_id, assertion.hash),
  ],
)
life(usedAssertions, { owner: "project", ends: "after minutes" })
