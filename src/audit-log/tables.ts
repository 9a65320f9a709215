import { id, index, json, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

export const ACTOR_TYPES = ["key", "user", "local", "system"] as const

/** The author of a change: a person, an API key, the command line on this machine, or Belfry. */
export interface Actor {
  type: (typeof ACTOR_TYPES)[number]
  id: string | null
  name: string | null
}

/**
 * The change, its actor and the actor's address. Rows are added and never touched again, but for two things:
 * where a person is erased, `before` and `after` are emptied, and `retention.audit_log` may end old rows.
 */
export const auditLog = table(
  "audit_log",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref(),
    actor: json<Actor>().notNull(),
    actor_id: ref(),
    action: text().notNull(),
    target_type: text().notNull(),
    /** Of a queue, its name. */
    target_id: text(),
    ip: text(),
    before: json<unknown>(),
    after: json<unknown>(),
    created_at: time().notNull(),
  },
  (entry) => [
    index("audit_log_by_account").on(entry.account_id, entry.id),
    index("audit_log_by_actor").on(entry.account_id, entry.actor_id, entry.id),
  ],
)
life(auditLog, {
  owner: "account",
  ends: "retention.audit_log",
  late: true,
  personal: { searched: ["before", "after"] },
  counts: { name: "audit_log" },
})
