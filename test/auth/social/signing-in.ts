import { expect } from "bun:test"
import { createHash, randomBytes } from "node:crypto"
import { adapterOf } from "../../../src/auth/social/oauth-adapters"
import type { OAuthSetup } from "../../../src/auth/social/providers/oauth-adapter"
import { type FakeSetup, type Person, signInAt } from "../../fakes/code-grants"

export const ANN: Person = { id: "4711", email: "ann@example.com", is_verified: true, name: "Ann" }

export const redirect_uri = "http://127.0.0.1:9/v1/auth/oauth/any/callback"

/** What an environment set up, and where the operator lets the provider be. */
export const setupOf = (provider: string, own: FakeSetup, url: string): OAuthSetup => ({
  ...{ provider, scopes: [], client_secret: null },
  ...{ team_id: null, key_id: null, private_key: null },
  ...own,
  issuer: provider.startsWith("oidc-") ? url : null,
  endpoint: provider.startsWith("oidc-") ? null : url,
  allow_private: ["127.0.0.1"],
})

interface Start {
  config: OAuthSetup
  signIn?: (url: string) => Promise<Record<string, string>>
}

/** The way to a provider and back, with fresh secrets of the flow. */
export async function begun({ config, signIn = signInAt }: Start) {
  const code_verifier = randomBytes(32).toString("base64url")
  const [state, nonce] = [randomBytes(8).toString("hex"), randomBytes(8).toString("hex")]
  const code_challenge = createHash("sha256").update(code_verifier).digest("base64url")
  const adapter = adapterOf(config.provider)
  const asked = { config, redirect_uri, state, nonce, code_challenge, scopes: [] }
  const back = await signIn(await adapter.authorizationUrl(asked))
  expect(back.state).toBe(state)
  const { code = "", iss } = back
  const exchange = (own: object = {}) =>
    adapter.exchange({ config, redirect_uri, code, code_verifier, nonce, iss, ...own })
  return { adapter, exchange }
}

export const signIn = async (start: Start, own: object = {}) => (await begun(start)).exchange(own)

export const refused = (reason: string) => ({ code: "unauthorized", details: { reason } })
export const faulty = (reason: string) => ({ code: "provider_error", details: { reason } })
