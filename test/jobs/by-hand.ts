import { now, secondsFromNow } from "../../src/core/time"
import { claimsOf } from "../../src/jobs/claims"
import { type JobRow, jobRows, jobTable } from "../../src/jobs/jobs"
import { DEAD, OVER, PRIORITIES, READY, type WorkColumns } from "../../src/jobs/work-item"
import type { Lease } from "../../src/jobs/work-rows"
import type { Reader, Store, Tx } from "../../src/store/store"

export {
  enqueue,
  enqueueAll,
  type JobKind,
  type JobRow,
  type NewWork,
  purgeDead,
} from "../../src/jobs/jobs"
export { DEAD, HELD, LEASED, PRIORITIES, READY } from "../../src/jobs/work-item"

/** What a loop does with leases, step by step: those of any owner, on both engines. */
export const leasesOf = (store: Store, lease: Lease) =>
  claimsOf<JobRow>(store, { rows: jobRows }, { ...lease, alone: false })

/** Leases up to `limit` due jobs, highest priority first. */
export async function claim(store: Store, limit: number, lease: Lease): Promise<JobRow[]> {
  const claimed: JobRow[] = []
  for (const partition of Object.values(PRIORITIES)) {
    const share = { partition, limit: limit - claimed.length }
    if (share.limit > 0) claimed.push(...(await leasesOf(store, lease).claim(share)))
  }
  return claimed
}

/** Writes what becomes of leased jobs. Returns those whose leases held. */
async function settle(tx: Tx, list: JobRow[], change: Partial<WorkColumns>, reason: string | null) {
  const ours = new Set<JobRow>()
  for (const [owner, some] of Map.groupBy(list, (job) => job.owner ?? "")) {
    for (const job of await jobRows.held(tx, some, owner)) ours.add(job)
  }
  const settled = [...ours].map((row) => {
    const { run_at, attempt } = row
    const after = { state: READY, run_at, attempt, owner: null, lease_until: null, ...change }
    return { row, end: undefined, after, reason }
  })
  if (settled.length > 0) await jobTable({}).settle(tx, settled)
  return ours
}

export const completeAll = (tx: Tx, list: JobRow[]) => settle(tx, list, { state: OVER }, null)

export const complete = async (tx: Tx, job: JobRow) => (await completeAll(tx, [job])).size > 0

export const release = async (tx: Tx, job: JobRow, run_at: string, reason: string | null) =>
  (await settle(tx, [job], { run_at }, reason)).size > 0

export const bury = async (tx: Tx, job: JobRow, reason: string) =>
  (await settle(tx, [job], { state: DEAD, run_at: now() }, reason)).size > 0

/** Releases the job as if it had not been claimed. */
export async function giveBack(tx: Tx, job: JobRow): Promise<boolean> {
  const is_held = (await jobRows.held(tx, [job], job.owner ?? "")).size > 0
  await jobRows.release(tx, [job], job.owner ?? "")
  return is_held
}

export const heartbeat = (store: Store, lease: Lease, ids: string[]) =>
  jobRows.keep(store, ids, lease)

export const sweep = (store: Store, working: string[]) => jobRows.sweep(store, working)

export const sweepAll = (store: Store, owner: string) => jobRows.freeAll(store, owner)

export const nextDue = (db: Reader) =>
  jobRows.next(db, Object.values(PRIORITIES), secondsFromNow(-1))
