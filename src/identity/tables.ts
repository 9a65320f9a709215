import type { Actor } from "../audit-log/tables"
import type { AiTier } from "../core/config-ai"
import type { ChosenPreferences, FrequencyCap, QuietHours } from "../lib/preferences"
import {
  backupCodeColumns,
  challengeColumns,
  linkColumns,
  passwordHistoryColumns,
  refreshTokenColumns,
  sessionColumns,
  throttleColumns,
} from "../sign-in/person-columns"
import {
  bool,
  id,
  index,
  int,
  json,
  primaryKey,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../store/columns"
import { life, type RetentionDays } from "../store/life"
import type { AccountReputation } from "./account-reputation"

export type AccountStatus = "active" | "locked" | "suspended"
export type SendingStatus = "active" | "throttled" | "frozen"

/** What an account decides for all its projects; a project may decide otherwise on tracking. */
export interface AccountSettings {
  track_opens: boolean
  track_clicks: boolean
  require_mfa: boolean
}

/** The top of the tenancy: a plan, its limits, and projects below it. */
export const accounts = table(
  "accounts",
  {
    id: id(),
    name: text().notNull(),
    slug: text().notNull(),
    plan: text().notNull(),
    /** Numbers of the operator that take the place of the plan's; null in it is unlimited. */
    limits: json<Record<string, number | null> | null>(),
    settings: json<AccountSettings>().notNull(),
    /** The owner whose free accounts are counted together; null until a user adopts the account. */
    owner_user_id: ref(),
    status: text<AccountStatus>().notNull(),
    status_reason: text(),
    sending_status: text<SendingStatus>().notNull(),
    sending_status_reason: text(),
    /** Null for an account that was active ever since. */
    reputation: json<AccountReputation | null>(),
    /** When its owner deleted it: nothing answers for it, and a week later it is gone. */
    deleting_at: time(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (account) => [
    uniqueIndex("accounts_by_slug").on(account.slug),
    index("accounts_by_owner").on(account.owner_user_id),
  ],
)
life(accounts, { owner: "account", ends: "never" })

/** Shares of the recipients between 0 and 1, together at most 1. */
export interface MailboxChaos {
  bounce_rate: number
  defer_rate: number
  refuse_rate: number
  /** Before the answer to each mail. */
  delay_ms: number
}

/** What a project decides for itself. Only what was changed is stored; the rest are defaults. */
export interface ProjectSettings {
  /** The sender of mail that names none. */
  default_from: { email: string; name: string | null } | null
  default_reply_to: string | null
  /** Whether html mail is tracked, where the mail does not say; null is what the account says. */
  track_opens: boolean | null
  track_clicks: boolean | null
  /** The origins of pages that may use a subscriber's token; none listed is every one. */
  allowed_origins: string[]
  /** The host of pixels and tracked links, where the sender's domain has none. */
  tracking_domain: string | null
  /** Everything goes to the embedded mailbox, and counts no quota. */
  sandbox: boolean
  /** A verified domain may also be sent from below. */
  allow_subdomains: boolean
  /** Answers to emails without `reply_to` come back to an address that names the email. */
  reply_tracking: boolean
  /** Which addresses of receiving domains take mail: all, or those that a route matches. */
  inbound: { mode: InboundMode }
  /** What pages for recipients show. */
  branding: Branding
  /** For how many days what belongs to the project is kept. */
  retention: Retention
  /** Openings and clicks of machines make events, too. */
  emit_machine_events: boolean
  /** The language of subscribers without one, as a tag of BCP 47. */
  locale: string
  /** The IANA zone of subscribers without one, and of times in templates. */
  timezone: string
  /** Of subscribers without quiet hours of their own. */
  quiet_hours: QuietHours | null
  frequency_cap: FrequencyCap | null
  /** A verified end user becomes the subscriber whose external id is the id of the user. */
  auto_link_users: boolean
  /** What the project may use of AI authoring. */
  ai: AiSettings
  /** What holds for subscribers without a choice. Its routes show `quiet_hours` as a part of it. */
  default_preferences: ChosenPreferences | null
  /** What goes wrong in the embedded mailbox on purpose. It has routes of its own. */
  mailbox_chaos: MailboxChaos | null
}

export interface AiSettings {
  enabled: boolean
  /** What the project may spend on models in a month; null is as much as the server allows. */
  budget_usd: number | null
  /** The roles of people that may use it. A key needs none. */
  allowed_roles: ProjectRole[]
  blocked_tiers: AiTier[]
}

/** For how many days rows are kept. */
export type Retention = Record<RetentionDays, number>

export interface Branding {
  name: string | null
  logo_url: string | null
  /** `#rgb` or `#rrggbb`. */
  primary_color: string | null
  support_url: string | null
}

export const INBOUND_MODES = ["catch_all", "routes"] as const

export type InboundMode = (typeof INBOUND_MODES)[number]

/** An isolated environment within an account: every other row names one. */
export const projects = table(
  "projects",
  {
    id: id(),
    account_id: ref()
      .notNull()
      .references(() => accounts.id),
    name: text().notNull(),
    slug: text().notNull(),
    status: text<"active" | "deleting">().notNull(),
    settings: json<Partial<ProjectSettings>>().notNull(),
    /** The instance's own project: no key, no member and no list reaches it. */
    hidden: bool().notNull(),
    deleting_at: time(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (project) => [uniqueIndex("projects_by_slug").on(project.account_id, project.slug)],
)
life(projects, { owner: "account", ends: "never" })

export type AccountRole = "owner" | "admin" | "billing_admin" | "member"
export type ProjectRole = "admin" | "developer" | "viewer"

/** The members of accounts and their roles. */
export const accountMembers = table(
  "account_members",
  {
    account_id: ref().notNull(),
    user_id: ref().notNull(),
    role: text<AccountRole>().notNull(),
    joined_at: time().notNull(),
    last_active_at: time(),
  },
  (member) => [
    primaryKey({ columns: [member.account_id, member.user_id] }),
    index("account_members_by_user").on(member.user_id),
  ],
)
life(accountMembers, { owner: "account", ends: "never", counts: { name: "members" } })

/** Roles given in one project. Owners and admins of the account need none: they are admins. */
export const projectMembers = table(
  "project_members",
  {
    project_id: ref().notNull(),
    user_id: ref().notNull(),
    role: text<ProjectRole>().notNull(),
    added_at: time().notNull(),
  },
  (member) => [
    primaryKey({ columns: [member.project_id, member.user_id] }),
    index("project_members_by_user").on(member.user_id),
  ],
)
life(projectMembers, { owner: "project", ends: "never" })

export const apiKeys = table(
  "api_keys",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    name: text().notNull(),
    /** The 8 characters after `svc_live_`: finds the row, proves nothing. */
    lookup: text().notNull(),
    key_hash: text().notNull(),
    prefix: text().notNull(),
    last4: text().notNull(),
    scopes: json<string[]>().notNull(),
    /** The only domain that it sends from. A domain that was deleted is none at all. */
    domain_id: ref(),
    ip_addresses: json<string[]>().notNull(),
    created_by: json<Pick<Actor, "type" | "id">>().notNull(),
    expires_at: time(),
    last_used_at: time(),
    last_used_ip: text(),
    created_at: time().notNull(),
    revoked_at: time(),
    /** The key that a rotation put in its place. */
    successor_id: ref(),
  },
  (key) => [
    uniqueIndex("api_keys_by_lookup").on(key.lookup),
    index("api_keys_by_project").on(key.project_id, key.id),
  ],
)
life(apiKeys, { owner: "project", ends: "after a year after their end" })

/** People that sign in to run accounts and projects. End users of a project live elsewhere. */
export const consoleUsers = table(
  "console_users",
  {
    id: id(),
    /** As its owner wrote it; `email_key` is the form in which addresses compare. */
    email: text().notNull(),
    email_key: text().notNull(),
    name: text(),
    locale: text(),
    timezone: text(),
    password_hash: text().notNull(),
    /** Runs the instance. */
    operator: bool().notNull(),
    status: text<"active" | "locked">().notNull(),
    /** Sealed. Present while codes are asked for at sign-in. */
    mfa_secret: text(),
    /** Sealed: the secret and the hashed recovery codes of an enrolment that waits for its proof. */
    mfa_pending: text(),
    mfa_pending_at: time(),
    /** The time step of the last code taken: no code works twice (RFC 6238, 5.2). */
    mfa_last_step: int(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
    last_login_at: time(),
  },
  (user) => [uniqueIndex("console_users_by_email").on(user.email_key)],
)
const ENROLL = "people sign in with their password, then run `belfry me mfa enroll`"
life(consoleUsers, {
  owner: "user",
  ends: "never",
  sealed: {
    mfa_secret: { what: "second factors", remedy: ENROLL, drop: "value" },
    mfa_pending: { what: "second factors that are being set up", remedy: ENROLL, drop: "value" },
  },
})

/** One sign-in: all refresh tokens that descend from it die with it. */
export const consoleSessions = table(
  "console_sessions",
  { ...sessionColumns(), client_name: text() },
  (session) => [
    index("console_sessions_by_user").on(session.user_id, session.id),
    index("console_sessions_by_expiry").on(session.expires_at),
  ],
)
life(consoleSessions, { owner: "user", ends: "after 30 days without use" })

/** Used ones stay until they expire, so that a second use is noticed. */
export const refreshTokens = table("refresh_tokens", refreshTokenColumns(), (token) => [
  index("refresh_tokens_by_session").on(token.session_id),
  index("refresh_tokens_by_expiry").on(token.expires_at),
])
life(refreshTokens, {
  owner: "user",
  ends: "after 30 days without use",
  sealed: {
    successor: {
      what: "sign-ins that were just renewed",
      remedy: "nothing; a repeated request signs in again",
      drop: "value",
    },
  },
})

/** RFC 8628: a program without a browser asks a person elsewhere to let it in. */
export const deviceCodes = table(
  "device_codes",
  {
    id: id(),
    device_code_hash: text().notNull(),
    user_code_hash: text().notNull(),
    client_name: text().notNull(),
    ip: text(),
    status: text<"pending" | "approved" | "denied" | "used">().notNull(),
    user_id: ref(),
    /** Grows by five seconds whenever the program asks too early. */
    interval_seconds: int().notNull(),
    last_polled_at: time(),
    created_at: time().notNull(),
    expires_at: time().notNull(),
  },
  (code) => [
    uniqueIndex("device_codes_by_device").on(code.device_code_hash),
    uniqueIndex("device_codes_by_user").on(code.user_code_hash),
    index("device_codes_by_expiry").on(code.expires_at),
  ],
)
life(deviceCodes, { owner: "user", ends: "after minutes" })

/** The password was right; the second factor is awaited. */
export const mfaChallenges = table("mfa_challenges", challengeColumns(), (challenge) => [
  index("mfa_challenges_by_expiry").on(challenge.expires_at),
])
life(mfaChallenges, { owner: "user", ends: "after minutes" })

/** Each opens the second door once. */
export const backupCodes = table("backup_codes", backupCodeColumns(), (code) => [
  primaryKey({ columns: [code.user_id, code.code_hash] }),
])
life(backupCodes, { owner: "user", ends: "never" })

export const passwordResets = table(
  "password_resets",
  { ...linkColumns(), user_id: ref().notNull() },
  (reset) => [
    index("password_resets_by_user").on(reset.user_id),
    index("password_resets_by_expiry").on(reset.expires_at),
  ],
)
life(passwordResets, { owner: "user", ends: "after an hour" })

/** The last few passwords of a user, the present one among them. */
export const passwordHistory = table("password_history", passwordHistoryColumns(), (entry) => [
  index("password_history_by_user").on(entry.user_id, entry.id),
])
life(passwordHistory, { owner: "user", ends: "never" })

/** Attempts at something that can be guessed. The subject is a MAC: it reveals no address or user. */
export const throttles = table("throttles", throttleColumns(), (throttle) => [
  index("throttles_by_end").on(throttle.ends_at),
])
life(throttles, { owner: "instance", ends: "after hours" })
