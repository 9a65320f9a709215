import { eq } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { isPast, now } from "../core/time"
import { codeOfSilence, projectCaller } from "../identity/project-caller"
import { enqueueAll, type JobHandler } from "../jobs/jobs"
import type { Planners } from "../messages/planner"
import { rowById, rowForUpdate } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { audienceSourceOf } from "./audience-source"
import { completeIfDone, end, type FanOutParts, giveUp, plannerOf } from "./fan-out"
import { fanOutPart, type fanOutStart, partWork } from "./fan-out-jobs"
import { type FanOutRow, fanOutParts, fanOuts } from "./tables"

/** Nodes that can walk through one audience side by side. */
const MOST_PARTS = 64

/** A share that is worth a job of its own. */
const LEAST_OF_PART = 2000

/** What a fan-out is walked with. */
export type WalkParts = Pick<FanOutParts, "store" | "planners">

type Payload = NonNullable<(typeof fanOutStart)["payload"]>

/** Fixes the audience: the members at this moment, and no later ones. */
export const start = ({ store, planners }: WalkParts): JobHandler<Payload> => ({
  async run({ fan_out_id }) {
    const row = await rowById(store.read, fanOuts, fan_out_id)
    if (!row || row.completed_at !== null) return {}
    const refusal = await refusalNow(store.read, planners, row)
    await store.tx(async (tx) => {
      if (refusal) await end(tx, fan_out_id, "failed", refusal)
      else await begin(tx, fan_out_id)
    })
    return {}
  },
  onDead: async (tx, { fan_out_id }, reason) => void (await giveUp(tx, fan_out_id, reason)),
})

/** The code with which the same request would be refused now; undefined where nothing stands in the way. */
export async function refusalNow(
  db: Reader,
  planners: Planners,
  { id, project_id, channels, intent }: FanOutRow,
): Promise<string | undefined> {
  const caller = await projectCaller(db, project_id)
  if (!caller) return codeOfSilence(db, project_id)
  try {
    for (const channel of channels) {
      await plannerOf(planners, channel).requireReady(caller, intent[channel])
    }
    return undefined
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === "service_unavailable") throw error
    log.warn("a publish cannot go on", { publish_id: id, reason: error.message })
    return error.code
  }
}

async function begin(tx: Tx, id: string): Promise<void> {
  const row = await rowForUpdate(tx, fanOuts, id)
  if (!row || row.completed_at !== null || row.started_at !== null) return
  if (row.expires_at !== null && isPast(row.expires_at)) {
    await end(tx, id, "failed", "expired")
    return
  }
  const source = audienceSourceOf(row)
  const fixed = await source.fix(tx, row)
  if (!fixed) {
    await end(tx, id, "failed", source.gone)
    return
  }
  const { size: audience, last_number } = fixed
  const change = { status: "fanning_out", audience, started_at: now() } as const
  await tx.update(fanOuts).set(change).where(eq(fanOuts.id, id))
  const parts = shares(last_number, audience, tx.isAlone ? 1 : MOST_PARTS)
  if (audience === 0 || parts.length === 0) return completeIfDone(tx, id)
  await tx
    .insert(fanOutParts)
    .values(parts.map(({ from, until }, part) => ({ fan_out_id: id, part, cursor: from, until })))
  const work = parts.map((_, part) => partWork({ fan_out_id: id, part }, row.project_id))
  await enqueueAll(tx, fanOutPart, work)
}

/** Numbers of members, in shares of the same length. */
function shares(last_number: number, audience: number, most: number) {
  const count = Math.min(most, Math.max(1, Math.ceil(audience / LEAST_OF_PART)))
  const length = Math.ceil(last_number / count)
  return Array.from({ length: count }, (_, part) => ({
    from: part * length,
    until: Math.min(last_number, (part + 1) * length),
  })).filter(({ from, until }) => until > from)
}
