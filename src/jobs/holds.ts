import { and, count, eq, gt, inArray, sql } from "drizzle-orm"
import { now } from "../core/time"
import { short } from "../lib/text"
import { isAmong } from "../store/id-filters"
import type { Reader, Store, Tx } from "../store/store"
import { type ClaimedJob, fenced, READY } from "./queue"
import { jobs } from "./tables"
import { ringJobs } from "./wake-ups"

/** As a literal: a bound value would keep the database from using the partial index. */
export const IS_HELD = sql`${jobs.state} = 3`

export const HELD = 3

const AT_ONCE = 500

/** Why work is not done now, though it is due. It is no attempt, so it uses none up. */
export interface Hold {
  /** When to look again; null: when the pause `by` ends. */
  until: string | null
  reason: string
  /** The queue whose pause it is. */
  by?: string
  /** It was an attempt after all, and is counted as one. */
  was_tried?: true
}

const PROVIDER_HOLD = "provider:"

/** Under which name a project's mail is held while nobody can deliver it: no operator's pause. */
export const providerHold = (project_id: string) => `${PROVIDER_HOLD}${project_id}`

/** The project whose mail is held so; undefined where an operator's pause holds it. */
export const heldProject = (by: string): string | undefined =>
  by.startsWith(PROVIDER_HOLD) ? by.slice(PROVIDER_HOLD.length) : undefined

/** Puts the job off, or under the pause that holds it. The claim was no attempt as a rule. Fenced too. */
export async function hold(tx: Tx, job: ClaimedJob, { until, reason, by, was_tried }: Hold) {
  const attempt = was_tried ? job.attempt : job.attempt - 1
  const change = { owner: by ?? null, lease_until: null, attempt, last_error: short(reason) }
  if (until === null) return fenced(tx, job, { ...change, state: HELD })
  return fenced(tx, job, { ...change, state: READY, owner: null, run_at: until })
}

/** The pauses that hold jobs now, one seek each. */
export async function holders(db: Reader): Promise<string[]> {
  const found: string[] = []
  for (;;) {
    const after = found.at(-1)
    const beyond = and(IS_HELD, after === undefined ? undefined : gt(jobs.owner, after))
    const rows = db.select({ owner: jobs.owner }).from(jobs).where(beyond)
    const [next] = await rows.orderBy(jobs.owner).limit(1)
    if (!next?.owner) return found
    found.push(next.owner)
  }
}

/** Gives one job back that a pause holds. Returns whether it held it. */
export async function unholdOne(tx: Tx, by: string, id: string): Promise<boolean> {
  const change = { state: READY, owner: null, last_error: null, run_at: now() }
  const under = and(eq(jobs.id, id), IS_HELD, eq(jobs.owner, by))
  const rows = await tx.update(jobs).set(change).where(under).returning({ id: jobs.id })
  if (rows.length === 0) return false
  tx.afterCommit(ringJobs)
  return true
}

/** How many jobs a pause holds. */
export async function countHeld(db: Reader, by: string): Promise<number> {
  const rows = db.select({ n: count() }).from(jobs)
  const [row] = await rows.where(and(IS_HELD, eq(jobs.owner, by)))
  return Number(row?.n ?? 0)
}

/** The jobs among `ids` that a pause holds, each with the name of its pause. */
export async function heldAmong(db: Reader, ids: string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = db.select({ id: jobs.id, owner: jobs.owner }).from(jobs)
  const found = await rows.where(and(IS_HELD, isAmong(jobs.id, sql`${JSON.stringify(ids)}`)))
  return new Map(found.map(({ id, owner }) => [id, owner ?? ""]))
}

/** Gives back what a pause holds, some at a time. Returns how many jobs that were. */
export async function unhold(store: Store, by: string): Promise<number> {
  const under = and(IS_HELD, eq(jobs.owner, by))
  const some = await store.read.select({ id: jobs.id }).from(jobs).where(under).limit(AT_ONCE)
  if (some.length === 0) return 0
  const ids = some.map(({ id }) => id)
  await store.tx(async (tx) => {
    const change = { state: READY, owner: null, last_error: null }
    await tx
      .update(jobs)
      .set(change)
      .where(and(inArray(jobs.id, ids), under))
    tx.afterCommit(ringJobs)
  })
  return some.length
}
