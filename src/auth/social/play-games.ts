import type { Static } from "@sinclair/typebox"
import { fail, meaningOf } from "../../core/errors"
import { log } from "../../core/log"
import { NetError, type NetRequest, request } from "../../core/net"
import { millis } from "../../core/time"
import { objectIn } from "../../lib/text"
import type { AuthParts } from "../auth-parts"
import type { AuthEnvironment } from "../environments"
import { countWayIn } from "../guesses"
import type { SignInAnswer } from "../schemas"
import { openSecret } from "./gaming-providers"
import { type PlayerWish, requirePlatform, signInPlayer } from "./players"

const provider = "play-games"

const SERVERS = {
  token: "https://oauth2.googleapis.com/token",
  player: "https://games.googleapis.com/games/v1/players/me",
}

const TIMEOUT_MS = 5000
const MOST_BYTES = 65_536

/** The platform's codes live for minutes. */
const KEPT_MS = 3_600_000

const LONGEST_ID = 255

/**
 * Signs in the player of a code that the platform made for the game's server (contract 52, section 2). Throws 401
 * `invalid_auth_code`, also while the platform does not answer, 401 `provider_not_configured`, and 429 after too many
 * failures of a network.
 */
export async function signInByPlayGames(
  parts: AuthParts,
  environment: AuthEnvironment,
  code: string,
  wish: PlayerWish,
): Promise<Static<typeof SignInAnswer>> {
  const row = await requirePlatform(parts.store.read, environment, provider)
  const { client_id, client_secret } = row
  if (!client_id || !client_secret) return fail("provider_not_configured", LOST)
  await countWayIn(parts, environment, wish.client.ip)
  const client = { client_id, client_secret: openSecret(parts.secrets, row) }
  const player_id = await playerOf(parts.settings, client, code)
  if (player_id === undefined) return refuse()
  const ends_at = millis() + KEPT_MS
  return signInPlayer(parts, environment, {
    ...wish,
    ...{ provider, player_id, proof: code, ends_at, refuse },
  })
}

const LOST = "The secret of play-games is lost. Set it anew."

/** The id that the platform itself tells. Undefined for a code that it does not take. */
async function playerOf(
  settings: AuthParts["settings"],
  client: { client_id: string; client_secret: string },
  code: string,
): Promise<string | undefined> {
  const base = settings["auth.play_games.endpoint"]
  const servers = base === null ? SERVERS : serversAt(base)
  const allow_private = base === null ? [] : [new URL(base).hostname]
  const fields = { ...client, code, grant_type: "authorization_code", redirect_uri: "" }
  const { access_token } = await asked({
    ...{ url: servers.token, allow_private, method: "POST" },
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams(fields).toString(),
  })
  if (typeof access_token !== "string" || !/^[\x21-\x7e]+$/.test(access_token)) return undefined
  const headers = { authorization: `Bearer ${access_token}` }
  const { playerId } = await asked({ url: servers.player, allow_private, headers })
  const is_id = typeof playerId === "string" && /^[\x21-\x7e]+$/.test(playerId)
  return is_id && playerId.length <= LONGEST_ID ? playerId : undefined
}

const serversAt = (base: string): typeof SERVERS => ({
  token: `${base}/token`,
  player: `${base}/games/v1/players/me`,
})

type Question = Pick<NetRequest, "url" | "allow_private" | "method" | "headers" | "body">

/** The fields of an answer; none of a refusal, and none where nobody answers. */
async function asked(question: Question): Promise<Record<string, unknown>> {
  const limits = { timeout_ms: TIMEOUT_MS, capture_bytes: MOST_BYTES }
  const { url } = question
  try {
    const { status, body } = await request({ ...question, ...limits })
    const fields = objectIn(new TextDecoder().decode(body)) ?? {}
    if (status === 200) return fields
    // A code that was used or made up needs nobody's care; another refusal may be one of the settings.
    if (fields.error !== "invalid_grant")
      log.warn("Play Games refused a question", { url, status, reason: fields.error })
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    log.warn("Play Games did not answer", { url, error })
  }
  return {}
}

const refuse = (): never => fail("invalid_auth_code", meaningOf("invalid_auth_code"))
