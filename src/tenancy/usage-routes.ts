import { type Static, Type as t } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { currentPeriod } from "../core/time"
import { MONTH } from "../http/field-schemas"
import { type AnyRoute, type Call, consoleRow, projectRow, route } from "../http/route"
import type { Caller } from "../identity/caller"
import { accounts } from "../identity/tables"
import { reconcile } from "../messages/reconcile"
import { limitsOfPlan, METRICS, type PlanName } from "../plans/plans"
import type { Reader, Store } from "../store/store"
import * as projects from "./projects"
import { Usage, UsageReconciliation, UserUsage } from "./schemas"
import { emptyTotals, report, shares, totals, type UsageTotals } from "./usage"

const period = t.String({
  pattern: MONTH,
  description: "The month as YYYY-MM, in UTC (default: this month).",
})

const usageQuery = t.Object({
  period: t.Optional(period),
  project_id: t.Optional(t.String({ description: "The id of a project, to see only its usage." })),
})

const Reconciliation = t.Object({ period: t.Optional(period) })

export const usageRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/usage", "usage:read"),
    summary: "Show the usage of a month and what is left",
    description:
      "Belfry counts an email once for each recipient, including cc and bcc. An API key sees its own project. People see the whole account, or the project that they name.",
    query: usageQuery,
    response: Usage,
    handle: async (call) => ({ data: await usage(store, call) }),
  }),
  route({
    ...consoleRow("GET", "/v1/usage/user-aggregate", "role:any"),
    summary: "Show the usage of all accounts that you own",
    description:
      "Free accounts of one owner share one set of limits. `over` names the limits that are used up.",
    response: UserUsage,
    handle: async ({ caller }) => ({ data: await aggregate(store.read, caller.user_id ?? "") }),
  }),
  route({
    ...consoleRow("POST", "/v1/usage/reconcile", "role:account_admin"),
    summary: "Count the usage of a month again and correct it",
    description:
      "Counts the messages of the month again and corrects the counters by `drift`. The project can send at the same time.",
    body: Reconciliation,
    example: { period: "2026-11" },
    response: UsageReconciliation,
    handle: async ({ caller, body }) => ({ data: await recount(store, caller, body.period) }),
  }),
]

async function usage({ read }: Store, call: Call<unknown, Static<typeof usageQuery>>) {
  const { caller, query, request } = call
  const { account_id, limits, quota_subject } = caller
  const named = query.project_id ?? request.headers.get("x-project-id")
  const project_id = await projectOf(read, caller, named)
  const period = query.period ?? currentPeriod()
  return report(read, { account_id, project_id, period, limits, quota_subject })
}

/** A key reads the usage of its own project; members that see the bill read the usage of all projects. */
async function projectOf(db: Reader, caller: Caller, named: string | null) {
  if (caller.kind === "key" || caller.project_id) {
    if (named === null || named === caller.project_id) return caller.project_id
    return fail("not_found", "There is no such project.")
  }
  return named === null ? undefined : (await projects.project.find(db, caller.account_id, named)).id
}

async function aggregate(db: Reader, user_id: string) {
  const own = eq(accounts.owner_user_id, user_id)
  const rows = await db.select().from(accounts).where(own).orderBy(accounts.id)
  const month = currentPeriod()
  const sums = { all: emptyTotals(), free: emptyTotals() }
  const listed = rows.map(async ({ id, plan }) => {
    const used = await totals(db, { account_ids: [id], period: month })
    addUp(sums.all, used)
    if (plan === "free") addUp(sums.free, used)
    return { account_id: id, plan: plan as PlanName, usage: pick(used) }
  })
  const told = await Promise.all(listed)
  const limits = limitsOfPlan("free")
  const free = shares(sums.free, sums.free, limits)
  return {
    user_id,
    accounts: told,
    totals: pick(sums.all),
    free_tier_limits: Object.fromEntries(METRICS.map((metric) => [metric, free[metric].limit])),
    over: METRICS.filter((metric) => free[metric].remaining === 0 && free[metric].used > 0),
  }
}

function addUp(sum: UsageTotals, more: UsageTotals) {
  for (const metric of METRICS) sum[metric] += more[metric]
}

const pick = (all: UsageTotals) =>
  Object.fromEntries(METRICS.map((metric) => [metric, all[metric]]))

async function recount(store: Store, caller: Caller, asked: string | undefined) {
  const period = asked ?? currentPeriod()
  const { account_id, quota_subject } = caller
  const result = await reconcile(store, { account_id, quota_subject, period })
  const target = { type: "account", id: account_id }
  await store.tx((tx) =>
    audit.record(tx, caller, { account_id, target, action: "usage.reconciled", after: result }),
  )
  return result
}
