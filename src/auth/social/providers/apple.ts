import { SignJWT } from "jose"
import { millis } from "../../../core/time"
import { privateKey } from "../../../push/providers/vendor"
import { type OAuthSetup, providerFault } from "./oauth-adapter"
import { openIdAdapter } from "./openid-connect"
import type { IssuerDocument } from "./openid-documents"

const SECRET_SECONDS = 300

/** Apple answers with a form, which names the person the first time alone; its ID tokens have no name. */
export const apple = openIdAdapter({
  base: () => "https://appleid.apple.com",
  scopes: ["openid", "email", "name"],
  parameters: { response_mode: "form_post" },
  secretOf,
  isVerified: ({ email_verified }) => email_verified === true || email_verified === "true",
})

/** In place of a secret Apple takes a token that the developer's key signed. */
async function secretOf(
  { provider, client_id, team_id, key_id, private_key }: OAuthSetup,
  { issuer }: IssuerDocument,
): Promise<string> {
  const key = private_key === null ? undefined : privateKey(private_key, "ec")
  if (!key || !team_id || !key_id) throw providerFault(provider, "private_key_missing")
  const issued = Math.floor(millis() / 1000)
  return new SignJWT({})
    .setProtectedHeader({ alg: "ES256", kid: key_id })
    .setIssuer(team_id)
    .setSubject(client_id)
    .setAudience(issuer)
    .setIssuedAt(issued)
    .setExpirationTime(issued + SECRET_SECONDS)
    .sign(key)
}
