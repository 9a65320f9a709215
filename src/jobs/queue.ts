import { and, eq, inArray, lt, lte, ne, notInArray, type SQL, sql } from "drizzle-orm"
import { newId } from "../core/ids"
import { millis, now, secondsFromNow } from "../core/time"
import { short } from "../lib/text"
import { engine } from "../store/columns"
import { held, skipLocked } from "../store/locks"
import { inserter, prepared, remover } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { jobs } from "./tables"
import { ringJobs } from "./wake-ups"
import type { RetrySchedule } from "./work"

/** Lower is sooner. A level waits for no other level's future work: one seek each. */
export const PRIORITIES = { urgent: 0, normal: 1, bulk: 2 } as const

export const READY = 0
export const LEASED = 1
export const DEAD = 2

/** As literals: a bound value would keep the database from using the partial indexes. */
const isReady = sql`state = 0`
const isLeased = sql`state = 1`

const SWEEP_LIMIT = 500

/** A kind of work. Delivery is at least once: its handler must tolerate a second run. */
export interface JobKind<Payload> {
  name: string
  schedule: RetrySchedule
  payload?: Payload // carries the type only; never set
}

export interface Enqueued<Payload> {
  payload: Payload
  project_id: string | null
  id?: string
  priority?: number
  run_at?: string
}

export type ClaimedJob = typeof jobs.$inferSelect

/** Part of the caller's transaction: if that rolls back, there is no job either. */
export async function enqueueAll<Payload>(
  tx: Tx,
  job: JobKind<Payload>,
  list: Enqueued<Payload>[],
) {
  const created_at = now()
  const fresh = { state: READY, attempt: 0, owner: null, lease_until: null }
  const rows = list.map(({ id, payload, project_id, priority, run_at }) => ({
    id: id ?? newId(),
    name: job.name,
    project_id,
    payload,
    priority: priority ?? PRIORITIES.normal,
    run_at: run_at ?? created_at,
    created_at,
    ...fresh,
  }))
  await insertJobs(tx, rows)
  tx.afterCommit(ringJobs)
}

export const enqueue = <Payload>(tx: Tx, job: JobKind<Payload>, work: Enqueued<Payload>) =>
  enqueueAll(tx, job, [work])

export interface Lease {
  owner: string
  lease_ms: number
}

/** What else the claim of these jobs means, in the transaction that claims them. It may run twice. */
export type OnClaim = (tx: Tx, claimed: ClaimedJob[]) => Promise<void>

/**
 * Takes up to `limit` due jobs, highest priority first, and leases them to the owner. Rejects where
 * none was taken: what one level gave is not lost because the next one failed.
 */
export async function claim(
  store: Store,
  limit: number,
  lease: Lease,
  onClaim?: OnClaim,
): Promise<ClaimedJob[]> {
  const claimed: ClaimedJob[] = []
  for (const priority of Object.values(PRIORITIES)) {
    const room = limit - claimed.length
    if (room === 0) break
    const due = { priority, now: now(), limit: room }
    if ((await findDue(store.read, due)).length === 0) continue // an idle box writes nothing
    const taken = { ...due, owner: lease.owner, lease_until: secondsFromNow(lease.lease_ms / 1000) }
    const taking = store.tx(async (tx) => {
      const rows = await claimDue(tx, taken)
      await onClaim?.(tx, rows)
      return rows
    })
    const rows = await taking.catch((error) =>
      claimed.length === 0 ? Promise.reject(error) : null,
    )
    if (!rows) break // the next claim meets the same fault, or none
    claimed.push(...rows.sort((a, b) => (a.id < b.id ? -1 : 1))) // RETURNING promises no order
  }
  return claimed
}

/** The attempt is the fence: who lost the lease meanwhile changes nothing. Returns who held it. */
export async function completeAll(tx: Tx, list: ClaimedJob[]): Promise<Set<ClaimedJob>> {
  const latest = new Map<string, ClaimedJob>()
  for (const job of list) {
    // Who lost a lease and claimed the job again holds it by the later claim alone.
    if (job.attempt >= (latest.get(job.id)?.attempt ?? 0)) latest.set(job.id, job)
  }
  const done = await deleteHeld(tx, [...latest.values()])
  return new Set([...latest.values()].filter((job) => done.has(job.id)))
}

/** As `completeAll` for one: whether it was held. */
export const complete = async (tx: Tx, job: ClaimedJob) => (await completeAll(tx, [job])).size > 0

/** Gives the job back for a later attempt. Fenced as `complete` is. */
export async function release(tx: Tx, job: ClaimedJob, run_at: string, reason: string | null) {
  const change = { state: READY, owner: null, lease_until: null, run_at, last_error: short(reason) }
  return fenced(tx, job, change)
}

/** Buries the job with its reason, where it stays visible. Fenced as `complete` is. */
export async function bury(tx: Tx, job: ClaimedJob, reason: string) {
  const change = { state: DEAD, owner: null, lease_until: null, dead_at: now() }
  return fenced(tx, job, { ...change, last_error: short(reason) })
}

/** Changes a claimed job, if it is still whose it was. Returns whether it was. */
export async function fenced(tx: Tx, job: ClaimedJob, change: Partial<ClaimedJob>) {
  const ours = and(
    eq(jobs.id, job.id),
    eq(jobs.owner, job.owner ?? ""),
    eq(jobs.attempt, job.attempt),
  )
  const rows = await tx.update(jobs).set(change).where(ours).returning({ id: jobs.id })
  return rows.length > 0
}

/** Whether the lease is still ours; the row stays ours until the transaction ends. */
export async function isHeld(tx: Tx, { id, owner, attempt }: ClaimedJob): Promise<boolean> {
  return (await findHeld(tx, { id, owner, attempt })).length > 0
}

/** Gives a job back that was never begun: the claim does not count as an attempt. Fenced too. */
export async function giveBack(tx: Tx, job: ClaimedJob) {
  const change = { state: READY, owner: null, lease_until: null, attempt: job.attempt - 1 }
  return fenced(tx, job, change)
}

/**
 * Keeps the leases of these jobs, and of no other: one whose claim was committed but never reached
 * its owner has to run out, or it would wait for ever.
 */
export async function heartbeat(store: Store, { owner, lease_ms }: Lease, ids: string[]) {
  const lease_until = secondsFromNow(lease_ms / 1000)
  const ours = and(inArray(jobs.id, ids), isLeased, eq(jobs.owner, owner))
  await store.tx((tx) => tx.update(jobs).set({ lease_until }).where(jobsInOrder(tx, ours)))
}

/**
 * Frees everything that is leased, where nobody else can live: its owners are dead. What they had
 * begun counts as no attempt: a restart must not use up the few tries of a message.
 */
export const sweepAll = (store: Store, owner: string) =>
  free(store, ne(jobs.owner, owner), { attempt: sql`${jobs.attempt} - 1` })

/** Frees what was left behind: leases that ran out, but for the jobs that the caller works on. */
export const sweep = (store: Store, working: string[]) =>
  free(store, and(lt(jobs.lease_until, now()), notInArray(jobs.id, working)), {})

async function free(store: Store, left: SQL | undefined, change: { attempt?: SQL }) {
  const abandoned = and(isLeased, left)
  const leased = store.read.select({ id: jobs.id }).from(jobs).where(abandoned)
  const some = await leased.limit(SWEEP_LIMIT)
  if (some.length === 0) return 0

  const ids = some.map(({ id }) => id)
  const freed = await store.tx((tx) =>
    tx
      .update(jobs)
      .set({ state: READY, owner: null, lease_until: null, ...change })
      .where(jobsInOrder(tx, and(inArray(jobs.id, ids), abandoned)))
      .returning({ id: jobs.id }),
  )
  return freed.length
}

/** The moment of the next due job, in milliseconds; `undefined` when there is none. */
export async function nextDue(db: Reader): Promise<number | undefined> {
  const times: number[] = []
  for (const priority of Object.values(PRIORITIES)) {
    const [job] = await findFirst(db, { priority })
    if (job) times.push(Date.parse(job.run_at))
  }
  return times.length === 0 ? undefined : Math.min(...times)
}

/** For how many seconds the job has been wanted. */
export const ageSeconds = ({ created_at }: ClaimedJob) => (millis() - Date.parse(created_at)) / 1000

const insertJobs = inserter(jobs)

const { id, owner, attempt, priority, run_at, lease_until } = jobs
const due = { priority, now: run_at, limit: attempt }

const findDue = prepared(due, (db: Reader, slot) =>
  db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(isReady, eq(priority, slot.priority), lte(run_at, slot.now)))
    .limit(1),
)

const findFirst = prepared({ priority }, (db: Reader, slot) =>
  db
    .select({ run_at: jobs.run_at })
    .from(jobs)
    .where(and(isReady, eq(priority, slot.priority)))
    .orderBy(run_at)
    .limit(1),
)

const claimDue = prepared({ ...due, owner, lease_until }, (tx: Tx, slot) => {
  const isDue = and(isReady, eq(priority, slot.priority), lte(run_at, slot.now))
  const ids = tx.select({ id: jobs.id }).from(jobs).where(isDue)
  const first = ids.orderBy(run_at, jobs.id).limit(slot.limit as unknown as number)
  return tx
    .update(jobs)
    .set({
      state: LEASED,
      attempt: sql`${attempt} + 1`,
      owner: slot.owner,
      lease_until: slot.lease_until,
    })
    .where(inArray(jobs.id, skipLocked(first)))
    .returning()
})

const findHeld = prepared({ id, owner, attempt }, (tx: Tx, slot) =>
  held(
    tx
      .select({ id })
      .from(jobs)
      .where(and(eq(id, slot.id), eq(owner, slot.owner), eq(attempt, slot.attempt), isLeased)),
  ),
)

const deleteHeld = remover(jobs, ["id", "owner", "attempt"])

/** The same jobs, locked by their ids: whoever locks many in another order would deadlock with it. */
export function jobsInOrder(tx: Tx, which: SQL | undefined): SQL | undefined {
  if (engine === "sqlite") return which
  const found = tx.select({ id: jobs.id }).from(jobs).where(which).orderBy(jobs.id)
  return inArray(jobs.id, held(found))
}
