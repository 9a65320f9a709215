import { Type as t } from "@sinclair/typebox"
import { and, eq, gte, lt, sum } from "drizzle-orm"
import { dayOf } from "../core/time"
import { PLATFORMS, PUSH_PROVIDERS } from "../devices/tables"
import { period, readPeriod } from "../http/period"
import { count, text, time } from "../lib/record-fields"
import { dayCounts } from "../messages/day-counts"
import { statusesOf } from "../messages/status-changes"
import type { Reader } from "../store/store"
import { pushDays } from "./tables"

export const statsQuery = t.Object({ period })

const counts = (example: string, description: string) =>
  t.Record(t.String(), count(12), { description, examples: [{ [example]: 12 }] })

export const PushStats = t.Object(
  {
    period: t.Object({ start: time(), end: time("The first moment after the period.") }),
    total: count(12, "Push messages that were accepted, whatever became of them."),
    by_status: counts("delivered", "Push messages by status as it is now."),
    by_platform: counts("ios", "Push messages by the platform of their devices."),
    by_provider: counts("apns", "Push messages that a provider was asked to send."),
    by_day: t.Array(t.Object({ day: text("2026-11-21"), total: count(12) }), {
      description: "The days that have push messages, in UTC.",
    }),
    opened: count(
      4,
      "Push messages of which their devices said in the period that they were opened.",
    ),
    errors: t.Array(t.Object({ error_code: text("unregistered"), count: count(2) }), {
      description: "Why push messages failed, the most frequent reason first.",
    }),
  },
  { title: "PushStats" },
)

/** A push message waits as `queued`, also while it is being sent. */
const SHOWN = statusesOf("push").filter((status) => status !== "sending")

/**
 * The push messages of a project that were accepted in a period (`http/period.ts`), from counts by day. Throws 422
 * for what is no period.
 */
export async function stats(db: Reader, project_id: string, asked: string | undefined) {
  const bounds = readPeriod(asked)
  const [from, before] = [dayOf(bounds.start), dayOf(bounds.end)]
  const rows = await dayCounts(db, { project_id, channel: "push", from, before })
  const by_status = tally(SHOWN)
  const [by_platform, by_provider] = [tally(PLATFORMS), tally(PUSH_PROVIDERS)]
  const [by_day, errors] = [tally(), tally()]
  for (const { day, status, provider: words, messages } of rows) {
    const [provider = "", platform = "", why = ""] = words.split(" ")
    add(by_status, status, messages)
    add(by_platform, platform, messages)
    add(by_provider, provider, messages)
    add(by_day, day, messages)
    add(errors, why, messages)
  }
  const days = [...by_day].filter(([, total]) => total > 0).sort()
  const failures = [...errors].filter(([, total]) => total > 0)
  return {
    period: bounds,
    total: days.reduce((sum, [, total]) => sum + total, 0),
    by_status: Object.fromEntries(by_status),
    by_platform: Object.fromEntries(by_platform),
    by_provider: Object.fromEntries(by_provider),
    by_day: days.map(([day, total]) => ({ day, total })),
    opened: await openedIn(db, project_id, from, before),
    errors: failures
      .sort(([, one], [, other]) => other - one)
      .map(([error_code, count]) => ({ error_code, count })),
  }
}

const tally = (names: readonly string[] = []) =>
  new Map(names.map((name): [string, number] => [name, 0]))

/** A message without a name is in no count by that kind of name. */
function add(counts: Map<string, number>, name: string, by: number): void {
  if (name !== "") counts.set(name, (counts.get(name) ?? 0) + by)
}

async function openedIn(db: Reader, owner: string, from: string, before: string): Promise<number> {
  const { project_id, day, fact, messages } = pushDays
  const opened = and(eq(project_id, owner), eq(fact, "opened"), gte(day, from), lt(day, before))
  const rows = db.select({ total: sum(messages).mapWith(Number) }).from(pushDays)
  return (await rows.where(opened))[0]?.total ?? 0
}
