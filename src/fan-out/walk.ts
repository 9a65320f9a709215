import { edenGC } from "bun:jsc"
import { eq } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { isPast, monotonic, nextTurn, now, secondsFromNow } from "../core/time"
import { codeOfSilence, projectCaller } from "../identity/caller"
import { enqueue, enqueueAll, type JobHandler, type JobResult } from "../jobs/jobs"
import { DeferredError } from "../jobs/work-item"
import { Semaphore } from "../lib/semaphore"
import { type SharedLanguages, sharedLanguages } from "../messages/contents"
import type { Planners } from "../messages/planner"
import { perStore } from "../store/cached"
import { rowById, rowForUpdate } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { audienceOf } from "../subscribers/audience"
import { audienceSourceOf } from "./audience-source"
import { type ChannelPlan, type ChunkInput, type ChunkResult, findPart, writeChunk } from "./chunk"
import {
  completeIfDone,
  end,
  endPart,
  type FanOutParts,
  fanOutPart,
  giveUp,
  type PartOfWalk,
  partWork,
  plannerOf,
} from "./fan-out"
import { type FanOutRow, fanOutParts, fanOuts } from "./tables"

/** Nodes that can walk through one audience side by side. */
const MOST_PARTS = 64

/** A share that is worth a job of its own. */
const LEAST_OF_PART = 2000

/** Fixes the audience: the members at this moment, and no later ones. */
export const start = ({ store, planners }: FanOutParts): JobHandler<{ fan_out_id: string }> => ({
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
async function refusalNow(
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
    log.warn("a publish cannot continue", { publish_id: id, reason: error.message })
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

function shares(last_number: number, audience: number, most: number) {
  const count = Math.min(most, Math.max(1, Math.ceil(audience / LEAST_OF_PART)))
  const length = Math.ceil(last_number / count)
  return Array.from({ length: count }, (_, part) => ({
    from: part * length,
    until: Math.min(last_number, (part + 1) * length),
  })).filter(({ from, until }) => until > from)
}

/** After so long a part goes behind the others that wait. */
const SLICE_MS = 1000

/**
 * The young garbage of so many chunks is collected at once, some 12 MB in some 2 ms. By itself the collector begins in
 * the middle of a chunk. It then takes what that chunk still uses for old, and old garbage stays for many seconds.
 */
const CHUNKS_A_COLLECTION = 8

/**
 * Walks through a part of the audience for a second, then plans the next second as a new job, in the
 * transaction that ends this one. So a process that dies leaves a job that knows where to go on. Where
 * others wait, that job comes behind them.
 */
export const walk = (parts: FanOutParts): JobHandler<PartOfWalk> => ({
  async run(payload) {
    const permit = await acquireWalk(parts.store.read)
    try {
      return await slice(parts, payload, permit)
    } finally {
      permit.release()
    }
  },
  onDead: async (tx, { fan_out_id }, reason) => void (await giveUp(tx, fan_out_id, reason)),
})

async function slice(
  parts: FanOutParts,
  payload: PartOfWalk,
  permit: WalkPermit,
): Promise<JobResult> {
  const { store, planners } = parts
  const { fan_out_id, part } = payload
  const fan_out = await rowById(store.read, fanOuts, fan_out_id)
  if (!fan_out || fan_out.completed_at !== null) return {}
  const refusal = await refusalNow(store.read, planners, fan_out)
  if (refusal) return { done: async (tx) => void (await end(tx, fan_out_id, "failed", refusal)) }
  const languages = await sharedLanguages(store.read, fan_out_id)
  const until = monotonic() + SLICE_MS
  let came: StepResult = "more"
  for (let chunks = 1; came === "more" && monotonic() < until; chunks++) {
    came = await walkChunk(parts, fan_out, part, languages)
    await nextTurn() // requests run between two chunks
    if (chunks % CHUNKS_A_COLLECTION === 0) edenGC()
  }
  const again_seconds = permit.isAwaited() ? LOOK_AGAIN_SECONDS : 0
  const next = came === "more" ? { wait_seconds: again_seconds } : came
  return resultOf(next, payload, fan_out)
}

/** What came of a chunk for its part: a fan-out that fails is over. */
type StepResult = Exclude<ChunkResult, { fails: string }>

export async function walkChunk(
  parts: FanOutParts,
  fan_out: FanOutRow,
  part: number,
  languages: SharedLanguages,
): Promise<StepResult> {
  const input = await inputOf(parts, fan_out, part, languages)
  const came = await parts.store.tx((tx) => writeChunk(tx, input), fan_out.project_id)
  if (typeof came === "string" || "wait_seconds" in came) return came
  // In a transaction of its own, because it waits for the chunks of other parts.
  await parts.store.tx((tx) => end(tx, fan_out.id, "failed", came.fails))
  return "over"
}

function resultOf(
  came: Exclude<StepResult, "more">,
  payload: PartOfWalk,
  { project_id }: FanOutRow,
): JobResult {
  const { fan_out_id, part } = payload
  if (came === "over") return {}
  if (came === "part_done") {
    return { done: (tx) => endPart(tx, fan_out_id, part) }
  }
  const run_at = secondsFromNow(came.wait_seconds)
  return { done: (tx) => enqueue(tx, fanOutPart, partWork(payload, project_id, run_at)) }
}

/** What is asked before the transaction, which may not wait for a thread. */
async function inputOf(
  { store, planners }: FanOutParts,
  fan_out: FanOutRow,
  part: number,
  languages: SharedLanguages,
): Promise<ChunkInput> {
  const { id, project_id } = fan_out
  const members = async () => {
    const [place] = await findPart(store.read, { fan_out_id: id, part })
    const found = place ? await audienceSourceOf(fan_out).next(store.read, fan_out, place) : []
    const ids = found.map(({ subscriber_id }) => subscriber_id)
    const known = await audienceOf(store.read, project_id, ids)
    return ids.flatMap((one) => known.get(one) ?? [])
  }
  const next = { fan_out, languages, at: now(), members }
  const plans: ChannelPlan[] = []
  for (const channel of fan_out.channels) {
    plans.push({ channel, chunk: await plannerOf(planners, channel).begin(next) })
  }
  return { fan_out_id: id, part, plans }
}

/** Parts that a process walks in at the same time: on SQLite all of them share one writer. */
const walksAtOnce = (db: Reader) => (db.isAlone ? 1 : 2)

/** Parts that wait in the process, each in the place of a job. They go on as soon as a permit is free. */
const MOST_WAITING = 4

/** Until a part beyond them looks again: as long as one part walks at a time. */
export const LOOK_AGAIN_SECONDS = 1

const walksOf = perStore((db) => new Semaphore(walksAtOnce(db)))

export interface WalkPermit {
  isAwaited(): boolean
  release(): void
}

/** In the order of the questions. Rejects with DeferredError where enough parts wait already. */
export async function acquireWalk(db: Reader): Promise<WalkPermit> {
  const walks = walksOf(db)
  const free = walks.tryAcquire()
  if (!free && walks.waiting >= MOST_WAITING) {
    throw new DeferredError("Other parts of publishes are walked.", LOOK_AGAIN_SECONDS)
  }
  const release = free ?? (await walks.acquire())
  return { isAwaited: () => walks.waiting > 0, release }
}
