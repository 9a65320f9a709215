import { and, eq, isNull } from "drizzle-orm"
import type { Actor } from "../audit-log/tables"
import { settings } from "../core/config"
import { type Limits, limitsOf } from "../plans/plans"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import type { AccountReputation } from "./account-reputation"
import {
  type AccountRole,
  type AccountSettings,
  type AccountStatus,
  accounts,
  type ProjectRole,
  type ProjectSettings,
  projects,
  type SendingStatus,
} from "./tables"

/** The origins whose pages may speak for a caller. */
export type AllowedOrigins = readonly string[] | "any"

/** The application of a credential, and its environment where the credential has one. */
export interface BoundApplication {
  id: string
  environment: "live" | "test" | null
  /** Null exactly where `environment` is. */
  environment_id: string | null
}

/** An end user with an access token. Their subscriber, if they are one, is the caller's `subscriber_id`. */
export interface EndUser {
  id: string
  session_id: string
  /** Somebody of the project acts as the user. */
  impersonated: boolean
  /** The session needs a second factor for all but a few routes, and has none. */
  lacks_factor: boolean
}

/** The party that the guard let in: a key, a person of the console, an application, one of its users, a subscriber, or nobody known. */
export interface Caller {
  kind: "key" | "console" | "app" | "user" | "subscriber" | "none"
  /** For the audit log and for `created_by`. */
  actor: Actor
  key_id: string | null
  user_id: string | null
  session_id: string | null
  subscriber_id: string | null
  /** What a public key, a secret or an end user's token binds. */
  application: BoundApplication | null
  end_user: EndUser | null
  /** Empty where the route needs none. */
  account_id: string
  project_id: string
  /** A key's own; a console caller's follow from the role in the project. */
  scopes: string[]
  /** The only domain that a key may send from; null for any of its project. */
  domain_id: string | null
  account_role: AccountRole | null
  project_role: ProjectRole | null
  operator: boolean
  /** A key's allowlist; empty lets in every address. */
  ip_addresses: string[]
  /** Null for keys and people, which no page of another origin may use. */
  allowed_origins: AllowedOrigins | null
  /** When a key or the token of a subscriber ends; null for never, and for people. */
  expires_at: string | null
  plan: string
  limits: Limits
  /** What the monthly quotas are counted under: the account, or the user for free accounts. */
  quota_subject: string
  account_status: AccountStatus
  sending_status: SendingStatus
  sending_status_reason: string | null
  reputation: AccountReputation | null
  project_settings: ProjectSettings
  account_settings: AccountSettings
  ip: string
}

/** Callers that are programs in a browser. Pages of other origins are answered for them alone. */
export const isBrowserCaller = (kind: Caller["kind"]): boolean =>
  kind === "app" || kind === "user" || kind === "subscriber"

/** The application that the secret of one confines its caller to; undefined for every other caller. */
export const confinedTo = ({ kind, key_id, application }: Caller): string | undefined =>
  kind === "key" && key_id === null ? application?.id : undefined

/** What a new account begins with. All of it is stored, so another default changes no older account. */
export const ACCOUNT_DEFAULTS: AccountSettings = {
  track_opens: false,
  track_clicks: false,
  require_mfa: false,
}

/** What holds where a project says nothing. */
export const PROJECT_DEFAULTS: ProjectSettings = {
  default_from: null,
  default_reply_to: null,
  track_opens: null,
  track_clicks: null,
  allowed_origins: [],
  tracking_domain: null,
  sandbox: false,
  allow_subdomains: false,
  reply_tracking: false,
  inbound: { mode: "catch_all" },
  retention: {
    messages_days: 90,
    bodies_days: 30,
    inbound_days: 30,
    webhook_deliveries_days: 30,
    events_days: 30,
  },
  branding: { name: null, logo_url: null, primary_color: null, support_url: null },
  emit_machine_events: false,
  locale: "en",
  timezone: "UTC",
  quiet_hours: null,
  frequency_cap: null,
  auto_link_users: false,
  ai: { enabled: true, budget_usd: null, allowed_roles: ["admin", "developer"], blocked_tiers: [] },
  default_preferences: null,
  mailbox_chaos: null,
}

/** Only what was changed is stored. */
export const withDefaults = (stored: Partial<ProjectSettings>): ProjectSettings => ({
  ...PROJECT_DEFAULTS,
  ...stored,
})

/** A caller without any credential, on public routes. */
export const nobody = (ip: string): Caller => ({
  kind: "none",
  actor: { type: "system", id: null, name: null },
  key_id: null,
  user_id: null,
  session_id: null,
  subscriber_id: null,
  application: null,
  end_user: null,
  account_id: "",
  project_id: "",
  scopes: [],
  domain_id: null,
  account_role: null,
  project_role: null,
  operator: false,
  ip_addresses: [],
  allowed_origins: null,
  expires_at: null,
  plan: "",
  limits: limitsOf({ plan: "free", limits: null }),
  quota_subject: "",
  account_status: "active",
  sending_status: "active",
  sending_status_reason: null,
  reputation: null,
  project_settings: PROJECT_DEFAULTS,
  account_settings: ACCOUNT_DEFAULTS,
  ip,
})

/** What a caller knows of its account. */
export const accountFacts = (account: typeof accounts.$inferSelect) => ({
  account_id: account.id,
  plan: account.plan,
  limits: limitsOf(account),
  quota_subject: quotaSubject(account),
  account_status: account.status,
  account_settings: account.settings,
  ...sendingStatusOf(account),
  reputation: account.reputation,
})

/**
 * How an account may send. Where reputation is not enforced, only what the operator froze counts: what its rates
 * brought is no more than a row that waits to be assessed again.
 */
export function sendingStatusOf({
  sending_status,
  sending_status_reason,
  reputation,
}: Pick<
  typeof accounts.$inferSelect,
  "sending_status" | "sending_status_reason" | "reputation"
>): Pick<Caller, "sending_status" | "sending_status_reason"> {
  const counts = settings()["reputation.enforced"] || reputation?.cause === "operator"
  if (counts) return { sending_status, sending_status_reason }
  return { sending_status: "active", sending_status_reason: null }
}

/** A user's free accounts share one set of limits (contract 10, section 5). */
export const quotaSubject = ({
  id,
  plan,
  owner_user_id,
}: Pick<typeof accounts.$inferSelect, "id" | "plan" | "owner_user_id">): string =>
  plan === "free" && owner_user_id ? `user:${owner_user_id}` : id

/**
 * The project itself, with the limits of its account: for what it sends without a request. Undefined where
 * the account is not active, and where one of the two is being deleted.
 */
export async function projectCaller(db: Reader, project_id: string): Promise<Caller | undefined> {
  const [found] = await findProject(db, { id: project_id })
  if (!found) return undefined
  const { account, settings } = found
  const project_settings = withDefaults(settings)
  return { ...nobody(""), ...accountFacts(account), project_id, project_settings }
}

const findProject = prepared({ id: projects.id }, (db: Reader, slot) =>
  db
    .select({ account: accounts, settings: projects.settings })
    .from(projects)
    .innerJoin(accounts, eq(accounts.id, projects.account_id))
    .where(
      and(
        eq(projects.id, slot.id),
        eq(projects.status, "active"),
        eq(accounts.status, "active"),
        isNull(accounts.deleting_at),
      ),
    ),
)

/** The code that a request of a project gets of which `projectCaller` is undefined. */
export async function codeOfSilence(
  db: Reader,
  project_id: string,
): Promise<"account_locked" | "account_suspended" | "unauthorized"> {
  const [found] = await db
    .select({ status: accounts.status })
    .from(projects)
    .innerJoin(accounts, eq(accounts.id, projects.account_id))
    .where(eq(projects.id, project_id))
  if (found?.status === "locked") return "account_locked"
  return found?.status === "suspended" ? "account_suspended" : "unauthorized"
}
