import type { Static } from "@sinclair/typebox"
import { and, eq, inArray, lte } from "drizzle-orm"
import { conflict, fail } from "../core/errors"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import { fieldsOf } from "../lib/record-fields"
import { short } from "../store/columns"
import { removeSome, rowById, rowForUpdate } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { Job as JobAnswer } from "./schemas"
import { type JobError, longJobs } from "./tables"

type Row = typeof longJobs.$inferSelect

const KEPT_SECONDS = 30 * 86_400
const PURGE_LIMIT = 500

/** The Job record of the contract (10, section 3). */
export type Job = Static<typeof JobAnswer>

interface NewJob {
  /** `noun.verb`, as `webhook.replay`. */
  type: string
  /** The amount of work; 0 while it is unknown, see `progress`. */
  total?: number
}

/**
 * Records a job as `queued`, in the transaction that enqueues its work. The caller answers 201 with
 * what it returns, and passes its `id` on in the payload of the queue.
 */
export async function begin(tx: Tx, project_id: string, { type, total = 0 }: NewJob): Promise<Job> {
  const row: Row = {
    id: newId(),
    project_id,
    type,
    status: "queued",
    total,
    done: 0,
    failed: 0,
    result: null,
    error: null,
    created_at: now(),
    completed_at: null,
  }
  await tx.insert(longJobs).values(row)
  return toResponse(row)
}

export interface LongJobStep {
  /** What was finished since the last step, failures not among it. */
  done?: number
  failed?: number
  total?: number
}

/**
 * Adds to what is done, in the transaction of the work that it counts: then a handler that runs
 * twice counts nothing twice. The first step makes the job `running`. Returns whether to go on:
 * false once the job was cancelled (or is over, or gone), which undoes nothing and counts nothing.
 */
export async function progress(
  tx: Tx,
  project_id: string,
  id: string,
  { done = 0, failed = 0, total }: LongJobStep = {},
): Promise<boolean> {
  const job = await open(tx, project_id, id)
  if (!job) return false
  const sums = { done: job.done + done, failed: job.failed + failed, total: total ?? job.total }
  await set(tx, job, { status: "running", ...sums })
  return true
}

export interface Ending {
  result?: unknown
  /** Why nothing did: then the job is `failed`. Its message is shown to people. */
  error?: JobError
}

/** Ends a job as `completed`, or as `failed` where there is an error. Nothing happens to one that is over. */
export async function finish(tx: Tx, project_id: string, id: string, ending: Ending = {}) {
  const job = await open(tx, project_id, id)
  if (!job) return
  const { result = null, error } = ending
  const why = error && { code: error.code, message: short(error.message) }
  const status = why ? "failed" : "completed"
  await set(tx, job, { status, result, error: why ?? null, completed_at: now() })
}

/** In place of a project's id: the job is of the instance itself, and for its operators. */
export const INSTANCE_JOB = ""

/** Throws 404 for a job of another project as for one that never was. Operators find those of the instance. */
export async function find(
  db: Reader,
  project_id: string,
  id: string,
  is_operator = false,
): Promise<Job> {
  return toResponse((await rowById(db, longJobs, id, seenBy(project_id, is_operator))) ?? gone())
}

export async function lookup(db: Reader, project_id: string, id: string): Promise<Job | undefined> {
  const row = await rowById(db, longJobs, id, seenBy(project_id))
  return row && toResponse(row)
}

/** What was done stays done; the rest is left. Throws 404, and 409 `conflict` for a job that is over. */
export async function cancel(
  tx: Tx,
  project_id: string,
  id: string,
  is_operator = false,
): Promise<Job> {
  const job = (await rowForUpdate(tx, longJobs, id, seenBy(project_id, is_operator))) ?? gone()
  if (job.completed_at !== null)
    conflict("finished", id, `This job is ${job.status} already and cannot be cancelled.`)
  return toResponse(await set(tx, job, { status: "cancelled", completed_at: now() }))
}

/** Forgets some of what ended long ago. Returns how many; call it until there are none. */
export function purgeEnded(store: Store): Promise<number> {
  const old = lte(longJobs.completed_at, secondsFromNow(-KEPT_SECONDS))
  return removeSome(store, longJobs, { id: longJobs.id, old, most: PURGE_LIMIT })
}

const gone = () => fail("not_found", "There is no such job.")

const seenBy = (project_id: string, is_operator = false) =>
  inArray(longJobs.project_id, is_operator ? [project_id, INSTANCE_JOB] : [project_id])

/** Undefined for one that is over. */
async function open(tx: Tx, project_id: string, id: string): Promise<Row | undefined> {
  const row = await rowForUpdate(tx, longJobs, id, seenBy(project_id))
  return row?.completed_at === null ? row : undefined
}

async function set(tx: Tx, row: Row, changes: Partial<Row>): Promise<Row> {
  await tx
    .update(longJobs)
    .set(changes)
    .where(and(seenBy(row.project_id), eq(longJobs.id, row.id)))
  return { ...row, ...changes }
}

const toResponse = ({ done, total, failed, ...row }: Row) =>
  fieldsOf(JobAnswer, { ...row, progress: { done, total, failed } })
