import { and, eq } from "drizzle-orm"
import { fail } from "../../core/errors"
import type { AuthParts } from "../auth-parts"
import type { AuthEnvironment } from "../environments"
import { NAMED_PROVIDERS, type OAuthSetup } from "./providers/oauth-adapter"
import { oauthProviders } from "./tables"

export type OAuthProviderRow = typeof oauthProviders.$inferSelect

/** Throws 404 `not_found` where the environment has no such provider, or it is not enabled. */
export async function providerConfig(
  { store, secrets, settings }: Pick<AuthParts, "store" | "secrets" | "settings">,
  environment: Pick<AuthEnvironment, "id">,
  provider: string,
): Promise<OAuthSetup> {
  const own = and(
    eq(oauthProviders.environment_id, environment.id),
    eq(oauthProviders.provider, provider),
  )
  const [row] = await store.read.select().from(oauthProviders).where(own)
  if (!row?.enabled) return fail("not_found", "This provider is not set up.")
  const opened = (column: SealedColumn) => {
    const sealed = row[column]
    return sealed === null ? null : secrets.open(sealed, contextOf(row.id, column))
  }
  const named = NAMED_PROVIDERS.find((name) => name === provider)
  const endpoint = named ? settings[`auth.oauth.${named}.endpoint`] : null
  const { client_id, scopes, issuer, team_id, key_id } = row
  return {
    ...{ provider, client_id, scopes, issuer, team_id, key_id, endpoint },
    client_secret: opened("client_secret"),
    private_key: opened("private_key"),
    allow_private: named ? hostsOf(endpoint) : settings["auth.oauth.allow_private"],
  }
}

const hostsOf = (endpoint: string | null) => (endpoint === null ? [] : [new URL(endpoint).hostname])

type SealedColumn = "client_secret" | "private_key"

/** The context in which a secret of a provider is sealed. */
export const contextOf = (id: string, column: SealedColumn) => `oauth_providers:${id}:${column}`
