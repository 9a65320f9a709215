import { and, eq } from "drizzle-orm"
import { fail } from "../core/errors"
import { boundsOf, currentPeriod } from "../core/time"
import { type Caller, withDefaults } from "../identity/caller"
import { missing } from "../identity/console-caller"
import { projects } from "../identity/tables"
import { featuresOf, type PlanName } from "../plans/plans"
import type { Reader } from "../store/store"
import { project } from "../tenancy/projects"
import { daysOf } from "../tenancy/usage"
import { AI_ACTIONS, AI_TIERS, type AiAction, quotaLimitOf, TIER_OF } from "./actions"
import { MICRO } from "./calls"
import { gatewayOf } from "./gateway"
import { aiQuotas, aiSpending } from "./tables"

/** What answers say for no limit. */
export const UNLIMITED = -1

/** The Entitlement of contract 60. `enabled` does not depend on the gateway. */
export async function entitlementOf(db: Reader, caller: Caller) {
  const { account_id, project_id, plan, project_settings } = caller
  const ours = and(eq(aiQuotas.account_id, account_id), eq(aiQuotas.period, currentPeriod()))
  const rows = await db.select().from(aiQuotas).where(ours)
  return {
    project_id,
    enabled: featuresOf(plan).ai_authoring && project_settings.ai.enabled,
    plan: plan as PlanName,
    required_plan: "starter" as const,
    quotas: byAction((action) => quotaShown(caller, action)),
    used: byAction((action) => rows.find((row) => row.action === action)?.used ?? 0),
    gateway_configured: gatewayOf("fast") !== undefined,
  }
}

const quotaShown = ({ plan, limits }: Caller, action: AiAction): number =>
  featuresOf(plan).ai_authoring ? (limits[quotaLimitOf(action)] ?? UNLIMITED) : 0

const byAction = (of: (action: AiAction) => number) =>
  Object.fromEntries(AI_ACTIONS.map((action) => [action, of(action)])) as Record<AiAction, number>

/** The AiUsage of contract 60: the spending of the project in a month, and the limits of its account. */
export async function aiUsage(db: Reader, caller: Caller, period: string) {
  const { project_id, project_settings } = caller
  const ours = and(eq(aiSpending.project_id, project_id), eq(aiSpending.period, period))
  const rows = await db.select().from(aiSpending).where(ours)
  const sums = (wanted: (action: AiAction) => boolean) => {
    const counted = rows.filter(({ action }) => wanted(action))
    const total = (of: "count" | "spent_micro") => counted.reduce((sum, row) => sum + row[of], 0)
    return { count: total("count"), spend_usd: total("spent_micro") / MICRO }
  }
  const { spend_usd } = sums(() => true)
  const { budget_usd } = project_settings.ai
  return {
    period: boundsOf(period),
    ...{ spend_usd, budget_usd },
    remaining_usd: budget_usd === null ? null : Math.max(0, dollars(budget_usd - spend_usd)),
    projected_usd: projected(spend_usd, period),
    by_action: AI_ACTIONS.map((action) => {
      const { count, spend_usd } = sums((one) => one === action)
      return { action, count, limit: quotaShown(caller, action), spend_usd }
    }),
    by_tier: AI_TIERS.map((tier) => ({ tier, ...sums((one) => TIER_OF[one] === tier) })),
  }
}

/** As if every day of the month were like those that have begun. */
function projected(spend_usd: number, period: string): number {
  const { start, end } = boundsOf(period)
  const days = (Date.parse(end) - Date.parse(start)) / 86_400_000
  return dollars((spend_usd * days) / Math.max(1, daysOf(period).length))
}

const dollars = (value: number) => Math.round(value * MICRO) / MICRO

/** The caller in a project. People that read the usage of the whole account come without one. Throws 404 and 422. */
export async function inSomeProject(db: Reader, caller: Caller, named: string | null) {
  if (caller.project_id) return caller
  const { account_id } = caller
  const own = and(eq(projects.account_id, account_id), eq(projects.status, "active"))
  const [row, another] =
    named === null
      ? await db.select().from(projects).where(own).limit(2)
      : [await project.find(db, account_id, named)]
  if (!row) return fail("not_found", "There is no such project.")
  if (another) throw missing("X-Project-Id", "several projects")
  return { ...caller, project_id: row.id, project_settings: withDefaults(row.settings) }
}
