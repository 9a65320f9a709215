import { and, eq, isNull } from "drizzle-orm"
import { fail } from "../core/errors"
import { accountMembers, accounts, consoleUsers } from "../identity/tables"
import { held } from "../store/locks"
import type { Reader, Tx } from "../store/store"

/** Free accounts that one person may own. */
export const MOST_FREE = 2

/** Throws 403 `plan_limit_exceeded` where the person would own a third free account. */
export async function demandRoomForFree(tx: Tx, user_id: string, { plan }: { plan: string }) {
  if (plan !== "free") return
  // Two at once, of one person, must not both find the last place.
  await held(tx.select().from(consoleUsers).where(eq(consoleUsers.id, user_id)))
  const used = (await freeAccountsOf(tx, user_id)).length
  if (used < MOST_FREE) return
  const details = { resource: "accounts", used, limit: MOST_FREE, plan }
  fail(
    "plan_limit_exceeded",
    `A person can own at most ${MOST_FREE} free accounts. Use a larger plan for one of them.`,
    details,
  )
}

/** The free accounts of which the person is an owner; they share one set of limits. */
export const freeAccountsOf = (db: Reader, user_id: string) =>
  db
    .select({ id: accounts.id })
    .from(accountMembers)
    .innerJoin(accounts, eq(accounts.id, accountMembers.account_id))
    .where(
      and(
        eq(accountMembers.user_id, user_id),
        eq(accountMembers.role, "owner"),
        eq(accounts.plan, "free"),
        isNull(accounts.deleting_at),
      ),
    )
