import { openIdAdapter } from "./openid-connect"

/** Any issuer of OpenID Connect. Its address is its name, character by character. */
export const oidc = openIdAdapter({
  base: ({ issuer }) => issuer ?? "",
  scopes: ["openid", "email", "profile"],
  isVerified: ({ email_verified }) => email_verified === true,
  asks_userinfo: true,
})
