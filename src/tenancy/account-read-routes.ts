import { Type as t } from "@sinclair/typebox"
import { now } from "../core/time"
import { countByProject } from "../domains/domains"
import { MONTH } from "../http/field-schemas"
import { type AnyRoute, route } from "../http/route"
import { featuresOf, limitsOf, type PlanName } from "../plans/plans"
import type { Store } from "../store/store"
import { usageOfAccount } from "./account-usage"
import * as accounts from "./accounts"
import { breakdown, resourceCounts } from "./resources"
import { AccountPlan, ProjectBreakdown, ResourceCounts } from "./schemas"

const periodQuery = t.Object({
  period: t.Optional(
    t.String({
      pattern: MONTH,
      description: "The month as YYYY-MM, in UTC (default: this month).",
    }),
  ),
})

/** What an account pays for and what it uses: also for those who only see the bill. */
export const accountReadRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...read("plan", "Show the plan, its limits and its usage"),
    description: "A null limit means unlimited. `usage` counts the current month in UTC.",
    response: AccountPlan,
    handle: async ({ caller }) => {
      const account = await accounts.find(store.read, caller.account_id)
      const plan = account.plan as PlanName
      const usage = await usageOfAccount(store.read, account)
      return { data: { plan, limits: limitsOf(account), features: featuresOf(plan), usage } }
    },
  }),
  route({
    ...read("project-breakdown", "Show the usage and the resources of each project"),
    description:
      "Shows every project of the account with its usage of one month. `resources` counts what the project has now.",
    query: periodQuery,
    response: t.Array(ProjectBreakdown),
    handle: async ({ caller, query }) => {
      const period = query.period ?? now().slice(0, "2026-11".length)
      const { account_id } = caller
      const domains = await countByProject(store.read, account_id)
      return { data: await breakdown(store.read, account_id, period, domains) }
    },
  }),
  route({
    ...read("resource-counts", "Show the number of resources and their limits"),
    description: "A null limit means unlimited.",
    response: ResourceCounts,
    handle: async ({ caller }) => {
      const account = await accounts.find(store.read, caller.account_id)
      const domains = await countByProject(store.read, account.id)
      return { data: await resourceCounts(store.read, account, domains) }
    },
  }),
]

const read = (name: string, summary: string) => ({
  method: "GET" as const,
  path: `/v1/accounts/me/${name}`,
  callers: ["console"] as AnyRoute["callers"],
  scope: "role:billing",
  status: [200] as [number],
  summary,
})
