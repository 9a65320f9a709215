import { Type as t } from "@sinclair/typebox"
import { count, id, maybe, rarely, text, time, word } from "../lib/record-fields"

const STATUSES = ["completed", "queued", "running", "failed", "cancelled"] as const

export const Job = t.Object(
  {
    id: id(),
    type: text("webhook.replay"),
    status: word(STATUSES),
    progress: t.Object({ done: count(120), total: count(120), failed: count(0) }),
    result: t.Unknown({
      examples: [{ sent: 120 }],
      description: "The result of the job. Null until the job is completed.",
    }),
    error: rarely(
      t.Object({ code: text("internal_error"), message: text("The job stopped with an error.") }),
    ),
    created_at: time(),
    completed_at: maybe(time()),
  },
  { title: "Job" },
)
