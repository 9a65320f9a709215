import { and, asc, type Column, eq, lte, sql, sum } from "drizzle-orm"
import { settings } from "../core/config"
import type { TokenPrice } from "../core/config-ai"
import { ApiError } from "../core/errors"
import { newId } from "../core/ids"
import { boundsOf, currentPeriod, now, secondsFromNow } from "../core/time"
import { dayPurge } from "../store/old-days"
import type { Reader, Store, Tx } from "../store/store"
import type { ModelUsage } from "./ai-task"
import { type AiCallRow, aiCalls, aiInstanceSpending, aiQuotas, aiSpending } from "./tables"

/** No call takes as long. What is open then was left by a crash. */
const LEASE_SECONDS = 180

/** Money is counted in millionths of a US dollar. A token costs as many as a million tokens cost dollars. */
export const MICRO = 1_000_000

/** What a call needs: one of the quota, and its largest possible cost. */
type WantedCall = Pick<AiCallRow, "account_id" | "project_id" | "action" | "held_micro"> & {
  /** Of the account in a month; null is unlimited. */
  limit: number | null
  /** Null costs nothing. */
  price: TokenPrice | null
  /** Of the project in a month; null is unlimited. */
  budget_usd: number | null
}

/** An open call, with what it holds. `endCall` ends it. */
export type Reservation = AiCallRow & Pick<WantedCall, "limit" | "price">

/** How much of an action's quota is used. A limit of null is unlimited. */
export interface AiQuota {
  used: number
  limit: number | null
  resets_at: string
}

/** Takes the quota and the cost, or nothing. Throws 402 `ai_quota_exceeded` or `ai_budget_exceeded`. */
export function reserve(store: Store, wanted: WantedCall): Promise<Reservation> {
  const { limit, price, budget_usd, ...own } = wanted
  const lease_until = secondsFromNow(LEASE_SECONDS)
  const call = { ...own, id: newId(), period: currentPeriod(), lease_until }
  const { held_micro, project_id, period } = call
  return store.tx(async (tx) => {
    const { used, of_all } = await add(tx, call, { used: 1, held_micro })
    if (limit !== null && used > limit) throw quotaUsedUp(call, used - 1, limit)
    if (held_micro > 0) {
      const spent = await spentBy(tx, project_id, period)
      requireWithin(budget_usd, spent, held_micro, "The project")
      requireWithin(settings()["ai.monthly_ceiling_usd"], of_all, held_micro, "The server")
    }
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

/** Settles a call once: of one whose lease is over, nothing more is counted. Returns its cost, and the quota. */
export function endCall(
  { store }: { store: Store },
  { limit, price, ...call }: Reservation,
  { usage, keeps_quota }: CallOutcome,
): Promise<{ cost_usd: number; quota: AiQuota }> {
  const spent_micro = usage ? costOf(price, usage) : 0
  return store.tx(async (tx) => {
    await settle(tx, call, spent_micro, keeps_quota)
    return { cost_usd: spent_micro / MICRO, quota: await quotaOf(tx, { ...call, limit }) }
  })
}

type QuotaKey = Pick<AiCallRow, "account_id" | "period" | "action">

/** What the account has used of an action's quota in a month, with what open calls hold. */
export async function quotaOf(
  db: Reader,
  { account_id, period, action, limit }: QuotaKey & Pick<AiQuota, "limit">,
): Promise<AiQuota> {
  const ours = and(eq(aiQuotas.account_id, account_id), eq(aiQuotas.period, period))
  const own = and(ours, eq(aiQuotas.action, action))
  const [row] = await db.select().from(aiQuotas).where(own)
  return { used: row?.used ?? 0, limit, resets_at: boundsOf(period).end }
}

/** Overdue calls of one round; the others come with the next ones. */
const AT_ONCE = 200

/** Ends calls that a crash left, and gives back all that they hold. Returns how many. */
export async function freeOverdueCalls(store: Store): Promise<number> {
  const { lease_until } = aiCalls
  const overdue = store.read.select().from(aiCalls).where(lte(lease_until, now()))
  const calls = await overdue.orderBy(asc(lease_until)).limit(AT_ONCE)
  for (const call of calls) await store.tx((tx) => settle(tx, call, 0, false))
  return calls.length
}

/** Each removes up to 200 counts of months long past. It returns how many went. */
export const purgeAiMonths = [
  dayPurge(aiQuotas, ["account_id", "period", "action"], "period"),
  dayPurge(aiSpending, ["project_id", "period", "action"], "period"),
  dayPurge(aiInstanceSpending, ["period"], "period"),
]

/** In millionths of a US dollar, rounded up. */
export const costOf = (price: TokenPrice | null, tokens: ModelUsage): number =>
  price ? Math.ceil(tokens.input_tokens * price.input + tokens.output_tokens * price.output) : 0

/** The caller that deletes the row of the call settles it. */
async function settle(tx: Tx, call: AiCallRow, spent_micro: number, keeps_quota: boolean) {
  const ours = and(eq(aiCalls.id, call.id), eq(aiCalls.project_id, call.project_id))
  const ended = await tx.delete(aiCalls).where(ours).returning({ id: aiCalls.id })
  if (ended.length === 0) return
  const [used, count] = keeps_quota ? [0, 1] : [-1, 0]
  await add(tx, call, { used, count, spent_micro, held_micro: -call.held_micro })
}

type Amounts = Partial<Record<"used" | "count" | "spent_micro" | "held_micro", number>>

/**
 * Adds to what is counted, always in this order. The row of the server is locked last, until the transaction
 * ends: so nobody else adds to the spending of a project between the sum and the decision about it.
 */
async function add(tx: Tx, { account_id, project_id, period, action }: AiCallRow, more: Amounts) {
  const { used = 0, count = 0, spent_micro = 0, held_micro = 0 } = more
  const money = (table: typeof aiSpending | typeof aiInstanceSpending) => ({
    spent_micro: plus(table.spent_micro, spent_micro),
    held_micro: plus(table.held_micro, held_micro),
  })
  const [quota] = await tx
    .insert(aiQuotas)
    .values({ account_id, period, action, used })
    .onConflictDoUpdate({
      target: [aiQuotas.account_id, aiQuotas.period, aiQuotas.action],
      set: { used: plus(aiQuotas.used, used) },
    })
    .returning()
  await tx
    .insert(aiSpending)
    .values({ project_id, period, action, count, spent_micro, held_micro })
    .onConflictDoUpdate({
      target: [aiSpending.project_id, aiSpending.period, aiSpending.action],
      set: { count: plus(aiSpending.count, count), ...money(aiSpending) },
    })
  const [all] = await tx
    .insert(aiInstanceSpending)
    .values({ period, spent_micro, held_micro })
    .onConflictDoUpdate({ target: aiInstanceSpending.period, set: money(aiInstanceSpending) })
    .returning()
  return { used: quota?.used ?? 0, of_all: all ? all.spent_micro + all.held_micro : 0 }
}

const plus = (column: Column, amount: number) => sql`${column} + ${amount}`

async function spentBy(tx: Tx, project_id: string, period: string): Promise<number> {
  const { spent_micro, held_micro } = aiSpending
  const ours = and(eq(aiSpending.project_id, project_id), eq(aiSpending.period, period))
  const total = sum(sql`${spent_micro} + ${held_micro}`).mapWith(Number)
  const [row] = await tx.select({ total }).from(aiSpending).where(ours)
  return row?.total ?? 0
}

function quotaUsedUp({ action, period }: QuotaKey, used: number, limit: number) {
  const reset_at = boundsOf(period).end
  const text = `This month's quota of ${limit} for ${action} is used up. The next month begins at ${reset_at}.`
  return new ApiError("ai_quota_exceeded", text, { action, used, limit, reset_at })
}

/** `spent` has this call in it, and the largest costs of other open calls. */
function requireWithin(budget_usd: number | null, spent: number, held: number, whose: string) {
  if (budget_usd === null || spent <= budget_usd * MICRO) return
  const spend_usd = (spent - held) / MICRO
  const text = `This call may cost ${held / MICRO} USD. ${whose} may spend ${budget_usd} USD in a month, and ${spend_usd} USD are spent or reserved.`
  throw new ApiError("ai_budget_exceeded", text, { spend_usd, budget_usd })
}
