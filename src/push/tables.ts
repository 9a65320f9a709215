import { index, int, primaryKey, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

export const ACKS = ["delivered", "opened", "dismissed"] as const

export type Ack = (typeof ACKS)[number]

/** What the device of a push message told of it, each once. */
export const pushAcks = table(
  "push_acks",
  {
    message_id: ref().notNull(),
    event: text<Ack>().notNull(),
    project_id: ref().notNull(),
    created_at: time().notNull(),
  },
  (ack) => [primaryKey({ columns: [ack.message_id, ack.event] })],
)
life(pushAcks, { owner: "project", ends: "with row", names: { message_id: "messages" } })

/** Push messages by the day (UTC) on which their devices told this of them first. */
export const pushDays = table(
  "push_days",
  {
    project_id: ref().notNull(),
    /** `YYYY-MM-DD` */
    day: text().notNull(),
    fact: text<Ack>().notNull(),
    shard: int().notNull(),
    messages: int().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.project_id, row.day, row.fact, row.shard] }),
    index("push_days_by_day").on(row.day),
  ],
)
life(pushDays, { owner: "project", ends: "after 3 years" })
