import { settings } from "../core/config"
import { LIMIT_NAMES, type LimitName, PLAN_NAMES, type PlanName } from "../core/config-plans"
import { ApiError, fail } from "../core/errors"
import type { Metric } from "./tables"

export { PLAN_NAMES, type PlanName } from "../core/config-plans"

/** What one account may use; null is unlimited. Months are calendar months in UTC. */
export type Limits = Record<LimitName, number | null>

type Feature = "smtp_submission" | "tracking_domain" | "ai_authoring"
type Features = Record<Feature, boolean>

const NONE = null

/** The table of the specification, a column a limit: free, starter, pro, scale, enterprise. */
const TABLE: Record<LimitName, (number | null)[]> = {
  requests_per_minute: [60, 300, 600, 1200, NONE],
  sends_per_second: [2, 10, 25, 100, NONE],
  projects: [1, 3, 10, 50, NONE],
  webhooks: [2, 10, 50, NONE, NONE],
  emails_per_month: [3000, 50_000, 250_000, 1_500_000, NONE],
  push_per_month: [10_000, 100_000, 1_000_000, 10_000_000, NONE],
  sms_per_month: [100, 1000, 10_000, 50_000, NONE],
  in_app_per_month: [10_000, 100_000, 1_000_000, 10_000_000, NONE],
  mau: [1000, 10_000, 50_000, 500_000, NONE],
  organizations: [1, 1, NONE, NONE, NONE], // one: the Default
  stored_mb: [500, 5000, 50_000, 500_000, NONE], // of each project
  ai_suggest_subjects_per_month: [0, 200, 1000, 5000, NONE],
  ai_draft_template_per_month: [0, 25, 150, 750, NONE],
  ai_rewrite_template_per_month: [0, 50, 300, 1500, NONE],
  ai_generate_workflow_per_month: [0, 5, 25, 100, NONE],
  ai_analyze_broadcast_per_month: [0, 4, 30, 150, NONE],
}

/** The limit of a month, by what it counts. */
export const LIMIT_OF = {
  email: "emails_per_month",
  push: "push_per_month",
  sms: "sms_per_month",
  in_app: "in_app_per_month",
  mau: "mau",
} as const satisfies Record<Metric, keyof Limits>

export const METRICS = Object.keys(LIMIT_OF) as Metric[]

export const isPlan = (text: string): text is PlanName =>
  (PLAN_NAMES as readonly string[]).includes(text)

/** The plan of a new account. */
export const defaultPlan = (): PlanName => settings()["plans.default"]

/** A plan's own numbers, with those of the configuration in their place. */
export function limitsOfPlan(plan: string): Limits {
  const column = isPlan(plan) ? PLAN_NAMES.indexOf(plan) : 0 // an unknown plan is the smallest
  const name = PLAN_NAMES[column] ?? "free"
  const entries = LIMIT_NAMES.map((limit) => {
    const own = settings()[`plans.${name}.${limit}`]
    return [limit, own === "unlimited" ? null : (own ?? TABLE[limit][column] ?? null)]
  })
  return Object.fromEntries(entries) as Limits
}

interface Planned {
  plan: string
  /** Numbers of the operator for this account alone. */
  limits: Record<string, number | null> | null
}

const known = new Map<string, Limits>()

/** For when the numbers of the configuration changed. */
export const forgetPlans = () => known.clear()

/** What holds for an account: the operator's numbers for it, else those of its plan. */
export function limitsOf({ plan, limits }: Planned): Limits {
  const own = known.get(plan) ?? limitsOfPlan(plan)
  known.set(plan, own)
  return limits ? { ...own, ...limits } : own
}

export function featuresOf(plan: string): Features {
  const paid = plan !== "free"
  return { smtp_submission: paid, tracking_domain: paid, ai_authoring: paid }
}

/** Throws 403 `plan_limit_exceeded` when there is no room for one more. */
export function requireRoom({
  resource,
  used,
  limit,
  plan,
}: {
  resource: string
  used: number
  limit: number | null
  plan: string
}): void {
  if (limit === null || used < limit) return
  const message = `The plan ${plan} allows ${limit} ${resource}, and ${used} are in use. Delete one or use a larger plan.`
  fail("plan_limit_exceeded", message, { resource, used, limit, plan })
}

/** 403 `plan_upgrade_required`, or 402 where the contract says so. */
export function upgradeRequired(
  feature: string,
  plan: string,
  required_plan: PlanName,
  status = 403,
) {
  const message = `${feature} needs the plan ${required_plan} or a larger one.`
  return new ApiError(
    "plan_upgrade_required",
    message,
    { feature, plan, required_plan },
    { status },
  )
}
