import { asc } from "drizzle-orm"
import { bind, type JobHandler } from "../../src/jobs/job-handler"
import { JobLoop } from "../../src/jobs/job-loop"
import * as queue from "../../src/jobs/queue"
import { jobs } from "../../src/jobs/tables"
import type { Store } from "../../src/store/store"
import { idFor } from "../harness/ids"

const HOUR_SECONDS = 3600

export interface Ring {
  bell: number
}

/** A job for tests: three attempts, an hour apart. */
export const ring: queue.JobKind<Ring> = {
  name: "bell.ring",
  schedule: (attempt) => (attempt < 3 ? HOUR_SECONDS : undefined),
}

export const bellOf = ({ payload }: queue.ClaimedJob) => (payload as Ring).bell

/** So many jobs, for the bells from `first` upwards. */
export const enqueueRings = (
  store: Store,
  count: number,
  more: Partial<queue.Enqueued<Ring>> = {},
  first = 0,
) =>
  store.tx((tx) => {
    const bells = Array.from({ length: count }, (_, n) => n + first)
    const work = bells.map((bell) => ({ payload: { bell }, project_id: idFor("p"), ...more }))
    return queue.enqueueAll(tx, ring, work)
  })

interface LoopOptions {
  concurrency?: number
  alone?: boolean
  lease_ms?: number
  isAsked?: () => boolean
}

export type RunningLoop = JobLoop & AsyncDisposable

/** A loop that is at work until it is disposed of. */
export async function running<End = never>(
  store: Store,
  handler: JobHandler<Ring, never, End>,
  { concurrency = 10, alone = false, lease_ms = 30_000, isAsked = () => false }: LoopOptions = {},
): Promise<RunningLoop> {
  const handlers = bind(ring, handler)
  const loop = new JobLoop({ store, handlers, concurrency, lease_ms, alone, isAsked })
  await loop.start()
  return Object.assign(loop, { [Symbol.asyncDispose]: () => loop.stop(20_000) })
}

/** Every job there is, oldest first. */
export const allJobs = (store: Store) => store.read.select().from(jobs).orderBy(asc(jobs.id))

/** Looks again and again, because a loop works beside us; the test's own limit ends it. */
export async function until(store: Store, isSo: (rows: queue.ClaimedJob[]) => boolean) {
  for (;;) {
    const rows = await allJobs(store)
    if (isSo(rows)) return rows
    await Bun.sleep(2)
  }
}

export const emptied = (store: Store) => until(store, (rows) => rows.length === 0)
