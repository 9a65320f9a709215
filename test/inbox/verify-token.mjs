// What a server of a customer does with the token of a subscriber: `node verify-token.mjs KEY_SET ISSUER TOKEN`.
import { createRemoteJWKSet, jwtVerify } from "jose"

const [key_set, issuer, token] = process.argv.slice(2)
const rules = { issuer, audience: "inbox", algorithms: ["EdDSA"] }
try {
  const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(key_set)), rules)
  console.log(JSON.stringify(payload))
} catch (error) {
  console.log(JSON.stringify({ code: error.code }))
}
