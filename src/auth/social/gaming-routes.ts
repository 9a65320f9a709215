import { Type as t } from "@sinclair/typebox"
import { nameText, orNull } from "../../http/field-schemas"
import { type AnyRoute, route } from "../../http/route"
import type { AuthParts } from "../auth-parts"
import { authRow } from "../auth-rows"
import { environmentOf } from "../environments"
import { SignInAnswer, signedInAs } from "../schemas"
import { clientOf } from "../sign-in"
import { signInByGameCenter } from "./game-center"
import { signInByPlayGames } from "./play-games"

const opaque = (maxLength: number, description: string) => t.String({ maxLength, description })

const display_name = t.Optional(orNull(nameText()))

const Assertion = t.Object({
  player_id: opaque(255, "The `teamPlayerID` of the player."),
  public_key_url: opaque(1024, "The `publicKeyURL` of the signature."),
  signature: opaque(2048, "In base64."),
  salt: opaque(1024, "In base64."),
  timestamp: t.Integer({ description: "In milliseconds." }),
  bundle_id: opaque(255, "The bundle id of the game."),
  display_name,
})

const ServerCode = t.Object({
  server_auth_code: t.String({ minLength: 1, maxLength: 2048 }),
  display_name,
})

const row = <Path extends `/v1/auth/${string}`>(path: Path) => ({
  ...authRow("POST", path, ["app"], "-", 201, 200),
  public_key_only: true as const,
  response: SignInAnswer,
})

const ERRORS = [
  "provider_not_configured",
  "user_inactive",
  "forbidden",
  "payment_required",
  "login_rate_limit_exceeded",
] as const

/** Players sign in with what their platform says of them. */
export const gamingRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...row("/v1/auth/game-center"),
    summary: "Sign in a player of Game Center",
    description:
      "Takes what `fetchItems(forIdentityVerificationSignature:)` gives a game. The user is made for a new player, with `display_name` as the name. A signature works once, within five minutes. Needs a public key of the application.",
    body: Assertion,
    example: {
      ...{ player_id: "T:_0f2c…", bundle_id: "com.example.game", display_name: "Ann" },
      public_key_url: "https://static.gc.apple.com/public-key/gc-prod-10.cer",
      ...{ signature: "jbnk6X9f…", salt: "Rug+0Q==", timestamp: 1_795_000_000_000 },
    },
    errors: ["invalid_assertion", ...ERRORS],
    handle: async (call) => {
      const { display_name = null, ...assertion } = call.body
      const environment = await environmentOf(parts.store.read, call)
      const wish = { display_name, client: { ...clientOf(call), ip: call.ip } }
      const data = await signInByGameCenter(parts, environment, assertion, wish)
      return signedInAs(data)
    },
  }),
  route({
    ...row("/v1/auth/play-games"),
    summary: "Sign in a player of Play Games",
    description:
      "Takes the code of `requestServerSideAccess`, and asks the platform for the player. The user is made for a new player, with `display_name` as the name. A code works once. Needs a public key of the application.",
    body: ServerCode,
    example: { server_auth_code: "4/0AX4XfWh…", display_name: "Ann" },
    errors: ["invalid_auth_code", ...ERRORS],
    handle: async (call) => {
      const { display_name = null, server_auth_code } = call.body
      const environment = await environmentOf(parts.store.read, call)
      const wish = { display_name, client: { ...clientOf(call), ip: call.ip } }
      const data = await signInByPlayGames(parts, environment, server_auth_code, wish)
      return signedInAs(data)
    },
  }),
]
