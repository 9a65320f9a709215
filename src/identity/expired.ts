import { and, inArray, isNotNull, lt } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import type { Store } from "../store/store"
import {
  consoleSessions,
  deviceCodes,
  mfaChallenges,
  passwordResets,
  refreshTokens,
  throttles,
} from "./tables"

const AT_ONCE = 500

/** A successor answers a request that was sent twice; a minute later nobody sends it again. */
const SUCCESSOR_SECONDS = 60

/** Forgets what opens nothing any more, some of each kind. Returns how many rows went. */
export async function purgeSessions(store: Store): Promise<number> {
  await forgetSuccessors(store)
  let gone = 0
  const past = now()
  const kinds = [
    { rows: refreshTokens, id: refreshTokens.token_hash, end: refreshTokens.expires_at },
    { rows: consoleSessions, id: consoleSessions.id, end: consoleSessions.expires_at },
    { rows: deviceCodes, id: deviceCodes.id, end: deviceCodes.expires_at },
    { rows: mfaChallenges, id: mfaChallenges.token_hash, end: mfaChallenges.expires_at },
    { rows: passwordResets, id: passwordResets.token_hash, end: passwordResets.expires_at },
    { rows: throttles, id: throttles.subject, end: throttles.ends_at },
  ]
  for (const { rows, id, end } of kinds) {
    const old = await store.read.select({ id }).from(rows).where(lt(end, past)).limit(AT_ONCE)
    if (old.length === 0) continue
    const ids = old.map((row) => row.id)
    await store.tx((tx) => tx.delete(rows).where(inArray(id, ids)))
    gone += ids.length
  }
  return gone
}

async function forgetSuccessors(store: Store) {
  const { token_hash, successor, used_at } = refreshTokens
  const stale = and(isNotNull(successor), lt(used_at, secondsFromNow(-SUCCESSOR_SECONDS)))
  const some = await store.read
    .select({ token_hash })
    .from(refreshTokens)
    .where(stale)
    .limit(AT_ONCE)
  if (some.length === 0) return
  const hashes = some.map((row) => row.token_hash)
  await store.tx((tx) =>
    tx.update(refreshTokens).set({ successor: null }).where(inArray(token_hash, hashes)),
  )
}
