import { exportJWK, generateKeyPair } from "jose"
import { Provider } from "oidc-provider"

// Runs under Node: `node openid-provider.mjs '{"port", "client_id", "client_secret", "redirect_uri"}'`.
// Each start has a new key.
const { port, ...client } = JSON.parse(process.argv[2])
const { privateKey } = await generateKeyPair("ES256", { extractable: true })
const key = { ...(await exportJWK(privateKey)), kid: crypto.randomUUID(), alg: "ES256", use: "sig" }

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: client.client_id,
      client_secret: client.client_secret,
      redirect_uris: [client.redirect_uri],
      id_token_signed_response_alg: "ES256",
    },
  ],
  jwks: { keys: [key] },
  cookies: { keys: ["of a test"] },
  pkce: { required: () => true },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@people.test`, email_verified: true, name: id }),
  }),
})
provider.listen(port, "127.0.0.1", () => process.stdout.write("ready\n"))
