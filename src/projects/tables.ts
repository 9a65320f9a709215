import { accounts } from "../accounts/tables"
import { bool, id, json, ref, table, text, time, uniqueIndex } from "../store/columns"

/** What a project decides for itself. Only what was changed is stored; the rest are defaults. */
export interface ProjectSettings {
  /** The sender of whatever names none. */
  default_from: { email: string; name: string | null } | null
  default_reply_to: string | null
  /** Everything goes to the embedded mailbox, and counts no quota. */
  sandbox: boolean
  /** A verified domain may also be sent from below. */
  allow_subdomains: boolean
}

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
