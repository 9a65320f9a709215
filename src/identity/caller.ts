import type { Actor } from "../audit-log/tables"
import { type Limits, limitsOf } from "../plans/plans"
import {
  type AccountRole,
  type AccountSettings,
  type AccountStatus,
  accounts,
  type ProjectRole,
  type ProjectSettings,
  type SendingStatus,
} from "./tables"

/** Whoever the guard let in: by an API key, by a console session, or nobody in particular. */
export interface Caller {
  kind: "key" | "console" | "none"
  /** For the audit log and for `created_by`. */
  actor: Actor
  key_id: string | null
  user_id: string | null
  session_id: string | null
  /** Empty where the route needs none. */
  account_id: string
  project_id: string
  /** A key's own; a console caller's follow from the role in the project. */
  scopes: string[]
  /** The only domain that a key may send from; null for any of its project. */
  domain_id: string | null
  account_role: AccountRole | null
  project_role: ProjectRole | null
  /** The person who runs this instance. */
  operator: boolean
  /** A key's allowlist; empty lets in every address. */
  ip_addresses: string[]
  /** When a key ends; null for never, and for people. */
  expires_at: string | null
  plan: string
  limits: Limits
  /** What the monthly quotas are counted under: the account, or the user for free accounts. */
  quota_subject: string
  account_status: AccountStatus
  sending_status: SendingStatus
  sending_status_reason: string | null
  project_settings: ProjectSettings
  account_settings: AccountSettings
  ip: string
}

export const ACCOUNT_DEFAULTS: AccountSettings = {
  track_opens: true,
  track_clicks: true,
  require_mfa: false,
}

/** What holds where a project says nothing. */
export const PROJECT_DEFAULTS: ProjectSettings = {
  default_from: null,
  default_reply_to: null,
  sandbox: false,
  allow_subdomains: false,
}

/** Only what was changed is stored. */
export const withDefaults = (stored: Partial<ProjectSettings>): ProjectSettings => ({
  ...PROJECT_DEFAULTS,
  ...stored,
})

/** A caller without any credential, on routes that anybody may call. */
export const nobody = (ip: string): Caller => ({
  kind: "none",
  actor: { type: "system", id: null, name: null },
  key_id: null,
  user_id: null,
  session_id: null,
  account_id: "",
  project_id: "",
  scopes: [],
  domain_id: null,
  account_role: null,
  project_role: null,
  operator: false,
  ip_addresses: [],
  expires_at: null,
  plan: "",
  limits: limitsOf({ plan: "free", limits: null }),
  quota_subject: "",
  account_status: "active",
  sending_status: "active",
  sending_status_reason: null,
  project_settings: PROJECT_DEFAULTS,
  account_settings: ACCOUNT_DEFAULTS,
  ip,
})

/** The columns from which `accountFacts` are made. */
export const account_columns = {
  account_id: accounts.id,
  plan: accounts.plan,
  limits: accounts.limits,
  owner_user_id: accounts.owner_user_id,
  deleting_at: accounts.deleting_at,
  account_status: accounts.status,
  account_settings: accounts.settings,
  sending_status: accounts.sending_status,
  sending_status_reason: accounts.sending_status_reason,
}

export interface AccountColumns {
  account_id: string
  plan: string
  limits: Record<string, number | null> | null
  owner_user_id: string | null
  account_status: AccountStatus
  account_settings: AccountSettings
  sending_status: SendingStatus
  sending_status_reason: string | null
}

/** What a caller knows of its account. */
export const accountFacts = (row: AccountColumns) => ({
  account_id: row.account_id,
  plan: row.plan,
  limits: limitsOf(row),
  quota_subject: quotaSubject({ ...row, id: row.account_id }),
  account_status: row.account_status,
  account_settings: row.account_settings,
  sending_status: row.sending_status,
  sending_status_reason: row.sending_status_reason,
})

/** A user's free accounts share one set of limits (contract 10, section 5). */
export const quotaSubject = (account: {
  id: string
  plan: string
  owner_user_id: string | null
}): string => {
  const { id, plan, owner_user_id } = account
  return plan === "free" && owner_user_id ? `user:${owner_user_id}` : id
}
