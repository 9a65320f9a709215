import { and, eq, inArray } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { millis } from "../core/time"
import { held } from "../store/dialect"
import { prepared } from "../store/statements"
import type { Tx } from "../store/store"
import { sendBuckets } from "./tables"

const SECOND = 1_000_000

/** Longer than any batch needs to drain: what lies further ahead is a clock that stepped back. */
const LONGEST = 120 * SECOND

export interface SendBucket {
  project_id: string
  channel: string
  /** Sends a second, and the size of the bucket; null is unlimited. */
  limit: number | null
}

/**
 * Takes room for sends, each wish as a whole and in order. A wish larger than the bucket is let in
 * when the bucket is empty, and then drains for as long as it takes. Returns a refusal (429
 * `rate_limited`) for each wish without room, and null for the others. Undone with the transaction.
 */
export async function consume(tx: Tx, { limit, ...key }: SendBucket, wishes: number[]) {
  if (limit === null) return wishes.map(() => null)
  const now = millis() * 1000
  const row = await hold(tx, key, now)
  const ahead = row.drained - now
  let drained = ahead > LONGEST ? now : Math.max(now, row.drained)
  const refusals = wishes.map((units) => {
    const backlog = drained - now
    const size = Math.min(units, limit)
    const excess = limit === 0 ? SECOND : backlog + (size * SECOND) / limit - SECOND
    if (excess > 1) return full(limit, excess) // 1: what rounding may leave
    drained += Math.round((units * SECOND) / limit)
    return null
  })
  if (drained !== row.drained) await write(tx, { ...key, drained })
  return refusals
}

/** Empties the buckets of these projects: what drains by an old limit says nothing of a new one. */
export const empty = (tx: Tx, project_ids: string[]) =>
  tx.delete(sendBuckets).where(inArray(sendBuckets.project_id, project_ids))

function full(limit: number, excess: number): ApiError {
  const retry_after = Math.max(1, Math.ceil(excess / SECOND))
  const message = `This project may send ${limit} messages a second. Try again in ${retry_after} s.`
  const details = { retry_after, limit, window_seconds: 1, scope: "sends" }
  return new ApiError("rate_limited", message, details)
}

async function hold(tx: Tx, key: { project_id: string; channel: string }, drained: number) {
  const [known] = await find(tx, key)
  if (known) return known
  // Another node may have been faster: then its row stands.
  await tx
    .insert(sendBuckets)
    .values({ ...key, drained })
    .onConflictDoNothing()
  const [made] = await find(tx, key)
  return made ?? { ...key, drained }
}

const { project_id, channel, drained } = sendBuckets

const find = prepared({ project_id, channel }, (tx: Tx, slot) =>
  held(
    tx
      .select()
      .from(sendBuckets)
      .where(and(eq(project_id, slot.project_id), eq(channel, slot.channel))),
  ),
)

const write = prepared({ project_id, channel, drained }, (tx: Tx, slot) =>
  tx
    .update(sendBuckets)
    .set({ drained: slot.drained })
    .where(and(eq(project_id, slot.project_id), eq(channel, slot.channel))),
)
