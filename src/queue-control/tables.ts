import { id, table, text, time } from "../store/columns"

/** What an operator stopped: a whole queue (`email`), or what goes to one domain (`email:b.test`). */
export const pausedQueues = table("paused_queues", {
  queue: id(),
  paused_by: text(),
  paused_at: time().notNull(),
})
