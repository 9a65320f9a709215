import { limitsOf, type PlanName } from "../plans/plans"
import type { usageOfAccount } from "./account-usage"
import type { AccountRow } from "./accounts"

/** The Account record of the contract, but for `usage`, which others count. */
export const accountRecord = (
  row: AccountRow,
  usage: Awaited<ReturnType<typeof usageOfAccount>>,
) => ({
  id: row.id,
  name: row.name,
  slug: row.slug,
  plan: row.plan as PlanName,
  status: row.status,
  sending_status: row.sending_status,
  sending_status_reason: row.sending_status_reason,
  limits: limitsOf(row),
  usage,
  settings: row.settings,
  created_at: row.created_at,
  updated_at: row.updated_at,
})
