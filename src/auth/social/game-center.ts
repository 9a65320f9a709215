import { verify } from "node:crypto"
import type { Static } from "@sinclair/typebox"
import { fail, meaningOf } from "../../core/errors"
import { millis } from "../../core/time"
import type { AuthParts } from "../auth-parts"
import type { AuthEnvironment } from "../environments"
import { countWayIn } from "../guesses"
import type { SignInAnswer } from "../schemas"
import { gameCenterKeys } from "./game-center-keys"
import { type PlayerWish, requirePlatform, signInPlayer } from "./players"

/** What GameKit gives a game, `fetchItems(forIdentityVerificationSignature:)`. */
export interface GameCenterAssertion {
  player_id: string
  public_key_url: string
  /** In base64, as the salt. */
  signature: string
  salt: string
  /** Milliseconds. */
  timestamp: number
  bundle_id: string
}

const provider = "game-center"

const WINDOW_MS = 5 * 60_000

/** Clocks of nodes may differ by this much. */
const SKEW_MS = 60_000

/** An id of the player for the games of one developer. Others are of one game, or of all, and are no names of ours. */
const OF_TEAM = /^T:_[A-Za-z0-9_-]{1,125}$/

/**
 * Signs in a player by what Game Center has signed (contract 52, section 2). Throws 401 `invalid_assertion`, with one
 * answer for every failure, 401 `provider_not_configured`, and 429 after too many failures of a network.
 */
export async function signInByGameCenter(
  parts: AuthParts,
  environment: AuthEnvironment,
  assertion: GameCenterAssertion,
  wish: PlayerWish,
): Promise<Static<typeof SignInAnswer>> {
  const { bundle_ids } = await requirePlatform(parts.store.read, environment, provider)
  await countWayIn(parts, environment, wish.client.ip)
  const { player_id, bundle_id, timestamp } = assertion
  const is_fresh = Math.abs(millis() - timestamp) <= WINDOW_MS
  if (!is_fresh || !OF_TEAM.test(player_id) || !bundle_ids.includes(bundle_id)) return refuse()
  const key = await gameCenterKeys(parts.settings).at(assertion.public_key_url)
  const proof = contentOf(assertion)
  const signature = Buffer.from(assertion.signature, "base64")
  if (!key || !verify("sha256", proof, key, signature)) return refuse()
  const ends_at = timestamp + WINDOW_MS + SKEW_MS
  return signInPlayer(parts, environment, {
    ...{ ...wish, provider, player_id, ends_at, refuse },
    // Not the signature: base64 writes the same bytes in several ways.
    proof,
  })
}

function contentOf({ player_id, bundle_id, timestamp, salt }: GameCenterAssertion): Buffer {
  const at = Buffer.alloc(8)
  at.writeBigUInt64BE(BigInt(timestamp))
  return Buffer.concat([
    Buffer.from(player_id),
    Buffer.from(bundle_id),
    at,
    Buffer.from(salt, "base64"),
  ])
}

const refuse = (): never => fail("invalid_assertion", meaningOf("invalid_assertion"))
