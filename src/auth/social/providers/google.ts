import { openIdAdapter } from "./openid-connect"

const ISSUER = "https://accounts.google.com"

/** A token that an app on a phone got for this client names the app's own client in `azp`. */
export const google = openIdAdapter({
  base: () => ISSUER,
  scopes: ["openid", "email", "profile"],
  any_party: true,
  // Google tokens name their issuer in one of two ways.
  issuersOf: ({ issuer }) => [issuer, issuer.replace(/^https:\/\//, "")],
  isVerified: ({ email_verified }) => email_verified === true,
})
