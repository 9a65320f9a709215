import type { OAuthAdapter } from "./providers/oauth-adapter"

/** The adapter of a provider that `providerConfig` found. */
export const adapterOf = (provider: string): OAuthAdapter => {
  throw new Error(`${provider} has no adapter yet`)
}
