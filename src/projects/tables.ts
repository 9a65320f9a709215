import { accounts } from "../accounts/tables"
import { id, ref, table, text, time, uniqueIndex } from "../store/columns"

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
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (project) => [uniqueIndex("projects_by_slug").on(project.account_id, project.slug)],
)
