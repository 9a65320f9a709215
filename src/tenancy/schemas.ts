import { Type as t } from "@sinclair/typebox"
import { PLAN_NAMES } from "../core/config-plans"
import { count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { METRICS } from "../plans/plans"

export const UsageShare = t.Object(
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

const UsageShares = t.Object(shares, { title: "UsageShares" })

const StoredMegabytes = t.Object(
  {
    used: count(120),
    limit: maybe(count(5000, "The limit of each project. Null means unlimited.")),
    remaining: maybe(count(4880, "What is left of the limit. Null means unlimited.")),
  },
  {
    title: "StoredMegabytes",
    description:
      "What the project stores now: contents and attachments of its messages, received and caught mail. Null where the answer is about several projects.",
  },
)

const totals = (example: number) =>
  t.Object(Object.fromEntries(METRICS.map((metric) => [metric, count(example)])))

const month = text("2026-11", "The month as YYYY-MM, in UTC.")

export const Usage = t.Object(
  {
    period: t.Object({ start: time(), end: time("The first moment after the period.") }),
    ...shares,
    stored_mb: maybe(StoredMegabytes),
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

export const AccountSettings = t.Object({
  track_opens: flag(false),
  track_clicks: flag(false),
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

export const ProjectRole = word(["admin", "developer", "viewer"])

export const Project = t.Object(
  {
    id: id(),
    account_id: id(),
    name: text("Website"),
    slug: text("website"),
    status: word(["active", "deleting"]),
    sandbox: flag(false, "Whether the embedded mailbox catches all mail of the project."),
    created_at: time(),
    updated_at: time(),
  },
  { title: "Project" },
)

export const InvitationStatus = word(["pending", "accepted", "revoked", "expired"])

export const Invitation = t.Object(
  {
    id: id(),
    email: text("ben@example.com"),
    role: AccountRole,
    projects: t.Array(t.Object({ project_id: id(), role: ProjectRole })),
    status: InvitationStatus,
    expires_at: time(),
    invited_by: maybe(id()),
    created_at: time(),
  },
  { title: "Invitation" },
)

export const Member = t.Object(
  {
    user_id: id(),
    email: text("ann@example.com"),
    name: maybe(text("Ann")),
    role: AccountRole,
    mfa_enabled: flag(true),
    joined_at: time(),
    last_active_at: maybe(time()),
  },
  { title: "Member" },
)

export const ProjectMember = t.Object(
  {
    user_id: id(),
    email: text("ann@example.com"),
    name: maybe(text("Ann")),
    role: ProjectRole,
    inherited: flag(false, "Whether the role comes from the account."),
    added_at: time(),
  },
  { title: "ProjectMember" },
)

export const NewProjectMember = t.Object({
  user_id: t.Optional(t.String()),
  email: t.Optional(t.String()),
  role: ProjectRole,
})
