import { Type as t } from "@sinclair/typebox"
import { currentPeriod } from "../core/time"
import { MONTH } from "../http/field-schemas"
import { type AnyRoute, projectRow, route } from "../http/route"
import { count, flag, id, maybe, time, word } from "../lib/record-fields"
import { PLAN_NAMES } from "../plans/plans"
import type { Store } from "../store/store"
import { AI_ACTIONS, AI_TIERS } from "./actions"
import { project_id, titled } from "./ai-schemas"
import { aiUsage, entitlementOf, inSomeProject } from "./ai-usage"
import { requireOwnProject } from "./gates"

const ofActions = (example: number, description: string) =>
  t.Object(Object.fromEntries(AI_ACTIONS.map((action) => [action, count(example)])), {
    description,
  })

const Entitlement = titled("AiEntitlement", {
  project_id: id("The project of the caller, which each call must name."),
  enabled: flag(true, "Whether the plan and the project allow AI authoring."),
  plan: word(PLAN_NAMES),
  required_plan: t.Literal("starter"),
  quotas: ofActions(150, "Calls in a month, by action. -1 is unlimited."),
  used: ofActions(12, "What the account has used of them in this month."),
  gateway_configured: flag(true, "Whether a model can be asked."),
})

const usd = (description = "In US dollars.") => t.Number({ examples: [1.25], description })

const AiUsage = titled("AiUsage", {
  period: t.Object({ start: time(), end: time("The first moment after the period.") }),
  spend_usd: usd("What the calls of the project cost."),
  budget_usd: maybe(usd("The budget of the project in a month. Null means that it has none.")),
  remaining_usd: maybe(usd()),
  projected_usd: usd("What the month costs, if its other days are like those that have begun."),
  by_action: t.Array(
    t.Object({
      action: word(AI_ACTIONS),
      count: count(12, "Calls of the project that count for the quota."),
      limit: count(150, "The quota of the account in a month. -1 is unlimited."),
      spend_usd: usd(),
    }),
  ),
  by_tier: t.Array(t.Object({ tier: word(AI_TIERS), count: count(12), spend_usd: usd() })),
})

const month = { pattern: MONTH, description: "The month as YYYY-MM, in UTC (default: this month)." }

export const aiUsageRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/ai/entitlement", "ai:use"),
    summary: "Show what the plan allows of AI authoring",
    description: "All projects of an account share its quotas. They begin anew with each month.",
    query: t.Object({ project_id: t.Optional(project_id) }),
    response: Entitlement,
    handle: async ({ caller, query }) => {
      requireOwnProject(caller, query.project_id)
      return { data: await entitlementOf(store.read, caller) }
    },
  }),
  route({
    ...projectRow("GET", "/v1/ai/usage", "ai:use|usage:read"),
    summary: "Show what the project spends on AI authoring",
    description: "Calls that run are counted when they end.",
    query: t.Object({ period: t.Optional(t.String(month)) }),
    response: AiUsage,
    handle: async ({ caller, query, request }) => {
      const named = request.headers.get("x-project-id")
      const inside = await inSomeProject(store.read, caller, named)
      return { data: await aiUsage(store.read, inside, query.period ?? currentPeriod()) }
    },
  }),
]
