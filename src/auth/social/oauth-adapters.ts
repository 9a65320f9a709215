import { apple } from "./providers/apple"
import { github } from "./providers/github"
import { google } from "./providers/google"
import { microsoft } from "./providers/microsoft"
import { NAMED_PROVIDERS, type NamedProvider, type OAuthAdapter } from "./providers/oauth-adapter"
import { oidc } from "./providers/oidc"

const NAMED: Record<NamedProvider, OAuthAdapter> = { google, apple, github, microsoft }

/** The adapter of a provider that `providerConfig` found. */
export function adapterOf(provider: string): OAuthAdapter {
  const named = NAMED_PROVIDERS.find((name) => name === provider)
  return named ? NAMED[named] : oidc
}
