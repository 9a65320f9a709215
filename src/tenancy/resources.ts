import { and, count, gt, inArray, isNull, or } from "drizzle-orm"
import { now } from "../core/time"
import { apiKeys } from "../identity/tables"
import { limitsOf, METRICS } from "../plans/plans"
import { total, totals } from "../store/counters"
import { readHeavy } from "../store/heavy-reads"
import type { Reader } from "../store/store"
import type { AccountRow } from "./accounts"
import * as members from "./members"
import * as projects from "./projects"
import { days } from "./usage"

type CountByProject = Map<string, number>

/** A month of every project, oldest first, each with what it used and what it has. */
export async function breakdown(
  db: Reader,
  account_id: string,
  period: string,
  domains: CountByProject,
) {
  const rows = await projects.active(db, account_id)
  const [usage, { keys, webhooks, templates, subscribers }] = await Promise.all([
    usageByProject(db, account_id, period),
    countResources(db, account_id, rows),
  ])
  return rows.map(({ id, name }) => {
    const used = METRICS.map((metric) => [metric, usage.get(`${id} ${metric}`) ?? 0])
    const own = {
      webhooks: webhooks.get(id) ?? 0,
      templates: templates.get(id) ?? 0,
      subscribers: subscribers.get(id) ?? 0,
      api_keys: keys.get(id) ?? 0,
    }
    const resources = { ...own, domains: domains.get(id) ?? 0 }
    return { project_id: id, name, usage: Object.fromEntries(used), resources }
  })
}

async function usageByProject(db: Reader, account_id: string, period: string) {
  const sums = new Map<string, number>()
  for (const row of await days(db, { account_ids: [account_id], period })) {
    const name = `${row.project_id} ${row.metric}`
    sums.set(name, row.value + (sums.get(name) ?? 0))
  }
  return sums
}

/**
 * Keys that work, which are few and rarely asked for, so they are counted; webhooks, templates and
 * subscribers have totals (see webhooks/webhooks.ts, templates/templates.ts, subscribers/subscribers.ts).
 */
async function countResources(db: Reader, account_id: string, rows: { id: string }[]) {
  const ids = rows.map(({ id }) => id)
  const alive = or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, now()))
  const counted = await readHeavy(db, account_id, (read) =>
    read((thread) =>
      thread
        .select({ id: apiKeys.project_id, keys: count() })
        .from(apiKeys)
        .where(and(inArray(apiKeys.project_id, ids), isNull(apiKeys.revoked_at), alive))
        .groupBy(apiKeys.project_id),
    ),
  )
  const keys: CountByProject = new Map(counted.map((row) => [row.id, row.keys]))
  const webhooks: CountByProject = new Map()
  const templates: CountByProject = new Map()
  const subscribers: CountByProject = new Map()
  for (const id of ids) {
    const all = await totals(db, id, ["webhooks", "templates", "subscribers"])
    webhooks.set(id, all.get("webhooks") ?? 0)
    templates.set(id, all.get("templates") ?? 0)
    subscribers.set(id, all.get("subscribers") ?? 0)
  }
  return { keys, webhooks, templates, subscribers }
}

const sum = (counts: CountByProject) => [...counts.values()].reduce((all, one) => all + one, 0)

/** How many there are of what can be counted, and how many there may be; null is unlimited. */
export async function resourceCounts(db: Reader, account: AccountRow, domains: CountByProject) {
  const limits = limitsOf(account)
  const rows = await projects.active(db, account.id)
  const { keys, webhooks, templates, subscribers } = await countResources(db, account.id, rows)
  return {
    projects: { used: rows.length, limit: limits.projects },
    webhooks: { used: sum(webhooks), limit: limits.webhooks },
    domains: { used: sum(domains), limit: null },
    subscribers: { used: sum(subscribers), limit: null },
    templates: { used: sum(templates), limit: null },
    api_keys: { used: sum(keys), limit: null },
    organizations: { used: 0, limit: limits.organizations },
    members: { used: await total(db, account.id, members.COUNTER), limit: null },
  }
}
