import { id, index, json, ref, table, text, time, uniqueIndex } from "../store/columns"

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
    /** The owner whose free accounts are counted together; null until somebody adopts it. */
    owner_user_id: ref(),
    status: text<AccountStatus>().notNull(),
    status_reason: text(),
    sending_status: text<SendingStatus>().notNull(),
    sending_status_reason: text(),
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

/** One value of the instance itself, sealed where it is a secret. */
export const instanceValues = table("instance_values", {
  name: id(),
  value: text().notNull(),
})
