import { asc } from "drizzle-orm"
import {
  bind,
  enqueueAll,
  type JobKind,
  type JobRow,
  jobTable,
  type NewWork,
} from "../../src/jobs/jobs"
import { WorkLoop } from "../../src/jobs/loop"
import { jobs } from "../../src/jobs/tables"
import { OVER, type WorkResult } from "../../src/jobs/work-item"
import type { WorkTable } from "../../src/jobs/work-table"
import type { Store, Tx } from "../../src/store/store"
import { idFor } from "../harness/ids"

const HOUR_SECONDS = 3600
const LEASE_MS = 30_000

export interface Ring {
  bell: number
}

/** A job for tests: three attempts, an hour apart. */
export const ring: JobKind<Ring> = {
  name: "bell.ring",
  schedule: (attempt) => (attempt < 3 ? HOUR_SECONDS : undefined),
}

export const bellOf = ({ payload }: Pick<JobRow, "payload">) => (payload as Ring).bell

/** So many jobs, for the bells from `first` upwards. */
export const enqueueRings = (
  store: Store,
  count: number,
  more: Partial<NewWork<Ring>> = {},
  first = 0,
) =>
  store.tx((tx) => {
    const bells = Array.from({ length: count }, (_, n) => n + first)
    const work = bells.map((bell) => ({ payload: { bell }, project_id: idFor("p"), ...more }))
    return enqueueAll(tx, ring, work)
  })

/** What a test does with rings. */
export interface RingWork<End = never> {
  run(ring: Ring, job: JobRow): Promise<WorkResult<End>>
  onDead?: (tx: Tx, ring: Ring, reason: string) => Promise<void>
  /** Writes what the jobs came to that are over, together. */
  onDone?: (tx: Tx, ends: End[]) => Promise<void>
  onClaim?: (rows: JobRow[]) => void
  onRelease?: (rows: JobRow[]) => void
}

/** The table of jobs, whose rings are done as a test wants it. */
export function ringTable<End>(work: RingWork<End>): WorkTable<JobRow, End> {
  const { onDead, onDone, onClaim, onRelease } = work
  const plain = jobTable(bind(ring, { run: async () => ({}), ...(onDead && { onDead }) }))
  return {
    ...plain,
    ...(onClaim && { onClaim }),
    ...(onRelease && { onRelease }),
    async run(job, recheck) {
      if (job.name !== ring.name) return plain.run(job, recheck) as Promise<WorkResult<End>>
      const result = await work.run(job.payload as Ring, job)
      const is_plain = !(result.done ?? result.retry ?? result.hold ?? result.settled)
      return { frees_slot: is_plain && result.end === undefined, ...result }
    },
    async settle(tx, list) {
      await plain.settle(tx, list as never)
      const over = list.filter(({ after, end }) => after.state === OVER && end !== undefined)
      if (over.length > 0) await onDone?.(tx, over.map(({ end }) => end) as End[])
    },
  }
}

interface LoopOptions {
  concurrency?: number
  most_unsettled?: number
  alone?: boolean
  lease_ms?: number
  isAsked?: () => boolean
}

export type RunningLoop<End = never> = WorkLoop<JobRow, End> & AsyncDisposable

/** A loop that is at work until it is disposed of. */
export async function running<End = never>(
  store: Store,
  work: RingWork<End>,
  options: LoopOptions = {},
): Promise<RunningLoop<End>> {
  const table = ringTable(work)
  const usual = { concurrency: 10, alone: false, lease_ms: LEASE_MS }
  const loop = new WorkLoop({ store, table, ...usual, ...options })
  await loop.start()
  return Object.assign(loop, { [Symbol.asyncDispose]: () => loop.stop(20_000) })
}

/** Every job there is, oldest first. */
export const allJobs = (store: Store) => store.read.select().from(jobs).orderBy(asc(jobs.id))

/** Looks again and again, because a loop works beside us; the test's own limit ends it. */
export async function until(store: Store, isSo: (rows: JobRow[]) => boolean) {
  for (;;) {
    const rows = await allJobs(store)
    if (isSo(rows)) return rows
    await Bun.sleep(2)
  }
}

export const emptied = (store: Store) => until(store, (rows) => rows.length === 0)
