import { Type as t } from "@sinclair/typebox"
import { oneOf } from "../http/field-schemas"
import { pageQuery } from "../http/page"
import { RESTORE_REASON } from "../jobs/work-item"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { count, id, text, time, word } from "../lib/record-fields"
import { SCHEDULED_STATUSES } from "./scheduled"

/** When a message is to be sent, in requests of every channel. */
export const scheduledAt = () =>
  t.String({
    description:
      "When to send it: ISO 8601 with an offset, at most 90 days ahead. A time in the past means now.",
  })

export const RescheduleRequest = t.Object({ scheduled_at: scheduledAt() })

export const scheduledQuery = pageQuery({
  channel: t.Optional(oneOf(...AUDIENCE_CHANNELS)),
  status: t.Optional(oneOf(...SCHEDULED_STATUSES)),
})

const scheduled = {
  id: id("The id of the message itself."),
  channel: word(AUDIENCE_CHANNELS),
  status: word(SCHEDULED_STATUSES),
  to: text("ann@example.com"),
  scheduled_at: time(),
  created_at: time(),
  status_reason: t.Optional(
    text(RESTORE_REASON, "Only while the message waits since a restore: why it waits."),
  ),
}

export const Scheduled = t.Object(scheduled, { title: "Scheduled" })

export const ScheduledDetail = t.Object(
  {
    ...scheduled,
    seconds_until_send: count(3600, "0 when the message is due or will not be sent."),
  },
  { title: "ScheduledDetail" },
)

export const ScheduledCancelled = t.Object(
  { ...scheduled, deleted: t.Literal(true) },
  { title: "ScheduledCancelled" },
)
