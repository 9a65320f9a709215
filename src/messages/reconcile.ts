import { and, asc, eq, gte, lt, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { isoFrom, millis, millisFrom } from "../core/time"
import { withDefaults } from "../identity/caller"
import { projects } from "../identity/tables"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { METRICS } from "../plans/plans"
import { lengthOf } from "../store/columns"
import { readHeavy } from "../store/heavy-reads"
import { SKEW_MS } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { findForUpdate } from "../tenancy/accounts"
import { correct } from "../tenancy/quotas"
import { usageDays } from "../tenancy/tables"
import { add, daysOf, totals, type UsageTotals, type UsageUnits } from "../tenancy/usage"
import { messages } from "./tables"

const DAY_MILLISECONDS = 86_400_000

/** Counts a month again from the messages, and corrects the counters while sending goes on. */
export async function reconcile(
  store: Store,
  { account_id, quota_subject, period }: Record<"account_id" | "quota_subject" | "period", string>,
) {
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

/** Of days up to this one, whose messages may be deleted already, the counters alone know. */
export function lastDeletedDay(settings: (typeof projects.$inferSelect)["settings"]): string {
  const { messages_days } = withDefaults(settings).retention
  return isoFrom(millis() - messages_days * DAY_MILLISECONDS).slice(0, "2026-11-22".length)
}

type Position = Pick<UsageUnits, "account_id" | "project_id" | "day">

/**
 * One day at a time, because a month of messages would keep every other writer waiting. Two at once would both make
 * up for the same drift: where this process is alone the project's turn among the heavy reads keeps them apart.
 */
const correctDay = (store: Store, place: Position): Promise<0 | 1> =>
  store.isAlone
    ? readHeavy(store.read, place.project_id, async (read) => {
        const drifts = await driftsOf(place, async (metric) =>
          read((db) => unitsOf(db, { ...place, metric })),
        )
        return store.tx((tx) => correctBy(tx, drifts))
      })
    : store.tx(async (tx) => {
        await findForUpdate(tx, place.account_id)
        const drifts = await driftsOf(place, async (metric) => unitsOf(tx, { ...place, metric }))
        return correctBy(tx, drifts)
      })

async function correctBy(tx: Tx, drifts: UsageUnits[]): Promise<0 | 1> {
  await add(tx, drifts)
  return drifts.every(({ value }) => value === 0) ? 0 : 1
}

async function driftsOf(
  { account_id, project_id, day }: Position,
  look: (metric: Counted["metric"]) => Promise<{ counted: number; told: number }[]>,
): Promise<UsageUnits[]> {
  const drifts: UsageUnits[] = []
  for (const metric of AUDIENCE_CHANNELS) {
    const [units] = await look(metric)
    const { counted = 0, told = 0 } = units ?? {}
    drifts.push({ account_id, project_id, day, metric, value: told - counted })
  }
  return drifts
}

type Counted = Omit<Position, "account_id"> & { metric: (typeof AUDIENCE_CHANNELS)[number] }

const only = (all: UsageTotals) =>
  Object.fromEntries(METRICS.map((metric) => [metric, all[metric]]))

/**
 * The units of a channel in a project on a day, as they were counted and as the messages themselves tell them: in
 * one statement, so that both speak of the same moment.
 */
function unitsOf(db: Reader, { project_id, metric: channel, day }: Counted) {
  const start = millisFrom(`${day}T00:00:00.000Z`)
  const end = start + DAY_MILLISECONDS
  const units = sql`COALESCE(${messages.units}, ${lengthOf(db, messages.recipients)})`
  const counted = sql<number>`(SELECT COALESCE(SUM(${usageDays.value}), 0) FROM ${usageDays}
    WHERE ${eq(usageDays.project_id, project_id)} AND ${usageDays.day} = ${day}
      AND ${usageDays.metric} = ${channel})`
  return db
    .select({
      counted: counted.mapWith(Number),
      told: sql<number>`COALESCE(SUM(${units}), 0)`.mapWith(Number),
    })
    .from(messages)
    .where(
      and(
        eq(messages.project_id, project_id),
        eq(messages.channel, channel),
        eq(messages.sandbox, false),
        gte(messages.id, firstIdAt(start - SKEW_MS)),
        lt(messages.id, firstIdAt(end + SKEW_MS)),
        gte(messages.created_at, isoFrom(start)),
        lt(messages.created_at, isoFrom(end)),
      ),
    )
}
