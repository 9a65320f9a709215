import { and, eq } from "drizzle-orm"
import { emit } from "../events/emit"
import { bumpAll } from "../store/counters"
import { holdById } from "../store/rows"
import type { Tx } from "../store/store"
import { end } from "./fan-out"
import { countsOf, foundOf, skippedName } from "./fan-out-counts"
import { fanOutParts, fanOuts } from "./tables"

/** Ends a part that is walked through, and with the last one the fan-out. */
export async function endPart(tx: Tx, fan_out_id: string, part: number): Promise<void> {
  await holdById(tx, fanOuts, fan_out_id) // before the part, as whatever ends a fan-out
  const ours = and(eq(fanOutParts.fan_out_id, fan_out_id), eq(fanOutParts.part, part))
  await tx.delete(fanOutParts).where(ours)
  await completeIfDone(tx, fan_out_id)
}

/**
 * Completes a fan-out of which no part is left. What the walk has not met of its audience left the topic
 * before.
 */
export async function completeIfDone(tx: Tx, id: string): Promise<void> {
  const row = await holdById(tx, fanOuts, id)
  if (!row || row.completed_at !== null) return
  const left = tx.select({ part: fanOutParts.part }).from(fanOutParts)
  if ((await left.where(eq(fanOutParts.fan_out_id, id)).limit(1)).length > 0) return
  const gone = Math.max(0, (row.audience ?? 0) - (await foundOf(tx, id)))
  const changes = row.channels.map((channel) => [skippedName(channel, "preference"), gone] as const)
  await bumpAll(tx, id, new Map(changes))
  const ended = await end(tx, id, "completed", null)
  if (!ended) return
  const counts = await countsOf(tx, [ended])
  const { account_id, project_id, topic_key, audience, completed_at } = ended
  await emit(tx, {
    account_id,
    project_id,
    subject_id: id,
    type: "topic.publish_completed",
    data: {
      publish_id: id,
      topic_key,
      audience,
      counts: counts.get(id) ?? {},
      timestamp: completed_at,
    },
  })
}
