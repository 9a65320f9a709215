import { asc, eq } from "drizzle-orm"
import { projects } from "../identity/tables"
import { METRICS } from "../plans/plans"
import type { Store } from "../store/store"
import { hold } from "../tenancy/accounts"
import { correct } from "../tenancy/quotas"
import { add, daysOf, totals, type UsageTotals, type UsageUnits } from "../tenancy/usage"
import { emailUnits } from "./units"

interface Asked {
  account_id: string
  quota_subject: string
  period: string
}

/**
 * Counts a month again from the messages themselves, and corrects the counters by the difference,
 * day by day, while sending goes on.
 */
export async function reconcile(store: Store, { account_id, quota_subject, period }: Asked) {
  const range = { account_ids: [account_id], period }
  const before = await totals(store.read, range)
  const { id } = projects
  const own = eq(projects.account_id, account_id)
  const rows = await store.read.select({ id }).from(projects).where(own).orderBy(asc(id))
  let projects_touched = 0
  for (const { id: project_id } of rows) {
    let drifted = 0
    for (const day of daysOf(period)) {
      drifted += await correctDay(store, { account_id, project_id, day })
    }
    if (drifted > 0) projects_touched += 1
  }
  await store.tx((tx) => correct(tx, quota_subject, period))
  const after = await totals(store.read, range)
  const drift = (metric: keyof UsageTotals) => after[metric] - before[metric]
  return {
    period,
    before: only(before),
    after: only(after),
    drift: Object.fromEntries(METRICS.map((metric) => [metric, drift(metric)])),
    projects_touched,
  }
}

type Place = Pick<UsageUnits, "account_id" | "project_id" | "day">

/** One day at a time, lest a month of messages keep every other writer waiting. */
const correctDay = (store: Store, { account_id, project_id, day }: Place): Promise<0 | 1> =>
  store.tx(async (tx) => {
    await hold(tx, account_id) // two at once would both make up for the same drift
    const { counted, told } = await emailUnits(tx, project_id, day)
    const value = told - counted
    await add(tx, [{ account_id, project_id, day, metric: "email", value }])
    return value === 0 ? 0 : 1
  })

const only = (all: UsageTotals) =>
  Object.fromEntries(METRICS.map((metric) => [metric, all[metric]]))
