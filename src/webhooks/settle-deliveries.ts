import { and, eq, inArray, isNull, lte, ne, or } from "drizzle-orm"
import { isoFrom, millis, now } from "../core/time"
import { idList, isAmong } from "../store/id-filters"
import { held } from "../store/locks"
import { prepared } from "../store/statements"
import type { Tx } from "../store/store"
import type { AttemptOutcome } from "./attempt"
import { type EndedAttempt, rowOf, stillOurs, writeEnds } from "./ended"
import { WARN_AT, warn } from "./failure-mail"
import { heldUntil } from "./held"
import { isStillInHand } from "./in-hand"
import type { Claimed } from "./queue"
import { disable } from "./status"
import { webhooks } from "./tables"

/** `last_*` of an endpoint are told to the second; a busy one is not written for each delivery. */
const FRESH_MILLISECONDS = 1000

type Webhook = typeof webhooks.$inferSelect

/**
 * Writes what attempts came to: deliveries, counters of their endpoints and the breaker, together,
 * in the order in which they ended. An attempt whose claim was lost meanwhile changes nothing.
 * `failures` in a row disable.
 */
export async function settleAll(
  tx: Tx,
  ends: readonly EndedAttempt[],
  failures: number,
): Promise<void> {
  const list = ends.filter(({ claimed }) => !claimed.in_hand || isStillInHand(claimed))
  const troubled = new Set<string>()
  for (const { claimed, outcome } of list) {
    if (outcome.error !== null) troubled.add(claimed.webhook_id)
  }
  const smooth = list.filter(({ claimed }) => !troubled.has(claimed.webhook_id))
  const rough = list.filter(({ claimed }) => troubled.has(claimed.webhook_id))
  await succeed(tx, smooth)
  await judge(tx, rough, failures)
}

async function succeed(tx: Tx, list: EndedAttempt[]) {
  if (list.length === 0) return
  const written = await writeEnds(
    tx,
    list.map((ended) => rowOf(ended, "success", null)),
  )
  const mine = list.filter(({ claimed }) => written.has(claimed.id))
  const ids = [...new Set(mine.map(({ claimed }) => claimed.webhook_id))]
  if (ids.length === 0) return
  const old = isoFrom(millis() - FRESH_MILLISECONDS)
  // Looked at first, because hardly ever there is anything to write.
  const stale = await staleOf(tx, { ids, old })
  if (stale.length === 0) return
  const { id, consecutive_failures, last_success_at } = webhooks
  const at = now()
  const changed = or(
    ne(consecutive_failures, 0),
    isNull(last_success_at),
    lte(last_success_at, old),
  )
  const theirs = inArray(id, stale.map((webhook) => webhook.id).sort())
  await tx
    .update(webhooks)
    .set({ consecutive_failures: 0, last_success_at: at, last_triggered_at: at })
    .where(and(theirs, changed))
}

const staleOf = prepared({ ids: idList, old: webhooks.last_success_at }, (tx: Tx, slot) => {
  const { id, consecutive_failures, last_success_at } = webhooks
  const written = or(
    ne(consecutive_failures, 0),
    isNull(last_success_at),
    lte(last_success_at, slot.old),
  )
  return tx
    .select({ id })
    .from(webhooks)
    .where(and(isAmong(id, slot.ids), written))
})

/** Endpoints with failures among their attempts: one after the other, in the order of the ends. */
async function judge(tx: Tx, list: EndedAttempt[], failures: number) {
  if (list.length === 0) return
  const ours = await stillOurs(tx, list)
  const ids = [...new Set(ours.map(({ claimed }) => claimed.webhook_id))].sort()
  if (ids.length === 0) return
  const query = tx.select().from(webhooks).where(inArray(webhooks.id, ids)).orderBy(webhooks.id)
  const found = new Map((await held(query)).map((webhook) => [webhook.id, webhook]))
  for (const id of ids) {
    const webhook = found.get(id)
    const ends = ours.filter(({ claimed }) => claimed.webhook_id === id)
    if (webhook) await judgeOne(tx, webhook, ends, failures)
    else await writeEnds(tx, ends.map(exhaustedOf)) // deleted meanwhile
  }
}

async function judgeOne(tx: Tx, before: Webhook, ends: EndedAttempt[], failures: number) {
  const counted = count(before, ends, failures)
  const { id, account_id, project_id, url } = before
  const { last_success_at, last_failure_at, last_triggered_at, consecutive_failures } = counted
  const last = ends.at(-1)?.outcome
  const unresolved_at = last?.error === "dns" ? last.at : null
  await tx
    .update(webhooks)
    .set({
      ...{ last_success_at, last_failure_at, last_triggered_at },
      ...{ consecutive_failures, unresolved_at },
    })
    .where(eq(webhooks.id, id))
  const told = { id, account_id, project_id, url }
  for (const at of counted.warn) {
    await warn(tx, { ...told, consecutive_failures: at }, null)
  }
  const active = before.status === "active" && counted.disable === null
  const rows = ends.map((ended) =>
    judged(ended, { ...before, status: active ? "active" : "disabled" }),
  )
  await writeEnds(tx, rows)
  if (counted.disable === null) return
  // As the counter stood when the breaker opened: attempts that ran beside it may have raised it.
  const { reason, consecutive_failures: stood } = counted.disable
  await disable(tx, { ...told, consecutive_failures: stood }, reason)
}

/** What the ends mean for their endpoint. By hand and tests warn nobody; any 2xx clears. */
function count(before: Webhook, ends: EndedAttempt[], failures: number) {
  const { consecutive_failures, last_failure_at, last_success_at, last_triggered_at } = before
  const after = { consecutive_failures, last_failure_at, last_success_at, last_triggered_at }
  const warn: number[] = []
  let disabling: { reason: "circuit_breaker" | "gone"; consecutive_failures: number } | null = null
  for (const { claimed, outcome, is_outdone = false } of ends) {
    after.last_triggered_at = outcome.at
    if (outcome.error === null) {
      after.consecutive_failures = 0
      after.last_success_at = outcome.at
      continue
    }
    after.last_failure_at = outcome.at
    const counts = isAutomatic(claimed) && !is_outdone
    if (counts) after.consecutive_failures += 1
    const stands = after.consecutive_failures
    if (before.status !== "active" || disabling) continue
    const open = counts && stands >= failures
    if (outcome.error === "gone") disabling = { reason: "gone", consecutive_failures: stands }
    else if (open) disabling = { reason: "circuit_breaker", consecutive_failures: stands }
    else if (counts && WARN_AT.includes(stands)) warn.push(stands)
  }
  return { ...after, warn, disable: disabling }
}

const isAutomatic = ({ by_hand, trigger }: Claimed) => !by_hand && trigger !== "test"

function judged(ended: EndedAttempt, webhook: Pick<Webhook, "status" | "retry_policy">) {
  const { claimed, outcome } = ended
  if (outcome.error === null) return rowOf(ended, "success", null)
  const attempts = claimed.attempts + 1
  if (attempts >= claimed.max_attempts) return rowOf(ended, "exhausted", null)
  if (webhook.status !== "active") return rowOf(ended, "held", heldUntil())
  const wait = waitSeconds(webhook.retry_policy.intervals, attempts, outcome)
  return rowOf(ended, "failed", isoFrom(millis() + wait * 1000))
}

const exhaustedOf = (ended: EndedAttempt) =>
  rowOf(ended, ended.outcome.error === null ? "success" : "exhausted", null)

/** Seconds after the attempt of this number, from 1: its interval ±10 %, or what was asked for. */
export function waitSeconds(
  intervals: readonly number[],
  attempts: number,
  { retry_after_seconds }: Pick<AttemptOutcome, "retry_after_seconds">,
): number {
  const interval = intervals[Math.min(attempts, intervals.length) - 1] ?? 0
  const jittered = interval * (0.9 + Math.random() * 0.2)
  return Math.max(jittered, retry_after_seconds ?? 0)
}
