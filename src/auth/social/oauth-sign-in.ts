import type { Static } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import type { Reader } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import type { AuthEnvironment } from "../environments"
import { requireMethod } from "../methods"
import type { SignInAnswer } from "../schemas"
import type { UserClient } from "../sign-in"
import { signInByAccount } from "./account-sign-in"
import { adapterOf } from "./oauth-adapters"
import { type CodeShown, takeFlow } from "./oauth-flows"
import { callbackUrl, providerConfig } from "./oauth-providers"
import type { ProviderTokens } from "./providers/oauth-adapter"
import { oauthProviders } from "./tables"

type Answer = Static<typeof SignInAnswer>

/**
 * Signs in with the code of a redirect. The provider is asked here, once and outside of every transaction, and what it
 * gives is told and never stored. Throws 401 `unauthorized`, 404, 409 `conflict`, 502 `provider_error`.
 */
export async function exchangeCode(
  parts: AuthParts,
  environment: AuthEnvironment,
  provider: string,
  shown: CodeShown,
  client: UserClient,
): Promise<Answer & { provider_tokens: ProviderTokens }> {
  requireMethod(environment, "oauth")
  const config = await providerConfig(parts, environment, provider)
  const { user_id, session_id, ...asked } = await takeFlow(parts, environment, provider, shown)
  const redirect_uri = callbackUrl(parts.base_url(), provider)
  const proven = await adapterOf(provider).exchange({ config, redirect_uri, ...asked })
  const { account, provider_tokens } = proven
  const told = { provider, account, client, user_id, session_id }
  const answer = await parts.store.tx((tx) => signInByAccount(tx, parts, environment, told))
  return { ...answer, provider_tokens }
}

/** What an app that signed in by itself shows. */
export interface IdTokenShown {
  id_token: string
  nonce?: string | undefined
  access_token?: string | undefined
}

/** Signs in with an id token that the app got from the provider itself. Throws as `exchangeCode`. */
export async function signInByIdToken(
  parts: AuthParts,
  environment: AuthEnvironment,
  provider: string,
  { id_token, nonce, access_token }: IdTokenShown,
  client: UserClient,
): Promise<Answer> {
  requireMethod(environment, "oauth")
  const config = await providerConfig(parts, environment, provider)
  const asked = { config, id_token, nonce, access_token }
  const account = await adapterOf(provider).proveIdToken(asked)
  const told = { provider, account, client, user_id: null }
  return parts.store.tx((tx) => signInByAccount(tx, parts, environment, told))
}

const NAMES: Record<string, string> = {
  google: "Google",
  apple: "Apple",
  github: "GitHub",
  microsoft: "Microsoft",
}

/** The providers by which users can sign in now, in the order of their words. */
export async function offeredProviders(
  db: Reader,
  { id, project_id, settings }: AuthEnvironment,
): Promise<{ provider: string; name: string }[]> {
  if (!settings.methods.oauth) return []
  const { environment_id, enabled, provider } = oauthProviders
  const own = and(eq(oauthProviders.project_id, project_id), eq(environment_id, id))
  const rows = await db
    .select({ provider })
    .from(oauthProviders)
    .where(and(own, eq(enabled, true)))
    .orderBy(provider)
  return rows.map((row) => ({ ...row, name: NAMES[row.provider] ?? row.provider.slice(5) }))
}
