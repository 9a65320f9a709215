import { Type as t } from "@sinclair/typebox"
import { PLAN_NAMES } from "../core/config-plans"
import { count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { METRICS } from "../plans/metrics"
import { UsageShares } from "./usage-schemas"

export const AccountSettings = t.Object({
  track_opens: flag(true),
  track_clicks: flag(true),
  require_mfa: flag(false),
})

const limits = t.Record(t.String(), maybe(t.Integer()), {
  examples: [{ requests_per_minute: 600, emails_per_month: 250_000, projects: 10 }],
  description: "Null means unlimited.",
})

const account = {
  id: id(),
  name: text("Acme"),
  slug: text("acme"),
  plan: word(PLAN_NAMES),
  status: word(["active", "locked", "suspended"]),
  sending_status: word(["active", "throttled", "frozen"]),
  sending_status_reason: rarely(text("bounce_rate=6.1%;threshold=5%;window=7d")),
  limits,
  usage: UsageShares,
  settings: AccountSettings,
  created_at: time(),
  updated_at: time(),
}

export const Account = t.Object(account, { title: "Account" })

export const AccountRole = word(["owner", "admin", "billing_admin", "member"])

export const JoinedAccount = t.Object(
  { ...account, role: AccountRole },
  { title: "JoinedAccount", description: "An account, with your role in it." },
)

export const AccountPlan = t.Object(
  {
    plan: word(PLAN_NAMES),
    limits,
    features: t.Object({
      smtp_submission: flag(true),
      tracking_domain: flag(true),
      ai_authoring: flag(true),
    }),
    usage: UsageShares,
  },
  { title: "AccountPlan" },
)

export const ProjectBreakdown = t.Object(
  {
    project_id: id(),
    name: text("Default"),
    usage: t.Object(Object.fromEntries(METRICS.map((metric) => [metric, count(120)]))),
    resources: t.Object({
      domains: count(2),
      webhooks: count(1),
      templates: count(0),
      subscribers: count(0),
      api_keys: count(3),
    }),
  },
  { title: "ProjectBreakdown" },
)

const Counted = t.Object(
  { used: count(3), limit: maybe(count(10, "Null means unlimited.")) },
  { title: "ResourceCount" },
)

export const ResourceCounts = t.Object(
  {
    projects: Counted,
    webhooks: Counted,
    domains: Counted,
    subscribers: Counted,
    templates: Counted,
    api_keys: Counted,
    organizations: Counted,
    members: Counted,
  },
  { title: "ResourceCounts" },
)
