import { and, eq, gt, isNull, lt, type SQL, sql } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import type { Reader, Store, Tx } from "../store/store"
import { kitTable, type OwnColumns, type OwnerTable } from "./owner-tables"
import type { challengeColumns } from "./person-columns"
import { hashOfToken, newToken } from "./tokens"

const CHALLENGE_SECONDS = 300
const MOST_TRIES = 5

type ChallengeColumns = ReturnType<typeof challengeColumns>
type ChallengeTable = OwnerTable<ChallengeColumns>

/** The first factor was right. The token brings the question for the second one back to the user. */
export async function startChallenge<Table extends ChallengeTable>(
  tx: Tx,
  table: Table,
  columns: { user_id: string } & OwnColumns<Table, keyof ChallengeColumns>,
): Promise<{ token: string; expires_at: string }> {
  const token = newToken("mfa")
  const expires_at = secondsFromNow(CHALLENGE_SECONDS)
  const fresh = { token_hash: hashOfToken(token), attempts: 0, created_at: now(), expires_at }
  await tx.insert(kitTable<ChallengeColumns>(table)).values({ ...columns, ...fresh })
  return { token, expires_at }
}

/**
 * Counts a try before its answer is looked at, so that guesses side by side are counted too. Undefined
 * for a challenge that is unknown, old, answered, or used up after five tries.
 */
export async function tryChallenge<Table extends ChallengeTable>(
  store: Store,
  table: Table,
  token: string,
  among?: SQL,
): Promise<Table["$inferSelect"] | undefined> {
  const challenges = kitTable<ChallengeColumns>(table)
  const { attempts } = challenges
  const [row] = await store.tx((tx) =>
    tx
      .update(challenges)
      .set({ attempts: sql`${attempts} + 1` })
      .where(and(among, isOpen(challenges, hashOfToken(token)), lt(attempts, MOST_TRIES)))
      .returning(),
  )
  return row
}

/** A challenge that `tryChallenge` would take. Counts no try. */
export async function lookupChallenge<Table extends ChallengeTable>(
  db: Reader,
  table: Table,
  token_hash: string,
  among?: SQL,
): Promise<Table["$inferSelect"] | undefined> {
  const challenges = kitTable<ChallengeColumns>(table)
  const open = and(among, isOpen(challenges, token_hash), lt(challenges.attempts, MOST_TRIES))
  return (await db.select().from(challenges).where(open))[0]
}

/** Its answer was right. False where another request answered it. */
export async function closeChallenge(
  tx: Tx,
  table: ChallengeTable,
  token_hash: string,
): Promise<boolean> {
  const challenges = kitTable<ChallengeColumns>(table)
  const closing = tx
    .update(challenges)
    .set({ used_at: now() })
    .where(isOpen(challenges, token_hash))
  return (await closing.returning()).length > 0
}

const isOpen = ({ token_hash, used_at, expires_at }: ChallengeTable, hash: string) =>
  and(eq(token_hash, hash), isNull(used_at), gt(expires_at, now()))
