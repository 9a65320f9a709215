import { and, eq, like, ne } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { millis, now } from "../core/time"
import { bump, total } from "../store/counters"
import type { Tx } from "../store/store"
import { counters } from "../store/tables"

const MOST_A_DAY = 50
const DAY_SECONDS = 86_400
const NAME = "invitations:"

/**
 * Counts one mail of an invitation against the account's day (UTC); the caller holds the account.
 * Throws 429 `rate_limit_exceeded` from the 51st.
 */
export async function countToday(tx: Tx, account_id: string) {
  const today = NAME + now().slice(0, "2026-11-21".length)
  if ((await total(tx, account_id, today)) >= MOST_A_DAY) throw exceeded()
  await bump(tx, account_id, today, 1)
  const earlier = and(like(counters.name, `${NAME}%`), ne(counters.name, today))
  await tx.delete(counters).where(and(eq(counters.project_id, account_id), earlier))
}

function exceeded() {
  const retry_after = DAY_SECONDS - (Math.floor(millis() / 1000) % DAY_SECONDS)
  return new ApiError(
    "rate_limit_exceeded",
    `This account has sent its ${MOST_A_DAY} invitations of today. Try again tomorrow (UTC).`,
    { retry_after, limit: MOST_A_DAY, window_seconds: DAY_SECONDS, scope: "invitations" },
    { headers: { "retry-after": String(retry_after) } },
  )
}
