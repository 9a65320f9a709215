import type { Components } from "../../src/client/components"
import type { Context } from "../lib/context"
import { isHeld } from "../lib/message-status"
import { asks, row } from "../lib/resource"
import { type ScheduledTime, scheduledTime } from "../lib/schedule-time"
import { type Columns, fields, idColumn, wide } from "../lib/table"
import { age } from "../lib/time"

const columns: Columns<Components["Scheduled"]> = {
  ID: idColumn("email"),
  CHANNEL: "channel",
  TO: wide(({ to }) => to, "last"),
  STATUS: ({ status, status_reason }) => (isHeld(status_reason) ? "held" : status),
  SCHEDULED: "scheduled_at",
  DUE: ({ status, status_reason, scheduled_at }) =>
    status === "scheduled" && !isHeld(status_reason) ? age(scheduled_at) : "",
}

/** Messages that wait for their time. */
export const scheduledRows = [
  row("list", "GET /v1/scheduled", {
    about: "list scheduled messages, newest first",
    example: "--status scheduled",
    columns,
    next: ([first]) => first && `scheduled get ${first.id}`,
  }),
  row("get <id>", "GET /v1/scheduled/{scheduled_id}", {
    about: "show when a scheduled message is sent",
    shown: (data, paint) => fields(Object.entries(data), paint),
    next: ({ id, channel }) => (channel === "email" ? `emails get ${id}` : undefined),
  }),
  row("cancel <id>", "DELETE /v1/scheduled/{scheduled_id}", {
    about: "cancel a scheduled message",
    example: "--yes",
    confirm: asks((id) => `The scheduled message ${id} will not be sent.`, "cancel"),
    done: ({ id }) => `cancelled ${id}`,
  }),
]

export const SCHEDULE_NOTE =
  "A time is `in 10m`, `tomorrow 9:00`, `monday 8am`, or ISO 8601. Without an offset it is of this machine's zone."

/** Gives a scheduled email another time. */
export const rescheduleRow = row("reschedule <id> <time>", "PATCH /v1/emails/{email_id}", {
  about: "give a scheduled email another time; `now` sends it",
  note: SCHEDULE_NOTE,
  flags: { scheduled_at: false },
  body: async (_, [, text = ""], context) => ({
    scheduled_at: await readTime(text, "<time>", context),
  }),
  done: ({ id, scheduled_at }) => `${id} is scheduled for ${whenText(scheduled_at ?? "")}`,
})

/** Tells a person what a time means that the clocks skip, or show twice. */
export async function readTime(text: string, option: string, { output, paint }: Context) {
  const { at, note }: ScheduledTime = scheduledTime(text, option)
  if (note) await output.note(paint.yellow(note))
  return at
}

/** `2026-12-01T08:00:00.000Z (in 9 d)` */
export const whenText = (at: string): string => `${at} (${age(at)})`
