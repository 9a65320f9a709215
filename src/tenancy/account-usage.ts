import { quotaSubject } from "../identity/caller"
import { currentPeriod } from "../plans/periods"
import { limitsOf } from "../plans/plans"
import type { Reader } from "../store/store"
import type { AccountRow } from "./accounts"
import { accountsOf, totals } from "./usage"
import { shares } from "./usage-report"

/**
 * What an account used this month. What remains counts all free accounts of one person together,
 * since they share one set of limits.
 */
export async function usageOfAccount(db: Reader, account: AccountRow) {
  const period = currentPeriod()
  const own = await totals(db, { account_ids: [account.id], period })
  const sharing = await accountsOf(db, quotaSubject(account))
  const all = sharing.length > 1 ? await totals(db, { account_ids: sharing, period }) : own
  return shares(own, all, limitsOf(account))
}
