import { and, eq, type SQL } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { held } from "../store/locks"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { boundsOf, currentPeriod } from "./periods"
import { type Metric, quotas } from "./tables"

export type { Metric } from "./tables"

/** What a share of the quota, in percent, is told at. */
export const ALERTS = [80, 100]

export interface Account {
  subject: string
  metric: Metric
  /** Null is unlimited: then nothing is counted here. */
  limit: number | null
}

/** What the quota of this month has used, when no row knows yet: the sum of what was counted. */
export type Recount = (
  tx: Reader,
  subject: string,
  metric: Metric,
  period: string,
) => Promise<number>

export interface Reservation {
  /** For each wish, in its order, whether it fitted as a whole. */
  admitted: boolean[]
  used: number
  /** Shares in percent that were passed just now, each told once a month. */
  passed: number[]
}

/**
 * Takes what fits, each wish as a whole and in order, and never passes the limit: the row is held
 * until the transaction ends. Undone with the transaction.
 */
export async function reserveEach(
  tx: Tx,
  account: Account,
  wishes: number[],
  recount: Recount,
): Promise<Reservation> {
  let admitted = wishes.map(() => true)
  const taken = await take(tx, account, recount, (room) => {
    let left = room
    admitted = wishes.map((units) => {
      const fits = units <= left
      if (fits) left -= units
      return fits
    })
    return room - left
  })
  return { admitted, ...taken }
}

/** Takes as much of `wanted` as fits. Returns how much that is. */
export async function reserve(
  tx: Tx,
  account: Account,
  wanted: number,
  recount: Recount,
): Promise<number> {
  let admitted = wanted
  await take(tx, account, recount, (room) => {
    admitted = Math.min(wanted, room)
    return admitted
  })
  return admitted
}

async function take(
  tx: Tx,
  { subject, metric, limit }: Account,
  recount: Recount,
  choose: (room: number) => number,
): Promise<{ used: number; passed: number[] }> {
  if (limit === null) return { used: 0, passed: [] }
  const key = { subject, metric, period: currentPeriod() }
  const row = await hold(tx, key, recount)
  const used = row.used + choose(Math.max(0, limit - row.used))
  const isPassed = (share: number) => share > row.alerted && used * 100 >= limit * share
  const passed = used === 0 ? [] : ALERTS.filter(isPassed) // where none is allowed, none is news
  const alerted = Math.max(row.alerted, ...passed)
  if (used !== row.used || alerted !== row.alerted) await write(tx, { ...key, used, alerted })
  return { used, passed }
}

/** For what was reserved and then not used, in a later transaction of the same month. */
export async function giveBack(tx: Tx, { subject, metric, limit }: Account, units: number) {
  if (limit === null || units === 0) return
  const [row] = await find(tx, { subject, metric, period: currentPeriod() })
  if (!row) return
  const used = Math.max(0, row.used - units)
  await write(tx, { ...row, used })
}

/** Puts the rows of a month right; what owners were told of stays told. */
export async function correct(tx: Tx, subject: string, period: string, recount: Recount) {
  const ours = and(eq(quotas.subject, subject), eq(quotas.period, period))
  const rows = await held(tx.select().from(quotas).where(ours))
  for (const { metric, alerted } of rows) {
    const used = await recount(tx, subject, metric, period)
    await write(tx, { subject, metric, period, used, alerted })
  }
}

/**
 * Counts afresh at the next reservation: for a change of plan, limit or owner. Without it the row
 * of a limit that was away for a while would not know what was sent meanwhile.
 */
export const forget = (tx: Tx, subject: string) =>
  tx.delete(quotas).where(and(eq(quotas.subject, subject), eq(quotas.period, currentPeriod())))

/** 402 `payment_required`, with everything somebody needs to decide what to do. */
export function usedUp({ metric, used, limit, plan }: UsedUp): ApiError {
  const { end: reset_at } = boundsOf(currentPeriod())
  const what = NAMES[metric]
  const left = Math.max(0, limit - used)
  const message = `This month's quota of ${limit} ${what} has ${left} left. The next month begins at ${reset_at}.`
  return new ApiError("payment_required", message, { metric, used, limit, reset_at, plan })
}

export interface UsedUp {
  metric: Metric
  used: number
  limit: number
  plan: string
}

const NAMES: Record<Metric, string> = {
  email: "emails",
  push: "push messages",
  sms: "SMS segments",
  in_app: "in-app messages",
  mau: "active users",
}

interface Key {
  subject: string
  metric: Metric
  period: string
}

async function hold(tx: Tx, key: Key, recount: Recount) {
  const [known] = await find(tx, key)
  if (known) return known
  const used = await recount(tx, key.subject, key.metric, key.period)
  // Another node may have been faster: then its row stands.
  await tx
    .insert(quotas)
    .values({ ...key, used, alerted: 0 })
    .onConflictDoNothing()
  const [made] = await find(tx, key)
  return made ?? { ...key, used, alerted: 0 }
}

const { subject, metric, period, used, alerted } = quotas

const find = prepared({ subject, metric, period }, (tx: Tx, slot) =>
  held(tx.select().from(quotas).where(mine(slot))),
)

const write = prepared({ subject, metric, period, used, alerted }, (tx: Tx, row) =>
  tx.update(quotas).set({ used: row.used, alerted: row.alerted }).where(mine(row)),
)

function mine(key: { subject: SQL<string>; metric: SQL<Metric>; period: SQL<string> }) {
  return and(eq(subject, key.subject), eq(period, key.period), eq(metric, key.metric))
}
