import type { Actor } from "../audit-log/tables"
import type { AccountRole, AccountSettings } from "../identity/tables"
import type { Limits } from "../plans/plans"
import type { AccountStatus, ProjectRole, ProjectSettings, SendingStatus } from "./tables"

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
  /** A key's own; a console caller's follow from his role in the project. */
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

/** A user's free accounts share one set of limits (contract 10, section 5). */
export function quotaSubject(account: {
  id: string
  plan: string
  owner_user_id: string | null
}): string {
  const { id, plan, owner_user_id } = account
  return plan === "free" && owner_user_id ? `user:${owner_user_id}` : id
}
