import { eq } from "drizzle-orm"
import { currentPeriod, now, today } from "../core/time"
import { projectCaller } from "../identity/caller"
import type { Tx } from "../store/store"
import { reserveEach } from "../tenancy/quotas"
import { add } from "../tenancy/usage"
import type { EndUserRow } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { users } from "./tables"

/**
 * Notes that the user is active, with the other changes, and counts them once a month where the environment is `live`.
 * Throws 402 `payment_required` where a new user is one too many; an older user is let in all the same.
 */
export async function noteActivity(
  tx: Tx,
  { name, project_id, application }: AuthEnvironment,
  user: EndUserRow,
  { is_new = false, ...changes }: { is_new?: boolean } & Partial<EndUserRow>,
): Promise<EndUserRow> {
  const active_month = currentPeriod()
  if (name === "live" && user.active_month !== active_month) {
    await takeFromQuota(tx, project_id, is_new)
    const { account_id } = application
    await add(tx, [{ account_id, project_id, day: today(), metric: "mau", value: 1 }])
  }
  const first_activity_at = user.first_activity_at ?? now()
  const after = { ...changes, active_month, first_activity_at }
  await tx.update(users).set(after).where(eq(users.id, user.id))
  return { ...user, ...after }
}

async function takeFromQuota(tx: Tx, project_id: string, is_new: boolean) {
  const owner = await projectCaller(tx, project_id)
  const limit = owner?.limits.mau ?? null
  if (!owner || limit === null) return
  const { account_id, plan, quota_subject: subject } = owner
  const allowance = { account_id, plan, subject, metric: "mau" as const, limit }
  const [refusal] = await reserveEach(tx, allowance, [1])
  if (refusal && is_new) throw refusal
}
