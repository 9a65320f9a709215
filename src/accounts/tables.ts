import { id, table, text, time } from "../store/columns"

export type SendingStatus = "active" | "throttled" | "frozen"

/** The top of the tenancy: a plan, its limits, and projects below it. */
export const accounts = table("accounts", {
  id: id(),
  name: text().notNull(),
  slug: text().notNull(),
  plan: text().notNull(),
  status: text<"active" | "locked" | "suspended">().notNull(),
  sending_status: text<SendingStatus>().notNull(),
  sending_status_reason: text(),
  created_at: time().notNull(),
  updated_at: time().notNull(),
})

/** One value of the instance itself, sealed where it is a secret. */
export const instanceValues = table("instance_values", {
  name: id(),
  value: text().notNull(),
})
