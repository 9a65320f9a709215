// The npm package `oidc-provider` under Node, for one client: client_id, client_secret and redirect_uri. It writes its
// address to stdout. A line on stdin rotates its keys. Everybody signs in with the name that they give.
import { generateKeyPairSync, randomUUID } from "node:crypto"
import { createServer } from "node:http"
import { createInterface } from "node:readline"
import Provider from "oidc-provider"

const [client_id, client_secret, redirect_uri] = process.argv.slice(2)

function newKeys() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
  const jwk = privateKey.export({ format: "jwk" })
  return { keys: [{ ...jwk, kid: randomUUID(), alg: "RS256", use: "sig" }] }
}

const claimsOf = (sub) => ({ sub, email: `${sub}@oidc.test`, email_verified: true, name: sub })

const provider = (issuer) =>
  new Provider(issuer, {
    clients: [{ client_id, client_secret, redirect_uris: [redirect_uri] }],
    jwks: newKeys(),
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => claimsOf(sub) }),
    features: { devInteractions: { enabled: true } },
    pkce: { required: () => true },
    cookies: { keys: ["of the test"] },
  }).callback()

let handle
const server = createServer((request, response) => handle(request, response))
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  handle = provider(issuer)
  console.log(issuer)
  createInterface({ input: process.stdin })
    .on("line", (line) => {
      handle = provider(issuer)
      console.log(`rotated ${line}`)
    })
    .on("close", () => process.exit(0))
})
