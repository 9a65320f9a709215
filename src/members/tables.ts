import { id, index, json, primaryKey, ref, table, text, time, uniqueIndex } from "../store/columns"

export type AccountRole = "owner" | "admin" | "billing_admin" | "member"
export type ProjectRole = "admin" | "developer" | "viewer"

/** Who belongs to an account, and as what. */
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

/** The roles in projects that an invitation brings with it. */
export interface Grant {
  project_id: string
  role: ProjectRole
}

/** An invitation by mail. Only the hash of its token is here; `expired` follows from the clock. */
export const invitations = table(
  "invitations",
  {
    id: id(),
    account_id: ref().notNull(),
    email: text().notNull(),
    email_key: text().notNull(),
    role: text<AccountRole>().notNull(),
    projects: json<Grant[]>().notNull(),
    token_hash: text().notNull(),
    status: text<"pending" | "accepted" | "revoked">().notNull(),
    expires_at: time().notNull(),
    invited_by: ref(),
    created_at: time().notNull(),
    accepted_at: time(),
  },
  (invitation) => [
    uniqueIndex("invitations_by_token").on(invitation.token_hash),
    index("invitations_by_account").on(invitation.account_id, invitation.id),
  ],
)
