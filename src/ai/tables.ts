import { id, index, int, primaryKey, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"
import type { AiAction } from "./actions"

/** What an account has used of an action's quota in one month, with what open calls hold. */
export const aiQuotas = table(
  "ai_quotas",
  {
    account_id: ref().notNull(),
    /** `YYYY-MM`, in UTC. */
    period: text().notNull(),
    action: text<AiAction>().notNull(),
    used: int().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.account_id, row.period, row.action] }),
    index("ai_quotas_by_period").on(row.period),
  ],
)
life(aiQuotas, { owner: "account", ends: "after 3 years" })

/** What a project has spent on an action in one month. */
export const aiSpending = table(
  "ai_spending",
  {
    project_id: ref().notNull(),
    period: text().notNull(),
    action: text<AiAction>().notNull(),
    /** Calls that took from the quota. */
    count: int().notNull(),
    /** Millionths of a US dollar: the costs of ended calls. */
    spent_micro: int().notNull(),
    /** The largest possible costs of open calls. */
    held_micro: int().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.project_id, row.period, row.action] }),
    index("ai_spending_by_period").on(row.period),
  ],
)
life(aiSpending, { owner: "project", ends: "after 3 years" })

/** What all projects together have spent in one month. The ceiling of the instance is compared with it. */
export const aiInstanceSpending = table("ai_instance_spending", {
  period: text().primaryKey(),
  spent_micro: int().notNull(),
  held_micro: int().notNull(),
})
life(aiInstanceSpending, { owner: "instance", ends: "after 3 years" })

/** Open calls. A row that outlives its lease is what a crash left: its quota and its money are given back. */
export const aiCalls = table(
  "ai_calls",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    action: text<AiAction>().notNull(),
    period: text().notNull(),
    held_micro: int().notNull(),
    lease_until: time().notNull(),
  },
  (row) => [index("ai_calls_by_lease").on(row.lease_until)],
)
life(aiCalls, { owner: "project", ends: "after 3 minutes" })

export type AiCallRow = typeof aiCalls.$inferSelect
