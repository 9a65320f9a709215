import { and, count, gt, inArray, isNull, or } from "drizzle-orm"
import { now } from "../core/time"
import { apiKeys } from "../identity/tables"
import { limitsOf, METRICS } from "../plans/plans"
import { total, totalsOf } from "../store/counters"
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
  const [used, resources] = await Promise.all([
    days(db, { account_ids: [account_id], period }),
    resourcesOf(db, account_id, rows, domains),
  ])
  const byProject = Map.groupBy(used, ({ project_id }) => project_id)
  return rows.map(({ id, name }, at) => {
    const own = byProject.get(id) ?? []
    const usage = METRICS.map((metric) => [metric, sum(own.filter((one) => one.metric === metric))])
    return {
      project_id: id,
      name,
      usage: Object.fromEntries(usage),
      resources: resources[at] ?? NONE,
    }
  })
}

const sum = (list: { value: number }[]) => list.reduce((all, { value }) => all + value, 0)

const NONE = { webhooks: 0, templates: 0, subscribers: 0, api_keys: 0, domains: 0 }

/**
 * Of each project. Keys that work, which are few and rarely asked for, are counted; webhooks, templates and
 * subscribers have totals (see webhooks/webhooks.ts, templates/templates.ts, subscribers/subscribers.ts).
 */
async function resourcesOf(
  db: Reader,
  account_id: string,
  rows: { id: string }[],
  domains: CountByProject,
): Promise<(typeof NONE)[]> {
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
  const keys = new Map(counted.map((row) => [row.id, row.keys]))
  const totals = await totalsOf(db, ids, ["webhooks", "templates", "subscribers"])
  return ids.map((id) => ({
    ...NONE,
    ...Object.fromEntries(totals.get(id) ?? []),
    api_keys: keys.get(id) ?? 0,
    domains: domains.get(id) ?? 0,
  }))
}

/** How many there are of what can be counted, and how many there may be; null is unlimited. */
export async function resourceCounts(db: Reader, account: AccountRow, domains: CountByProject) {
  const limits = limitsOf(account)
  const rows = await projects.active(db, account.id)
  const all = await resourcesOf(db, account.id, rows, domains)
  const used = (name: keyof typeof NONE) => sum(all.map((one) => ({ value: one[name] })))
  return {
    projects: { used: rows.length, limit: limits.projects },
    webhooks: { used: used("webhooks"), limit: limits.webhooks },
    domains: { used: used("domains"), limit: null },
    subscribers: { used: used("subscribers"), limit: null },
    templates: { used: used("templates"), limit: null },
    api_keys: { used: used("api_keys"), limit: null },
    organizations: { used: await organizationsOf(db, rows), limit: limits.organizations },
    members: { used: await total(db, account.id, members.COUNTER), limit: null },
  }
}

/** Of an application, one in each environment, which everybody there is a member of. */
const DEFAULTS_EACH = 2

/** The Default ones count as one together, as plans count them. */
async function organizationsOf(db: Reader, rows: { id: string }[]): Promise<number> {
  const ids = rows.map(({ id }) => id)
  const totals = [...(await totalsOf(db, ids, ["auth_organizations", "applications"])).values()]
  const all = (name: string) => sum(totals.map((own) => ({ value: own.get(name) ?? 0 })))
  return all("auth_organizations") - Math.max(0, DEFAULTS_EACH * all("applications") - 1)
}
