import { key, type SettingKind, whole } from "./config-kinds"

/** The names are fixed; every number behind them is the operator's to change. */
export const PLAN_NAMES = ["free", "starter", "pro", "scale", "enterprise"] as const
export type PlanName = (typeof PLAN_NAMES)[number]

export const LIMIT_NAMES = [
  "requests_per_minute",
  "sends_per_second",
  "projects",
  "webhooks",
  "emails_per_month",
  "push_per_month",
  "sms_per_month",
  "in_app_per_month",
  "mau",
  "organizations",
  "stored_mb",
  "ai_suggest_subjects_per_month",
  "ai_draft_template_per_month",
  "ai_rewrite_template_per_month",
  "ai_generate_workflow_per_month",
  "ai_analyze_broadcast_per_month",
] as const
export type LimitName = (typeof LIMIT_NAMES)[number]

type PlanKey = `plans.${PlanName}.${LimitName}`

export type PlanLimit = number | "unlimited"

const MOST = 1_000_000_000

const limit: SettingKind<PlanLimit> = {
  expected: `a whole number from 0 to ${MOST}, or "unlimited"`,
  parse: (raw) => (raw === "unlimited" ? raw : whole(0, MOST).parse(raw)),
  show: (value) => value,
}

/** `plans.<plan>.<limit>`: the operator's number replaces the plan's own. */
export const planLimits = <K>(keyOf: (kind: SettingKind<PlanLimit>, about: string) => K) => {
  const entries = PLAN_NAMES.flatMap((plan) =>
    LIMIT_NAMES.map((name) => {
      const about = `Limit ${name} of the plan ${plan}. Without it, the built-in limit applies.`
      return [`plans.${plan}.${name}`, keyOf(limit, about)] as const
    }),
  )
  return Object.fromEntries(entries) as Record<PlanKey, K>
}

/** What every project may ask of single routes, whatever its plan. */
export const routeLimits = {
  "subscribers.bulk_per_minute": key(
    whole(1, 100_000),
    10,
    "Requests of POST /v1/subscribers/bulk that each project may make in a minute.",
  ),
}
