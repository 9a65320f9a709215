import { and, asc, eq, gte, lt, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { isoFrom, millis, millisFrom } from "../core/time"
import { withDefaults } from "../identity/caller"
import { projects } from "../identity/tables"
import { METRICS } from "../plans/plans"
import { lengthOf } from "../store/dialect"
import type { Reader, Store } from "../store/store"
import { hold } from "../tenancy/accounts"
import { correct } from "../tenancy/quotas"
import { usageDays } from "../tenancy/tables"
import { add, daysOf, totals, type UsageTotals, type UsageUnits } from "../tenancy/usage"
import { type ChannelName, messages } from "./tables"

const DAY_MILLISECONDS = 86_400_000

/** Ids are made a moment before or after the message's own time. */
const MARGIN_MILLISECONDS = 60_000

interface Asked {
  account_id: string
  quota_subject: string
  period: string
}

/**
 * Counts a month again from the messages themselves, and corrects the counters by the difference,
 * day by day, while sending goes on.
 */
export async function reconcile(store: Store, { account_id, quota_subject, period }: Asked) {
  const range = { account_ids: [account_id], period }
  const before = await totals(store.read, range)
  const { id, settings } = projects
  const own = eq(projects.account_id, account_id)
  const rows = await store.read.select({ id, settings }).from(projects).where(own).orderBy(asc(id))
  let projects_touched = 0
  for (const { id: project_id, settings } of rows) {
    let drifted = 0
    for (const day of daysOf(period)) {
      if (day <= lastDeletedDay(settings)) continue
      drifted += await correctDay(store, { account_id, project_id, day })
    }
    if (drifted > 0) projects_touched += 1
  }
  await store.tx((tx) => correct(tx, quota_subject, period))
  const after = await totals(store.read, range)
  const drift = (metric: keyof UsageTotals) => after[metric] - before[metric]
  return {
    period,
    before: only(before),
    after: only(after),
    drift: Object.fromEntries(METRICS.map((metric) => [metric, drift(metric)])),
    projects_touched,
  }
}

/** Of days whose messages may be deleted already, the counters alone know. */
function lastDeletedDay(settings: (typeof projects.$inferSelect)["settings"]): string {
  const { messages_days } = withDefaults(settings).retention
  return isoFrom(millis() - messages_days * DAY_MILLISECONDS).slice(0, "2026-11-22".length)
}

type Place = Pick<UsageUnits, "account_id" | "project_id" | "day">

/** One day at a time, because a month of messages would keep every other writer waiting. */
const correctDay = (store: Store, { account_id, project_id, day }: Place): Promise<0 | 1> =>
  store.tx(async (tx) => {
    await hold(tx, account_id) // two at once would both make up for the same drift
    const drifts: UsageUnits[] = []
    for (const metric of CHANNELS) {
      const { counted, told } = await unitsOf(tx, project_id, metric, day)
      drifts.push({ account_id, project_id, day, metric, value: told - counted })
    }
    await add(tx, drifts)
    return drifts.every(({ value }) => value === 0) ? 0 : 1
  })

const CHANNELS = ["email", "push", "sms", "in_app"] as const satisfies ChannelName[]

const only = (all: UsageTotals) =>
  Object.fromEntries(METRICS.map((metric) => [metric, all[metric]]))

/**
 * The units of a channel in a project on a day, one a recipient, as they were counted and as the messages
 * themselves tell them: in one statement, so that both speak of the same moment.
 */
async function unitsOf(db: Reader, project_id: string, channel: ChannelName, day: string) {
  const start = millisFrom(`${day}T00:00:00.000Z`)
  const end = start + DAY_MILLISECONDS
  const counted = sql<number>`(SELECT COALESCE(SUM(${usageDays.value}), 0) FROM ${usageDays}
    WHERE ${eq(usageDays.project_id, project_id)} AND ${usageDays.day} = ${day}
      AND ${usageDays.metric} = ${channel})`
  const [row] = await db
    .select({
      counted: counted.mapWith(Number),
      told: sql<number>`COALESCE(SUM(${lengthOf(db, messages.recipients)}), 0)`.mapWith(Number),
    })
    .from(messages)
    .where(
      and(
        eq(messages.project_id, project_id),
        eq(messages.channel, channel),
        eq(messages.sandbox, false),
        gte(messages.id, firstIdAt(start - MARGIN_MILLISECONDS)),
        lt(messages.id, firstIdAt(end + MARGIN_MILLISECONDS)),
        gte(messages.created_at, isoFrom(start)),
        lt(messages.created_at, isoFrom(end)),
      ),
    )
  return { counted: row?.counted ?? 0, told: row?.told ?? 0 }
}
