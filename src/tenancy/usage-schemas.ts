import { Type as t } from "@sinclair/typebox"
import { PLAN_NAMES } from "../core/config-plans"
import { count, id, maybe, text, time } from "../lib/record-fields"
import { METRICS } from "../plans/metrics"

const UsageShare = t.Object(
  {
    used: count(1200),
    limit: maybe(count(250_000, "Null means unlimited.")),
    remaining: maybe(
      count(
        248_800,
        "What is left of the limit. All projects of the account share it. Null means unlimited.",
      ),
    ),
  },
  { title: "UsageShare" },
)

const shares = {
  email: UsageShare,
  push: UsageShare,
  sms: UsageShare,
  in_app: UsageShare,
  mau: UsageShare,
}

export const UsageShares = t.Object(shares, { title: "UsageShares" })

const totals = (example: number) =>
  t.Object(Object.fromEntries(METRICS.map((metric) => [metric, count(example)])))

const month = text("2026-11", "The month as YYYY-MM, in UTC.")

export const Usage = t.Object(
  {
    period: t.Object({ start: time(), end: time("The first moment after the period.") }),
    ...shares,
    api_requests: count(5400),
    by_day: t.Array(
      t.Object({
        date: t.String({ format: "date" }),
        email: count(60),
        push: count(0),
        sms: count(0),
        in_app: count(0),
      }),
      { description: "One entry for every day that has begun, oldest first." },
    ),
  },
  { title: "Usage" },
)

export const UserUsage = t.Object(
  {
    user_id: id(),
    accounts: t.Array(
      t.Object({
        account_id: id(),
        plan: t.Union(PLAN_NAMES.map((name) => t.Literal(name))),
        usage: totals(1200),
      }),
    ),
    totals: totals(1200),
    free_tier_limits: t.Object(
      Object.fromEntries(METRICS.map((metric) => [metric, maybe(count(3000))])),
    ),
    over: t.Array(text("email"), {
      examples: [[]],
      description: "The metrics whose limit is used up. All your free accounts share these limits.",
    }),
  },
  { title: "UserUsage" },
)

export const UsageReconciliation = t.Object(
  {
    period: month,
    before: totals(1200),
    after: totals(1201),
    drift: totals(1),
    projects_touched: count(1),
  },
  { title: "UsageReconciliation" },
)
