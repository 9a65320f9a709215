import { index, int, key, primaryKey, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

/**
 * What a request with an `Idempotency-Key` was answered, committed with what it made. The answer
 * is sealed where it holds a secret.
 */
export const idempotency = table(
  "idempotency",
  {
    /** Project, method, path and the caller's key: one request of one project. */
    request: key(),
    project_id: ref().notNull(),
    body_hash: text().notNull(),
    status: int().notNull(),
    answer: text().notNull(),
    created_at: time().notNull(),
  },
  (row) => [index("idempotency_by_age").on(row.created_at)],
)
life(idempotency, {
  owner: "project",
  ends: "after 24 hours",
  sealed: {
    answer: {
      what: "answers kept for repeated requests",
      remedy: "nothing; they last one day",
      drop: "row",
      plain_too: true,
    },
  },
  personal: { searched: ["request", "answer"] },
})

/** What all nodes together were given of a window of requests; only Postgres has several nodes. */
export const rateWindows = table(
  "rate_windows",
  {
    name: text().notNull(),
    ends: time().notNull(),
    given: int().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.name, row.ends] }),
    index("rate_windows_by_end").on(row.ends),
  ],
)
life(rateWindows, { owner: "instance", ends: "after minutes" })
