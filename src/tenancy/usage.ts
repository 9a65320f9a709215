import type { Static } from "@sinclair/typebox"
import { and, asc, eq, gt, gte, inArray, lt, type SQL, sum } from "drizzle-orm"
import { boundsOf, currentPeriod, isoFrom, millis, millisFrom, nextTurn, today } from "../core/time"
import { type Caller, quotaSubject } from "../identity/caller"
import { accounts } from "../identity/tables"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { LIMIT_OF, type Limits, limitsOf, METRICS } from "../plans/plans"
import { MB, storedTotal } from "../plans/stored-bytes"
import { type Metric, quotas } from "../plans/tables"
import { inPages } from "../store/in-steps"
import { adder } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { WriteBehind } from "../store/write-behind"
import type { UsageShare } from "./schemas"
import { usageDays } from "./tables"

type UsageMetric = Metric | "api_requests"

/** On Postgres, where several nodes write at once. */
const SHARDS = 8

/** Some units of one project on one day (`YYYY-MM-DD`, UTC). */
export interface UsageUnits {
  account_id: string
  project_id: string
  day: string
  metric: UsageMetric
  value: number
}

/** Counts units, in the transaction of what they count. */
export const add = adder(
  usageDays,
  ["account_id", "day", "project_id", "metric"],
  ["value"],
  SHARDS,
) satisfies (tx: Tx, list: UsageUnits[]) => Promise<void>

interface UsageRange {
  account_ids: string[]
  /** All projects without it. */
  project_id?: string | undefined
  /** `YYYY-MM` */
  period: string
}

interface UsageDay {
  project_id: string
  day: string
  metric: string
  value: number
}

/** One row a project, day and metric. */
export async function days(db: Reader, range: UsageRange): Promise<UsageDay[]> {
  const { project_id, day, metric, value } = usageDays
  const rows = await db
    .select({ project_id, day, metric, value: sum(value).mapWith(Number) })
    .from(usageDays)
    .where(within(range))
    .groupBy(project_id, day, metric)
  return rows.map((row) => ({ ...row, value: row.value ?? 0 }))
}

export type UsageTotals = Record<UsageMetric, number>

export const totals = async (db: Reader, range: UsageRange): Promise<UsageTotals> =>
  summed(await days(db, range))

function summed(rows: UsageDay[]): UsageTotals {
  const all = emptyTotals()
  for (const { metric, value } of rows) if (metric in all) all[metric as UsageMetric] += value
  return all
}

export const emptyTotals = () =>
  Object.fromEntries([...METRICS, "api_requests"].map((metric) => [metric, 0])) as UsageTotals

/** The accounts whose usage one quota counts. */
async function accountsOf(db: Reader, subject: string): Promise<string[]> {
  if (!subject.startsWith(PERSON)) return [subject]
  const owned = eq(accounts.owner_user_id, subject.slice(PERSON.length))
  const { id } = accounts
  const rows = await db
    .select({ id })
    .from(accounts)
    .where(and(owned, eq(accounts.plan, "free")))
  return rows.map((row) => row.id)
}

const PERSON = "user:"

/** The sum of what was counted for a quota, for when its own row does not know yet. */
export async function recount(
  db: Reader,
  { subject, metric, period }: { subject: string; metric: Metric; period: string },
): Promise<number> {
  const account_ids = await accountsOf(db, subject)
  return (await totals(db, { account_ids, period }))[metric]
}

function within({ account_ids, project_id, period }: UsageRange): SQL | undefined {
  return and(
    inArray(usageDays.account_id, account_ids),
    gte(usageDays.day, `${period}-01`),
    lt(usageDays.day, `${period}-32`),
    project_id ? eq(usageDays.project_id, project_id) : undefined,
  )
}

const DAY_MILLISECONDS = 86_400_000

type UsedShare = Static<typeof UsageShare>

interface UsageQuestion {
  account_id: string
  /** The whole account without it. */
  project_id: string | undefined
  period: string
  limits: Limits
  quota_subject: string
}

/** The Usage record of the contract. */
export async function report(db: Reader, asked: UsageQuestion) {
  const { account_id, project_id, period, limits, quota_subject } = asked
  const own = await days(db, { account_ids: [account_id], project_id, period })
  const sharing = await totals(db, { account_ids: await accountsOf(db, quota_subject), period })
  const used = summed(own)
  return {
    period: boundsOf(period),
    ...shares(used, sharing, limits),
    stored_mb: project_id === undefined ? null : await storedIn(db, project_id, limits),
    api_requests: used.api_requests,
    by_day: byDay(own, period),
  }
}

/** What one project stores, in whole megabytes: each project may store as much as the plan allows. */
async function storedIn(db: Reader, project_id: string, limits: Limits): Promise<UsedShare> {
  const used = Math.ceil((await storedTotal(db, project_id)).used / MB)
  const limit = limits.stored_mb
  return { used, limit, remaining: limit === null ? null : Math.max(0, limit - used) }
}

export function shares(
  used: UsageTotals,
  sharing: UsageTotals,
  limits: Limits,
): Record<Metric, UsedShare> {
  const entries = METRICS.map((metric) => {
    const limit = limits[LIMIT_OF[metric]]
    const remaining = limit === null ? null : Math.max(0, limit - sharing[metric])
    return [metric, { used: used[metric], limit, remaining }]
  })
  return Object.fromEntries(entries) as Record<Metric, UsedShare>
}

/** Every day that has begun, also those on which nothing happened. */
function byDay(own: UsageDay[], period: string) {
  return daysOf(period).map((date) => {
    const entries = AUDIENCE_CHANNELS.map((metric) => {
      const mine = own.filter((one) => one.day === date && one.metric === metric)
      return [metric, mine.reduce((sum, { value }) => sum + value, 0)]
    })
    return { date, ...Object.fromEntries(entries) }
  })
}

export function daysOf(period: string): string[] {
  const { start, end } = boundsOf(period)
  const until = Math.min(millisFrom(end), millis())
  const all: string[] = []
  for (let at = millisFrom(start); at < until; at += DAY_MILLISECONDS) {
    all.push(isoFrom(at).slice(0, "YYYY-MM-DD".length))
  }
  return all
}

/**
 * What an account used this month. What remains counts all free accounts of one person together,
 * since they share one set of limits.
 */
export async function usageOfAccount(db: Reader, account: typeof accounts.$inferSelect) {
  const period = currentPeriod()
  const own = await totals(db, { account_ids: [account.id], period })
  const sharing = await accountsOf(db, quotaSubject(account))
  const all = sharing.length > 1 ? await totals(db, { account_ids: sharing, period }) : own
  return shares(own, all, limitsOf(account))
}

/** Of one transaction, and of what waits. */
const MOST_COUNTED = 10_000

/**
 * Counts requests in memory and writes them now and then: a number for people to look at, which
 * no limit depends on and which is not worth a write a request.
 */
export class Meter {
  readonly #behind: WriteBehind<UsageUnits>

  constructor(store: Store) {
    this.#behind = new WriteBehind({
      write: (counted) => store.tx((tx) => add(tx, counted)),
      ...{ limit: MOST_COUNTED, most: MOST_COUNTED, lost: "some requests were not counted" },
    })
  }

  count({ account_id, project_id }: Caller) {
    if (!project_id) return
    const day = today()
    const name = `${project_id} ${day}`
    const known = this.#behind.get(name)
    const units = { account_id, project_id, day, metric: "api_requests", value: 1 } as const
    if (known) known.value += 1
    else if (this.#behind.admit()) this.#behind.put(name, units)
  }

  flush = () => this.#behind.flush()
}

/** Days and monthly quotas are kept for so many whole years, and the current month. */
const KEPT_YEARS = 3

/** Accounts, or quotas, of one look. */
const LOOK = 200
/** Rows of one transaction. */
const BATCH = 500

/** The first month that is kept: `YYYY-MM`. */
function firstKept(): string {
  const [year, month] = currentPeriod().split("-")
  return `${Number(year) - KEPT_YEARS}-${month}`
}

/** Removes usage by day and used quotas of months long past, account by account. */
export async function purgeUsage(store: Store): Promise<void> {
  const { id } = accounts
  const next = (after: string) =>
    store.read.select({ id }).from(accounts).where(gt(id, after)).orderBy(asc(id)).limit(LOOK)
  for await (const rows of inPages(LOOK, next))
    for (const account of rows) while ((await purgeDays(store, account.id)) > 0);
  for (let after: string | undefined = ""; after !== undefined; ) {
    after = await purgeQuotas(store, after)
    await nextTurn()
  }
}

async function purgeDays(store: Store, account_id: string): Promise<number> {
  const { day } = usageDays
  const ours = eq(usageDays.account_id, account_id)
  const old = and(ours, lt(day, `${firstKept()}-01`))
  const rows = await store.read.select({ day }).from(usageDays).where(old).orderBy(day).limit(BATCH)
  const days = [...new Set(rows.map((row) => row.day))]
  if (days.length > 0) {
    await store.tx((tx) => tx.delete(usageDays).where(and(ours, inArray(day, days))))
  }
  return days.length
}

/** Of the subjects behind this one. Resolves with the last one, or undefined where there is no further one. */
async function purgeQuotas(store: Store, after: string): Promise<string | undefined> {
  const { subject, period } = quotas
  const next = store.read.selectDistinct({ subject }).from(quotas).where(gt(subject, after))
  const subjects = (await next.orderBy(asc(subject)).limit(LOOK)).map((row) => row.subject)
  if (subjects.length === 0) return undefined
  const old = and(inArray(subject, subjects), lt(period, firstKept()))
  const [found] = await store.read.select({ period }).from(quotas).where(old).limit(1)
  if (found) await store.tx((tx) => tx.delete(quotas).where(old))
  return subjects.at(-1)
}
