import { and, count, eq, lte } from "drizzle-orm"
import type { Reader, Tx } from "../store/store"
import { attempts } from "./tables"

/** The outcome of an attempt that ended with our login. */
export const LOGIN_REFUSED = "login_refused"

/** Of one message; there is one a minute, for as long as nobody mends the login. */
const MOST_KEPT = 60

/** Forgets all but the latest refused logins of a message. */
export async function forgetOldRefusals(tx: Tx, message_id: string, latest: number) {
  if (latest <= MOST_KEPT) return
  const old = lte(attempts.attempt, latest - MOST_KEPT)
  const ours = and(eq(attempts.message_id, message_id), eq(attempts.outcome, LOGIN_REFUSED), old)
  await tx.delete(attempts).where(ours)
}

/**
 * How many attempts of a message got beyond the login; undefined where all of them did, so that their
 * number is that of the attempt.
 */
export async function triesBefore(db: Reader, message_id: string): Promise<number | undefined> {
  const rows = await db
    .select({ outcome: attempts.outcome, n: count() })
    .from(attempts)
    .where(eq(attempts.message_id, message_id))
    .groupBy(attempts.outcome)
  if (!rows.some(({ outcome }) => outcome === LOGIN_REFUSED)) return undefined
  const others = rows.filter(({ outcome }) => outcome !== LOGIN_REFUSED)
  return others.reduce((sum, { n }) => sum + Number(n), 0)
}
