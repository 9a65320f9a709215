import { and, asc, eq, lte, type SQL, sql } from "drizzle-orm"
import { settings } from "../core/config"
import type { TokenPrice } from "../core/config-ai"
import { ApiError } from "../core/errors"
import { newId } from "../core/ids"
import { boundsOf, currentPeriod, now, secondsFromNow } from "../core/time"
import { forUpdate } from "../store/columns"
import type { Reader, Store, Tx } from "../store/store"
import { AI_ACTIONS, type AiAction } from "./actions"
import type { ModelUsage } from "./ai-task"
import { type AiCallRow, aiCalls, aiInstanceSpending, aiQuotas, aiSpending } from "./tables"

/** No call takes as long. What is open then was left by a crash. */
const LEASE_SECONDS = 180

/** Money is counted in millionths of a US dollar: what a token costs in them is a million tokens' price in dollars. */
export const MICRO = 1_000_000

/** A call that asks for a part of the quota and of the budgets. */
export interface WantedCall {
  account_id: string
  project_id: string
  action: AiAction
  /** Of the account in a month; null is unlimited. */
  limit: number | null
  /** Without a price the call costs nothing. */
  price: TokenPrice | null
  /** The most that the model can be asked to read and write. */
  most: ModelUsage
  /** Of the project in a month; null is unlimited. */
  budget_usd: number | null
}

/** An open call, with what it holds. `endCall` ends it. */
export interface Reservation extends AiCallRow {
  limit: number | null
  price: TokenPrice | null
}

/** How much of an action's quota is used. */
export interface AiQuota {
  used: number
  /** Null is unlimited. */
  limit: number | null
  resets_at: string
}

/**
 * Takes one of the quota and the largest possible cost, or nothing. Throws 402 `ai_quota_exceeded` or
 * `ai_budget_exceeded`. Rows are locked in one order: quota, spending of the project, spending of the instance.
 */
export function reserve(store: Store, wanted: WantedCall): Promise<Reservation> {
  const { account_id, project_id, action, limit, price } = wanted
  const [period, held_micro] = [currentPeriod(), costOf(price, wanted.most)]
  const lease_until = secondsFromNow(LEASE_SECONDS)
  const call = { id: newId(), account_id, project_id, action, period, held_micro, lease_until }
  return store.tx(async (tx) => {
    await takeQuota(tx, call, limit)
    if (held_micro > 0) await holdMoney(tx, call, wanted.budget_usd)
    await tx.insert(aiCalls).values(call)
    return { ...call, limit, price }
  })
}

export interface CallOutcome {
  /** What the model read and wrote; null where it did neither. */
  usage: ModelUsage | null
  /** False gives the quota back: the model failed, or its result was rejected. The cost stays. */
  keeps_quota: boolean
}

/** Settles a call once: of one whose lease is over, nothing more is counted. Returns what it cost, and the quota. */
export function endCall(
  { store }: { store: Store },
  { limit, price, ...call }: Reservation,
  { usage, keeps_quota }: CallOutcome,
): Promise<{ cost_usd: number; quota: AiQuota }> {
  const spent_micro = usage ? costOf(price, usage) : 0
  return store.tx(async (tx) => {
    await settle(tx, call, { spent_micro, keeps_quota })
    const quota = await quotaOf(tx, { ...call, limit })
    return { cost_usd: spent_micro / MICRO, quota }
  })
}

/** What the account has used of an action's quota in a month, with what open calls hold. */
export async function quotaOf(
  db: Reader,
  { limit, ...key }: QuotaKey & Pick<WantedCall, "limit">,
): Promise<AiQuota> {
  const [row] = await db.select({ used: aiQuotas.used }).from(aiQuotas).where(isQuota(key))
  return { used: row?.used ?? 0, limit, resets_at: boundsOf(key.period).end }
}

/** Overdue calls of one round; the others come with the next ones. */
const AT_ONCE = 200

/** Ends the calls that a crash left, and gives back all that they hold. */
export async function freeOverdueCalls(store: Store): Promise<void> {
  const { lease_until } = aiCalls
  const overdue = store.read.select().from(aiCalls).where(lte(lease_until, now()))
  for (const call of await overdue.orderBy(asc(lease_until)).limit(AT_ONCE)) {
    await store.tx((tx) => settle(tx, call, { spent_micro: 0, keeps_quota: false }))
  }
}

/** In millionths of a US dollar, rounded up. */
const costOf = (price: TokenPrice | null, { input_tokens, output_tokens }: ModelUsage): number =>
  price ? Math.ceil(input_tokens * price.input + output_tokens * price.output) : 0

async function takeQuota(tx: Tx, { account_id, period, action }: QuotaKey, limit: number | null) {
  const { used } = aiQuotas
  const [row] = await tx
    .insert(aiQuotas)
    .values({ account_id, period, action, used: 1 })
    .onConflictDoUpdate({
      target: [aiQuotas.account_id, aiQuotas.period, aiQuotas.action],
      set: { used: sql`${used} + 1` },
    })
    .returning({ used })
  const taken = row?.used ?? 1
  if (limit === null || taken <= limit) return
  const reset_at = boundsOf(period).end
  const text = `This month's quota of ${limit} for ${action} is used up. The next month begins at ${reset_at}.`
  throw new ApiError("ai_quota_exceeded", text, { action, used: taken - 1, limit, reset_at })
}

async function holdMoney(tx: Tx, call: AiCallRow, budget_usd: number | null) {
  const { project_id, period, action, held_micro } = call
  const none = { count: 0, spent_micro: 0, held_micro: 0 }
  const empty = AI_ACTIONS.map((each) => ({ project_id, period, action: each, ...none }))
  await tx.insert(aiSpending).values(empty).onConflictDoNothing()
  const ours = and(eq(aiSpending.project_id, project_id), eq(aiSpending.period, period))
  // All rows of the project are locked, so that calls of two actions cannot pass its budget together.
  const rows = await forUpdate(tx.select().from(aiSpending).where(ours).orderBy(aiSpending.action))
  const spent = rows.reduce((sum, row) => sum + row.spent_micro + row.held_micro, 0)
  requireWithin(budget_usd, spent, held_micro, "the project's budget")
  await tx
    .update(aiSpending)
    .set({ held_micro: sql`${aiSpending.held_micro} + ${held_micro}` })
    .where(and(ours, eq(aiSpending.action, action)))
  const of_all = await holdOfInstance(tx, period, held_micro)
  requireWithin(settings()["ai.monthly_ceiling_usd"], of_all, held_micro, "the server's ceiling")
}

/** Returns what all projects spent and hold beside it. */
async function holdOfInstance(tx: Tx, period: string, held: number): Promise<number> {
  const { held_micro, spent_micro } = aiInstanceSpending
  const [row] = await tx
    .insert(aiInstanceSpending)
    .values({ period, spent_micro: 0, held_micro: held })
    .onConflictDoUpdate({
      target: aiInstanceSpending.period,
      set: { held_micro: sql`${held_micro} + ${held}` },
    })
    .returning({ held_micro, spent_micro })
  return row ? row.spent_micro + row.held_micro - held : 0
}

/** `spent` counts what open calls hold: they may still cost it. */
function requireWithin(
  budget_usd: number | null | undefined,
  spent: number,
  more: number,
  what: string,
) {
  if (budget_usd === null || budget_usd === undefined) return
  if (spent + more <= budget_usd * MICRO) return
  const [spend_usd, call_usd] = [spent / MICRO, more / MICRO]
  const text = `This call may cost ${call_usd} USD. Of ${what} of ${budget_usd} USD in a month, ${spend_usd} USD are spent or reserved.`
  throw new ApiError("ai_budget_exceeded", text, { spend_usd, budget_usd })
}

interface Settlement {
  spent_micro: number
  keeps_quota: boolean
}

/** Whoever deletes the row of the call settles it. The locks have the order of `reserve`. */
async function settle(tx: Tx, call: AiCallRow, { spent_micro, keeps_quota }: Settlement) {
  const { id, project_id, period, action, held_micro: held } = call
  const ours = and(eq(aiCalls.id, id), eq(aiCalls.project_id, project_id))
  const ended = await tx.delete(aiCalls).where(ours).returning({ id: aiCalls.id })
  if (ended.length === 0) return
  if (!keeps_quota) {
    const one_less = sql`${aiQuotas.used} - 1`
    await tx.update(aiQuotas).set({ used: one_less }).where(isQuota(call))
  }
  const count = keeps_quota ? 1 : 0
  const moved = (columns: typeof aiSpending | typeof aiInstanceSpending) => ({
    spent_micro: sql`${columns.spent_micro} + ${spent_micro}`,
    held_micro: sql`${columns.held_micro} - ${held}`,
  })
  await tx
    .insert(aiSpending)
    .values({ project_id, period, action, count, spent_micro, held_micro: 0 })
    .onConflictDoUpdate({
      target: [aiSpending.project_id, aiSpending.period, aiSpending.action],
      set: { count: sql`${aiSpending.count} + ${count}`, ...moved(aiSpending) },
    })
  if (held === 0) return
  const of_all = aiInstanceSpending
  await tx.update(of_all).set(moved(of_all)).where(eq(of_all.period, period))
}

type QuotaKey = Pick<AiCallRow, "account_id" | "period" | "action">

const isQuota = ({ account_id, period, action }: QuotaKey): SQL | undefined =>
  and(eq(aiQuotas.account_id, account_id), eq(aiQuotas.period, period), eq(aiQuotas.action, action))
