import { enqueueAll, type JobKind } from "../jobs/queue"
import { currentPeriod } from "../plans/periods"
import * as quotas from "../plans/quotas"
import type { Tx } from "../store/store"
import { recount } from "./usage"

/** What one account may use of a metric this month, and who is told when it runs out. */
export interface Allowance {
  account_id: string
  subject: string
  metric: quotas.Metric
  limit: number | null
  plan: string
}

export interface Alert {
  account_id: string
  metric: quotas.Metric
  period: string
  /** In percent of the limit. */
  share: number
  used: number
  limit: number
}

/** One mail to the owners, for each share of a limit and month. */
export const usageAlert: JobKind<Alert> = {
  name: "usage.alert",
  schedule: (attempt, age) => (age > 86_400 ? undefined : Math.min(60 * attempt, 3600)),
}

/**
 * Takes what fits of the quota, each wish as a whole and in order. Returns a refusal (402) for each
 * wish that does not fit, and null for the others.
 */
export async function reserveEach(tx: Tx, allowance: Allowance, wishes: number[]) {
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

type Passed = Allowance & { limit: number; used: number; passed: number[] }

async function tell(tx: Tx, { account_id, metric, limit, used, passed }: Passed) {
  if (passed.length === 0) return
  const period = currentPeriod()
  const alerts = passed.map((share): Alert => ({ account_id, metric, period, share, used, limit }))
  // Whoever leaps over both shares at once need only hear of the last.
  const payload = alerts.at(-1)
  if (payload) await enqueueAll(tx, usageAlert, [{ payload, project_id: null }])
}
