import { id, index, int, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

/** What was asked of the API and answered, for a few days. No body, no query, no credential. */
export const requestLog = table(
  "request_log",
  {
    id: id(),
    /** Ours, or the caller's own. */
    request_id: text().notNull(),
    /** Null where the caller was not recognized: only the operator sees those. */
    project_id: ref(),
    key_id: ref(),
    method: text().notNull(),
    path: text().notNull(),
    status: int().notNull(),
    duration_ms: int().notNull(),
    ip: text().notNull(),
    error_code: text(),
    created_at: time().notNull(),
  },
  (entry) => [
    index("request_log_by_project").on(entry.project_id, entry.id),
    index("request_log_by_request").on(entry.request_id, entry.id),
  ],
)
life(requestLog, {
  owner: "project",
  ends: "retention.request_log",
  late: true,
  personal: { searched: ["path"] },
})
