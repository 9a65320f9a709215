import { and, eq, inArray, type SQL } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { boundsOf, currentPeriod, millis } from "../core/time"
import type { SystemMail } from "../identity/system-mail"
import { accounts, projects } from "../identity/tables"
import { emailsInAccount } from "../identity/users"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { noticeSchedule } from "../jobs/work-item"
import { type Metric, quotas, sendBuckets } from "../plans/tables"
import { forUpdate } from "../store/columns"
import { rowById } from "../store/rows"
import { prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { recount } from "./usage"

/** Shares of a quota, in percent, that the owners are told of. */
const ALERTS = [80, 100]

export interface MonthlyQuota {
  subject: string
  metric: Metric
  /** Null is unlimited: then nothing is counted here. */
  limit: number | null
}

/** What one account may use of a metric this month, and which people learn that it runs out. */
export interface QuotaAllowance extends MonthlyQuota {
  account_id: string
  plan: string
}

/**
 * Takes what fits of the quota, each wish as a whole and in order. Returns a refusal (402) for each
 * wish that does not fit, and null for the others.
 */
export async function reserveEach(
  tx: Tx,
  allowance: QuotaAllowance & { limit: number },
  wishes: number[],
) {
  const { admitted, used, passed } = await reserve(tx, allowance, wishes)
  await alertOwners(tx, { ...allowance, used }, passed)
  return admitted.map((fits) => (fits ? null : usedUp({ ...allowance, used })))
}

/** Throws 402 where the month has no room for so many more. Reserves nothing. */
export async function requireRoomFor(db: Reader, allowance: QuotaAllowance, units: number) {
  const { limit, subject, metric } = allowance
  if (limit === null) return
  const [row] = await look(db, { subject, metric, period: currentPeriod() })
  if (row && units > limit - row.used) throw usedUp({ ...allowance, limit, used: row.used })
}

interface Reservation {
  /** For each wish, in its order, whether it fitted as a whole. */
  admitted: boolean[]
  used: number
  /** Shares in percent that were passed just now, each told once a month. */
  passed: number[]
}

/**
 * Takes what fits, each wish as a whole and in order, and never passes the limit: the row is locked
 * until the transaction ends. Undone with the transaction.
 */
export async function reserve(
  tx: Tx,
  { subject, metric, limit }: MonthlyQuota,
  wishes: number[],
): Promise<Reservation> {
  if (limit === null) return { admitted: wishes.map(() => true), used: 0, passed: [] }
  const key = { subject, metric, period: currentPeriod() }
  const row = await findForUpdate(tx, key)
  let { used } = row
  const admitted = wishes.map((units) => {
    const fits = units <= Math.max(0, limit - used)
    if (fits) used += units
    return fits
  })
  const isPassed = (share: number) => share > row.alerted && used * 100 >= limit * share
  const passed = used === 0 ? [] : ALERTS.filter(isPassed) // where none is allowed, none is news
  const alerted = Math.max(row.alerted, ...passed)
  if (used !== row.used || alerted !== row.alerted) await write(tx, { ...key, used, alerted })
  return { admitted, used, passed }
}

/** For what was reserved and then not used, in a later transaction of the same month. */
export async function giveBack(tx: Tx, { subject, metric, limit }: MonthlyQuota, units: number) {
  if (limit === null || units === 0) return
  const [row] = await find(tx, { subject, metric, period: currentPeriod() })
  if (row) await write(tx, { ...row, used: Math.max(0, row.used - units) })
}

/** Corrects the rows of a month by what was counted; what owners were told of stays told. */
export async function correct(tx: Tx, subject: string, period: string) {
  const ours = and(eq(quotas.subject, subject), eq(quotas.period, period))
  for (const row of await forUpdate(tx.select().from(quotas).where(ours))) {
    await write(tx, { ...row, used: await recount(tx, row) })
  }
}

/**
 * Counts afresh at the next reservation: for a change of plan, limit or owner. Without it the row
 * of a limit that was away for a while would not know what was sent meanwhile.
 */
export const forget = (tx: Tx, subject: string) =>
  tx.delete(quotas).where(and(eq(quotas.subject, subject), eq(quotas.period, currentPeriod())))

interface FullQuota {
  metric: Metric
  used: number
  limit: number
  plan: string
}

/** 402 `payment_required`, with everything that a decision needs. */
function usedUp({ metric, used, limit, plan }: FullQuota): ApiError {
  const { end: reset_at } = boundsOf(currentPeriod())
  const left = Math.max(0, limit - used)
  const message = `This month's quota of ${limit} ${NAMES[metric]} has ${left} left. The next month begins at ${reset_at}.`
  return new ApiError("payment_required", message, { metric, used, limit, reset_at, plan })
}

const NAMES: Record<Metric, string> = {
  email: "emails",
  push: "push messages",
  sms: "SMS segments",
  in_app: "in-app messages",
  mau: "active users",
}

async function findForUpdate(tx: Tx, key: { subject: string; metric: Metric; period: string }) {
  for (;;) {
    const [row] = await find(tx, key)
    if (row) return row
    const empty = { ...key, used: 0, alerted: 0 }
    const made = await tx.insert(quotas).values(empty).onConflictDoNothing().returning()
    if (made.length === 0) continue // another node was faster; its row may be forgotten again by now
    // Counted only now that the row is ours: what was taken from the one before has been committed.
    const fresh = { ...empty, used: await recount(tx, key) }
    await write(tx, fresh)
    return fresh
  }
}

const { subject, metric, period, used, alerted } = quotas

const find = prepared({ subject, metric, period }, (tx: Tx, slot) =>
  forUpdate(tx.select().from(quotas).where(isRow(slot))),
)

const look = prepared({ subject, metric, period }, (db: Reader, slot) =>
  db.select().from(quotas).where(isRow(slot)),
)

const write = prepared({ subject, metric, period, used, alerted }, (tx: Tx, row) =>
  tx.update(quotas).set({ used: row.used, alerted: row.alerted }).where(isRow(row)),
)

const isRow = (key: { subject: SQL<string>; metric: SQL<Metric>; period: SQL<string> }) =>
  and(eq(subject, key.subject), eq(period, key.period), eq(metric, key.metric))

interface UsageAlert extends Omit<FullQuota, "plan" | "metric"> {
  metric: Metric | "stored_mb"
  account_id: string
  /** Of `stored_mb`, which each project has its own of. */
  project_id?: string
  period: string
  /** In percent of the limit. */
  share: number
}

/** One mail to the owners, for each share of a limit and month. */
export const usageAlert: JobKind<UsageAlert> = {
  name: "usage.alert",
  schedule: noticeSchedule,
}

type NearlyFull = FullQuota & { account_id: string }

/** Where both shares are passed at once, the last one tells enough. */
async function alertOwners(tx: Tx, nearly: NearlyFull, passed: number[]) {
  const share = passed.at(-1)
  if (share === undefined) return
  const { account_id, metric, used, limit } = nearly
  const payload = { account_id, metric, period: currentPeriod(), share, used, limit }
  await enqueue(tx, usageAlert, { payload, project_id: null })
}

/** Tells every owner of the account that a quota is nearly, or wholly, used up. */
export const notifyOwners = (store: Store, mail: SystemMail): JobHandler<UsageAlert> => ({
  run: async (alert) => {
    await store.tx(async (tx) => {
      const account = await rowById(tx, accounts, alert.account_id)
      if (!account || account.deleting_at) return
      const project = alert.project_id && (await rowById(tx, projects, alert.project_id))
      const text = project ? storedLetter(project.name, alert) : letter(account.name, alert)
      for (const to of await emailsInAccount(tx, account.id, ["owner"])) {
        await mail.send(tx, { to, kind: "usage_alert", ...text })
      }
    })
    return {}
  },
})

function letter(name: string, { metric, share, used, limit, period }: UsageAlert) {
  const full = share >= 100
  const what = `${used} of ${limit} (${metric})`
  const subject = full
    ? `${name}: this month's quota is used up`
    : `${name}: ${share} % of this month's quota is used`
  const outlook = full
    ? "Belfry refuses further sends with 402 until the next month begins."
    : "When the quota is used up, Belfry refuses further sends with 402."
  return { subject, text: `${name} has used ${what} in ${period}.\n\n${outlook}\n` }
}

function storedLetter(name: string, { share, used, limit }: UsageAlert) {
  const full = share >= 100
  const subject = full
    ? `${name}: no more can be stored`
    : `${name}: ${share} % of what it may store is used`
  const outlook = full
    ? "Belfry refuses further sends with 403, and received mail with 452, but for bounces, unsubscribes and tracked replies."
    : "When it is used up, Belfry refuses further sends with 403 and received mail with 452."
  const remedy =
    "Delete mail, shorten `retention` in the settings of the project, or use a larger plan."
  return { subject, text: `${name} stores ${used} of ${limit} MB.\n\n${outlook}\n\n${remedy}\n` }
}

const SECOND = 1_000_000

/** Longer than any batch needs to drain: what lies further ahead is a clock that stepped back. */
const LONGEST = 120 * SECOND

export interface SendBucket {
  project_id: string
  channel: string
  /** Sends a second, and the size of the bucket; null is unlimited. */
  limit: number | null
  /** Of the bucket that may be filled, 0 to 1: the rest is for others. One send always fits. Default: 1. */
  share?: number
}

/**
 * Takes room for sends, each wish as a whole and in order. A wish larger than the bucket is let in
 * when the bucket is empty, and then drains for as long as it takes. Returns a refusal (429, of email
 * `rate_limited`) for each wish without room, and null for the others. Undone with the transaction.
 */
export async function takeFromBucket(
  tx: Tx,
  { limit, share = 1, ...key }: SendBucket,
  wishes: number[],
) {
  if (limit === null || wishes.length === 0) return wishes.map(() => null)
  const now = millis() * 1000
  const row = await bucketForUpdate(tx, key, now)
  const ahead = row.drained - now
  let drained = ahead > LONGEST ? now : Math.max(now, row.drained)
  const refusals = wishes.map((units) => {
    const backlog = drained - now
    const size = Math.min(units, limit)
    const room = Math.max(share * SECOND, SECOND / Math.max(limit, 1))
    const excess = limit === 0 ? SECOND : backlog + (size * SECOND) / limit - room
    if (excess > 1) return bucketFull(key.channel, limit, excess) // 1: what rounding may leave
    drained += Math.round((units * SECOND) / limit)
    return null
  })
  if (drained !== row.drained) await writeBucket(tx, { ...key, drained })
  return refusals
}

/**
 * Locks the counts of the month, then the buckets, as single sends do: for a transaction that locks other rows
 * or takes from a bucket before it reserves. In another order the two would deadlock.
 */
export async function limitsForUpdate(tx: Tx, quotas: MonthlyQuota[], buckets: SendBucket[]) {
  const limited = quotas.filter(({ limit }) => limit !== null)
  for (const { subject, metric } of limited.sort((a, b) => (a.metric < b.metric ? -1 : 1)))
    await findForUpdate(tx, { subject, metric, period: currentPeriod() })
  await bucketsForUpdate(tx, buckets)
}

/** Locks buckets in the order in which sends of several take from them. */
export async function bucketsForUpdate(tx: Tx, buckets: SendBucket[]) {
  const now = millis() * 1000
  const limited = buckets.filter(({ limit }) => limit !== null)
  const name = ({ project_id, channel }: SendBucket) => `${project_id} ${channel}`
  for (const { project_id, channel } of limited.sort((a, b) => (name(a) < name(b) ? -1 : 1)))
    await bucketForUpdate(tx, { project_id, channel }, now)
}

/** Empties the buckets of these projects: what drains by an old limit says nothing of a new one. */
export const emptyBuckets = (tx: Tx, project_ids: string[]) =>
  tx.delete(sendBuckets).where(inArray(sendBuckets.project_id, project_ids))

function bucketFull(channel: string, limit: number, excess: number): ApiError {
  const retry_after = Math.max(1, Math.ceil(excess / SECOND))
  const message = `This project may send ${limit} messages a second. Try again in ${retry_after} s.`
  const details = { retry_after, limit, window_seconds: 1, scope: "sends" }
  const code = channel === "email" ? "rate_limited" : "rate_limit_exceeded" // contract 00, section 7
  return new ApiError(code, message, details)
}

async function bucketForUpdate(
  tx: Tx,
  key: { project_id: string; channel: string },
  drained: number,
) {
  const [known] = await findBucket(tx, key)
  if (known) return known
  // Another node may have been faster: then its row stands.
  await tx
    .insert(sendBuckets)
    .values({ ...key, drained })
    .onConflictDoNothing()
  const [made] = await findBucket(tx, key)
  return made ?? { ...key, drained }
}

const { project_id, channel, drained } = sendBuckets

const findBucket = prepared({ project_id, channel }, (tx: Tx, slot) =>
  forUpdate(
    tx
      .select()
      .from(sendBuckets)
      .where(and(eq(project_id, slot.project_id), eq(channel, slot.channel))),
  ),
)

const writeBucket = prepared({ project_id, channel, drained }, (tx: Tx, slot) =>
  tx
    .update(sendBuckets)
    .set({ drained: slot.drained })
    .where(and(eq(project_id, slot.project_id), eq(channel, slot.channel))),
)
