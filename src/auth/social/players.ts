import { createHash } from "node:crypto"
import type { Static } from "@sinclair/typebox"
import { fail } from "../../core/errors"
import { isoFrom } from "../../core/time"
import type { Reader, Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import type { AuthEnvironment } from "../environments"
import { forgiveWayIn } from "../guesses"
import type { SignInAnswer } from "../schemas"
import { completeSignIn, createUser, type UserClient } from "../sign-in"
import * as gamingProviders from "./gaming-providers"
import { addIdentity, ownerOrNew } from "./identities"
import { type GamingProvider, usedAssertions } from "./tables"

/** What an app says of the player. Nothing of it proves anything. */
export interface PlayerWish {
  display_name: string | null
  client: UserClient & { ip: string }
}

/** The platform's settings. Throws 401 `provider_not_configured` where it is not set up, or is off. */
export async function requirePlatform(
  db: Reader,
  environment: AuthEnvironment,
  provider: GamingProvider,
) {
  const row = await gamingProviders.lookup(db, { environment, provider })
  if (row?.enabled) return row
  return fail("provider_not_configured", `The environment lets in no players of ${provider}.`)
}

/** A player that the platform has named. */
interface ProvenPlayer extends PlayerWish {
  provider: GamingProvider
  player_id: string
  /** The signed content, or the code, that works once. */
  proof: string | Buffer
  /** When nobody would take it any more, in milliseconds. */
  ends_at: number
  /** Throws: the proof was used before. */
  refuse: () => never
}

/** Signs in a player, and makes the user of a new one: of two requests at once one makes them. Throws as `completeSignIn`. */
export const signInPlayer = (
  parts: AuthParts,
  environment: AuthEnvironment,
  player: ProvenPlayer,
): Promise<Static<typeof SignInAnswer>> =>
  parts.store.tx(async (tx) => {
    if (!(await spend(tx, environment, player))) return player.refuse()
    const { provider, player_id: provider_user_id, display_name: name, client } = player
    const account = { provider, provider_user_id }
    const proven = { environment, provider, amr: [provider], client }
    await forgiveWayIn(tx, parts, environment, client.ip)
    const entered = await ownerOrNew(tx, environment, account, async () => {
      const made = await createUser(tx, environment, { name })
      const user = made && (await addIdentity(tx, environment, made, { ...account, email: null }))
      if (!user) throw new Error("a player without a user has an account already")
      return { user, is_new: true }
    })
    return completeSignIn(tx, parts, { ...proven, ...entered })
  })

/** False where the proof was used before, on whatever node. */
async function spend(
  tx: Tx,
  { id, project_id }: AuthEnvironment,
  { provider, proof, ends_at }: ProvenPlayer,
): Promise<boolean> {
  const hash = createHash("sha256").update(`${id} ${provider} `).update(proof).digest("base64url")
  const row = { hash, project_id, expires_at: isoFrom(ends_at) }
  const adding = tx.insert(usedAssertions).values(row).onConflictDoNothing()
  return (await adding.returning()).length > 0
}
