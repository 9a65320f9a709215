import { Type as t } from "@sinclair/typebox"
import { dayOf } from "../core/time"
import { period, readPeriod } from "../http/period"
import { count, time } from "../lib/record-fields"
import { dayCounts } from "../messages/day-counts"
import { statusesOf } from "../messages/status-changes"
import type { Reader } from "../store/store"

export const statsQuery = t.Object({ period })

const counts = (example: string, description: string) =>
  t.Record(t.String(), count(12), { description, examples: [{ [example]: 12 }] })

export const TextStats = t.Object(
  {
    period: t.Object({ start: time(), end: time("The first moment after the period.") }),
    total: count(12, "Texts that were accepted to be sent, whatever became of them."),
    segments: count(15, "The segments of those texts."),
    by_status: counts(
      "delivered",
      "Texts by status as it is now; `received` are those that came in.",
    ),
    by_provider: counts(
      "log",
      "Texts that a provider was asked to send, by the last one that was asked.",
    ),
  },
  { title: "SmsStats" },
)

/** A text waits as `queued`, also while it is being sent. */
const SHOWN = statusesOf("sms").filter((status) => status !== "sending")

const RECEIVED: string = "received"

/**
 * The texts of a project that were accepted in a period (`http/period.ts`), from counts by day. Throws 422 for
 * what is no period.
 */
export async function stats(db: Reader, project_id: string, asked: string | undefined) {
  const bounds = readPeriod(asked)
  const [from, before] = [dayOf(bounds.start), dayOf(bounds.end)]
  const rows = await dayCounts(db, { project_id, channel: "sms", from, before })
  const by_status: Record<string, number> = Object.fromEntries(SHOWN.map((status) => [status, 0]))
  const by_provider: Record<string, number> = {}
  let [total, segments] = [0, 0]
  for (const { status, provider, messages, units } of rows) {
    by_status[status] = (by_status[status] ?? 0) + messages
    if (status === RECEIVED) continue
    total += messages
    segments += units
    if (provider !== "" && messages !== 0)
      by_provider[provider] = (by_provider[provider] ?? 0) + messages
  }
  return { period: bounds, total, segments, by_status, by_provider }
}
