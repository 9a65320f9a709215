import { and, lt } from "drizzle-orm"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import { short } from "../store/columns"
import { removeSome } from "../store/rows"
import { inserter, remover, updater } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { arrivalsOf } from "./arrivals"
import { jobs } from "./tables"
import {
  DEAD,
  OVER,
  PRIORITIES,
  READY,
  type RetrySchedule,
  type Settled,
  type WorkResult,
} from "./work-item"
import { isDead, WorkRows, wakeUpOf } from "./work-rows"
import type { WorkTable } from "./work-table"

/** The last error of a job that is given up as soon as it is claimed. */
export const DROPPED = "An operator dropped the job after a restore."

const DEAD_SECONDS = 30 * 86_400
const PURGE_LIMIT = 500

/** A kind of work. Delivery is at least once: its handler must tolerate a second run. */
export interface JobKind<Payload> {
  name: string
  schedule: RetrySchedule
  payload?: Payload // carries the type only; never set
}

export interface NewWork<Payload> {
  payload: Payload
  project_id: string | null
  priority?: number
  run_at?: string
}

export type JobRow = typeof jobs.$inferSelect

/** What a handler answers. A handler that throws asks for another try. */
export type JobResult<End = never> = Pick<
  WorkResult<End>,
  "done" | "end" | "frees_slot" | "retry" | "schedule"
>

export interface JobHandler<Payload, End = never> {
  run(payload: Payload, job: JobRow): Promise<JobResult<End>>
  /** Writes the `end` of each run that ends in the same transaction. It may run twice. */
  settle?: (tx: Tx, ends: End[]) => Promise<void>
  /** Writes the last word about the work, in the transaction that gives up on it. */
  onDead?: (tx: Tx, payload: Payload, reason: string) => Promise<void>
}

export type JobHandlers = Record<
  string,
  { schedule: RetrySchedule; handler: JobHandler<never, unknown> }
>

export const bind = <Payload, End = never>(
  job: JobKind<Payload>,
  handler: JobHandler<Payload, End>,
): JobHandlers => ({
  [job.name]: { schedule: job.schedule, handler: handler as JobHandler<never, unknown> },
})

/** Part of the caller's transaction: if that rolls back, there is no job either. */
export async function enqueueAll<Payload>(tx: Tx, job: JobKind<Payload>, list: NewWork<Payload>[]) {
  const created_at = now()
  const fresh = { state: READY, attempt: 0, owner: null, lease_until: null, last_error: null }
  const rows = list.map(({ payload, project_id, priority, run_at }) => ({
    id: newId(),
    name: job.name,
    project_id,
    payload,
    priority: priority ?? PRIORITIES.normal,
    run_at: run_at ?? created_at,
    created_at,
    ...fresh,
  }))
  await insertJobs(tx, rows)
  tx.afterCommit(() => {
    const arrivals = arrivalsOf<JobRow>(tx, jobRows.name)
    for (const row of rows) arrivals?.keep(row.id, row)
    wakeUpOf(tx, "jobs").wakeUp()
  })
}

export const enqueue = <Payload>(tx: Tx, job: JobKind<Payload>, work: NewWork<Payload>) =>
  enqueueAll(tx, job, [work])

export const jobRows = new WorkRows<JobRow>(jobs, jobs.priority, {
  buried: (last_error) => ({ last_error }),
})

export const jobTable = (handlers: JobHandlers): WorkTable<JobRow> => ({
  rows: jobRows,
  queueOf: ({ name }) => name,
  scheduleOf: ({ name }) => handlers[name]?.schedule ?? (() => undefined),
  async run(job) {
    if (job.last_error === DROPPED) return { retry: DROPPED, schedule: () => undefined }
    const { handler } = handlers[job.name] ?? {}
    if (!handler) throw new Error(`There is no handler for the job "${job.name}"`)
    const result = await handler.run(job.payload as never, job)
    const writes = result.done !== undefined || result.end !== undefined
    return { frees_slot: !writes && result.retry === undefined, ...result }
  },
  async settle(tx, list) {
    const [over, open] = [list.filter(isOver), list.filter((one) => !isOver(one))]
    await deleteJobs(
      tx,
      over.map(({ row: { id } }) => ({ id })),
    )
    const ended = over.filter(({ end }) => end !== undefined)
    for (const [name, list] of Map.groupBy(ended, ({ row }) => row.name)) {
      const ends = list.map(({ end }) => end)
      await handlers[name]?.handler.settle?.(tx, ends)
    }
    await updateJobs(
      tx,
      open.map(({ row, after, reason }) => {
        // A pause of its kind must not bring it back.
        const last_error = row.last_error === DROPPED ? DROPPED : short(reason)
        return { id: row.id, ...after, last_error }
      }),
    )
    for (const { row, after, reason } of open) {
      if (after.state !== DEAD) continue
      const { onDead } = handlers[row.name]?.handler ?? {}
      await onDead?.(tx, row.payload as never, reason ?? "")
    }
  },
})

const isOver = ({ after }: Settled<JobRow, unknown>) => after.state === OVER

/** Forgets what was buried long ago, some at a time. Returns how many jobs went. */
export function purgeDead(store: Store): Promise<number> {
  const old = and(isDead, lt(jobs.run_at, secondsFromNow(-DEAD_SECONDS)))
  return removeSome(store, jobs, { id: jobs.id, old, most: PURGE_LIMIT })
}

const insertJobs = inserter(jobs, { quiet: true }) // see `jobs/in-flight.ts`
const deleteJobs = remover(jobs, ["id"], { quiet: true })
const updateJobs = updater(jobs, {
  where: ["id"],
  set: ["state", "run_at", "attempt", "owner", "last_error"],
  clear: ["lease_until"],
  quiet: true,
})
