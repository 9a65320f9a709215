import { and, eq } from "drizzle-orm"
import type { SystemMail } from "../identity/system-mail"
import { accountMembers, accounts, consoleUsers } from "../identity/tables"
import type { JobHandler } from "../jobs/job-handler"
import { enqueueAll, type JobKind } from "../jobs/queue"
import { currentPeriod } from "../plans/periods"
import * as quotas from "../plans/quotas"
import type { Reader, Store, Tx } from "../store/store"
import { recount } from "./usage"

/** What one account may use of a metric this month, and who is told when it runs out. */
export interface QuotaAllowance {
  account_id: string
  subject: string
  metric: quotas.Metric
  limit: number | null
  plan: string
}

interface UsageAlert {
  account_id: string
  metric: quotas.Metric
  period: string
  /** In percent of the limit. */
  share: number
  used: number
  limit: number
}

/** One mail to the owners, for each share of a limit and month. */
export const usageAlert: JobKind<UsageAlert> = {
  name: "usage.alert",
  schedule: (attempt, age) => (age > 86_400 ? undefined : Math.min(60 * attempt, 3600)),
}

/**
 * Takes what fits of the quota, each wish as a whole and in order. Returns a refusal (402) for each
 * wish that does not fit, and null for the others.
 */
export async function reserveEach(tx: Tx, allowance: QuotaAllowance, wishes: number[]) {
  const { limit, metric, plan } = allowance
  if (limit === null) return wishes.map(() => null)
  const { admitted, used, passed } = await quotas.reserveEach(tx, allowance, wishes, recount)
  await tell(tx, { ...allowance, limit, used, passed })
  return admitted.map((fits) => (fits ? null : quotas.usedUp({ metric, used, limit, plan })))
}

/** Takes as much of `wanted` as fits, and returns how much that is. */
export const reserve = (
  tx: Tx,
  subject: string,
  metric: quotas.Metric,
  wanted: number,
  limit: number | null,
): Promise<number> => quotas.reserve(tx, { subject, metric, limit }, wanted, recount)

/** Puts the rows of a month right by what was counted, while nobody reserves. */
export const correct = (tx: Tx, subject: string, period: string) =>
  quotas.correct(tx, subject, period, recount)

type Passed = QuotaAllowance & { limit: number; used: number; passed: number[] }

async function tell(tx: Tx, { account_id, metric, limit, used, passed }: Passed) {
  if (passed.length === 0) return
  const period = currentPeriod()
  const alerts = passed.map(
    (share): UsageAlert => ({ account_id, metric, period, share, used, limit }),
  )
  // Whoever leaps over both shares at once need only hear of the last.
  const payload = alerts.at(-1)
  if (payload) await enqueueAll(tx, usageAlert, [{ payload, project_id: null }])
}

/** Tells every owner of the account that a quota is nearly, or wholly, used up. */
export const tellOwners = (store: Store, mail: SystemMail): JobHandler<UsageAlert> => ({
  run: async (alert) => {
    await store.tx(async (tx) => {
      const [account] = await tx.select().from(accounts).where(eq(accounts.id, alert.account_id))
      if (!account || account.deleting_at) return
      for (const { email } of await ownersOf(tx, alert.account_id)) {
        await mail.send(tx, { to: email, kind: "usage_alert", ...letter(account.name, alert) })
      }
    })
    return {}
  },
})

const ownersOf = (db: Reader, account_id: string) =>
  db
    .select({ email: consoleUsers.email })
    .from(accountMembers)
    .innerJoin(consoleUsers, eq(consoleUsers.id, accountMembers.user_id))
    .where(
      and(
        eq(accountMembers.account_id, account_id),
        eq(accountMembers.role, "owner"),
        eq(consoleUsers.status, "active"),
      ),
    )

function letter(name: string, { metric, share, used, limit, period }: UsageAlert) {
  const full = share >= 100
  const what = `${used} of ${limit} (${metric})`
  const subject = full
    ? `${name}: this month's quota is used up`
    : `${name}: ${share} % of this month's quota is used`
  const outlook = full
    ? "Belfry refuses further sends with 402 until the next month begins."
    : "When the quota is used up, Belfry refuses further sends with 402."
  const text = `${name} has used ${what} in ${period}.\n\n${outlook}\n`
  return { subject, text }
}
