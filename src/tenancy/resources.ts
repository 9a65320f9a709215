import { and, eq, gt, isNull, or } from "drizzle-orm"
import { now } from "../core/time"
import { apiKeys } from "../identity/tables"
import { METRICS } from "../plans/metrics"
import { type Limits, limitsOf } from "../plans/plans"
import { total } from "../store/counters"
import type { Reader } from "../store/store"
import type { AccountRow } from "./accounts"
import * as members from "./members"
import * as projects from "./projects"
import { days } from "./usage"

/** What a project has, in numbers. What is not built yet is not there. */
const NOTHING = { templates: 0, subscribers: 0 }

/** A month of every project, oldest first, each with what it used and what it has. */
export async function breakdown(
  db: Reader,
  account_id: string,
  period: string,
  domains: Map<string, number>,
) {
  const [usage, keys, webhooks] = await Promise.all([
    usageByProject(db, account_id, period),
    keysByProject(db, account_id),
    webhooksByProject(db, account_id),
  ])
  const rows = await projects.active(db, account_id)
  return rows.map(({ id, name }) => {
    const used = METRICS.map((metric) => [metric, usage.get(`${id} ${metric}`) ?? 0])
    const own = { webhooks: webhooks.get(id) ?? 0, api_keys: keys.get(id) ?? 0 }
    const resources = { ...NOTHING, ...own, domains: domains.get(id) ?? 0 }
    return { project_id: id, name, usage: Object.fromEntries(used), resources }
  })
}

async function usageByProject(db: Reader, account_id: string, period: string) {
  const sums = new Map<string, number>()
  for (const { project_id, metric, value } of await days(db, {
    account_ids: [account_id],
    period,
  })) {
    const name = `${project_id} ${metric}`
    sums.set(name, value + (sums.get(name) ?? 0))
  }
  return sums
}

/** Keys that work. Their number is small and rarely asked for, so they are counted. */
async function keysByProject(db: Reader, account_id: string): Promise<Map<string, number>> {
  const alive = or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, now()))
  const ours = (await projects.active(db, account_id)).map(({ id }) => id)
  const counts = new Map<string, number>()
  for (const id of ours) {
    const rows = await db
      .select({ id: apiKeys.id })
      .from(apiKeys)
      .where(and(eq(apiKeys.project_id, id), isNull(apiKeys.revoked_at), alive))
    counts.set(id, rows.length)
  }
  return counts
}

/** Counted as they are made and deleted, see webhooks/webhooks.ts. */
async function webhooksByProject(db: Reader, account_id: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const { id } of await projects.active(db, account_id)) {
    counts.set(id, await total(db, id, "webhooks"))
  }
  return counts
}

const sum = (counts: Map<string, number>) => [...counts.values()].reduce((all, one) => all + one, 0)

/** How many there are of what can be counted, and how many there may be; null is unlimited. */
export async function resourceCounts(
  db: Reader,
  account: AccountRow,
  domains: Map<string, number>,
) {
  const limits: Limits = limitsOf(account)
  const [used, people, keys, webhooks] = await Promise.all([
    projects.countActive(db, account.id),
    members.count(db, account.id),
    keysByProject(db, account.id),
    webhooksByProject(db, account.id),
  ])
  return {
    projects: { used, limit: limits.projects },
    webhooks: { used: sum(webhooks), limit: limits.webhooks },
    domains: { used: sum(domains), limit: null },
    subscribers: { used: 0, limit: null },
    templates: { used: 0, limit: null },
    api_keys: { used: sum(keys), limit: null },
    organizations: { used: 0, limit: limits.organizations },
    members: { used: people, limit: null },
  }
}
