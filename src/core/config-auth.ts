import { destinations, folder, httpsHosts, key, optional, webUrl } from "./config-kinds"

const endpoint = (provider: string, paths: string) =>
  optional(
    webUrl,
    `Base URL in place of ${provider}, also on a private address. ${paths} Without it, the public one is asked.`,
  )

const DISCOVERY =
  "Asked is /.well-known/openid-configuration below it, and what that document names."

/** Where Game Center keeps the certificates of its signatures, for games in the store and in development. */
export const GAME_CENTER_HOSTS = ["static.gc.apple.com", "sandbox.gc.apple.com"]

/** An operator completes the name of this one by the name of an issuer, as in `auth.oauth.oidc-work.endpoint`. */
export const OF_ISSUER = /^auth\.oauth\.oidc-[a-z0-9][a-z0-9-]{0,39}\.endpoint$/
export const issuerEndpoint = endpoint("the issuer", DISCOVERY)

const ISSUER_VARIABLE = /^BELFRY_AUTH_OAUTH_OIDC_([A-Z0-9_]+)_ENDPOINT(?:_FILE)?$/

/** The settings whose names these variables complete. */
export const namesCompleted = (variables: object): string[] =>
  Object.keys(variables).flatMap((variable) => {
    const [, written] = ISSUER_VARIABLE.exec(variable) ?? []
    const name = written?.toLowerCase().replaceAll("_", "-")
    return name === undefined ? [] : [`auth.oauth.oidc-${name}.endpoint`]
  })

/** The services that sign-ins of end users ask. */
export const authKeys = {
  "auth.captcha.endpoint": optional(
    webUrl,
    "URL that checks captchas. Without it, the one of the environment's service is used.",
  ),
  "auth.oauth.google.endpoint": endpoint("Google", DISCOVERY),
  "auth.oauth.apple.endpoint": endpoint("Apple", DISCOVERY),
  "auth.oauth.microsoft.endpoint": endpoint("Microsoft", DISCOVERY),
  "auth.oauth.github.endpoint": endpoint(
    "GitHub",
    "Asked are /login/oauth/authorize, /login/oauth/access_token, /user and /user/emails below it.",
  ),
  "auth.oauth.allow_private": key(
    destinations,
    [],
    "Private networks, addresses and host names where issuers of `oidc-<name>` may be. Without any, only public addresses are allowed.",
  ),
  "auth.play_games.endpoint": endpoint(
    "Play Games",
    "Asked are /token and /games/v1/players/me below it.",
  ),
  "auth.game_center.hosts": key(
    httpsHosts,
    GAME_CENTER_HOSTS,
    "Hosts whose certificates may prove players of Game Center, also on private addresses. A port other than 443 belongs to the name.",
  ),
  "auth.game_center.root": optional(
    folder,
    "PEM file of the authority that certificates of Game Center must lead to. Hosts other than Apple's show theirs by it, too. Without it, the authority of Apple's certificates is pinned.",
  ),
}
