import type { AccountRole, ProjectRole } from "../identity/tables"
import {
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
import { life } from "../store/life"

/** The roles in projects that an invitation brings with it. */
export interface ProjectGrant {
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
    projects: json<ProjectGrant[]>().notNull(),
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
life(invitations, { owner: "account", ends: "after 90 days" })

/**
 * The sends of a project to one country in one hour, and how many there may be, which is decided with the first
 * one. The hours before say what is usual.
 */
export const countryHours = table(
  "country_hours",
  {
    project_id: ref().notNull(),
    /** `+43` */
    prefix: text().notNull(),
    /** Hours since 1970. */
    hour: int().notNull(),
    sends: int().notNull(),
    most: int().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.project_id, row.prefix, row.hour] }),
    index("country_hours_by_hour").on(row.hour),
  ],
)
life(countryHours, { owner: "project", ends: "after 8 days" })

/** What each project used a day, in UTC. The shards keep writers on Postgres from waiting. */
export const usageDays = table(
  "usage_days",
  {
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    /** `YYYY-MM-DD` */
    day: text().notNull(),
    metric: text().notNull(),
    shard: int().notNull(),
    value: int().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.account_id, row.day, row.project_id, row.metric, row.shard] }),
    index("usage_days_by_project").on(row.project_id, row.day),
  ],
)
life(usageDays, { owner: "account", ends: "after 3 years", late: true })
