import { eq } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { currentPeriod } from "../core/time"
import { projects } from "../identity/tables"
import { enqueue } from "../jobs/jobs"
import { MB, STORED_TOLD, storedTotal } from "../plans/stored-bytes"
import { forUpdate } from "../store/columns"
import { bump } from "../store/counters"
import type { Reader, Tx } from "../store/store"
import { usageAlert } from "./quotas"

/** What one project may store; null is unlimited, and then nothing is asked. */
export interface StoredShare {
  account_id: string
  project_id: string
  plan: string
  limit_mb: number | null
}

/** Shares in percent that the owners are told of. */
const SHARES = [100, 80]

/**
 * Whether so many bytes more, each wish as a whole and in order, fit into the share. Answers with a refusal
 * (403 `plan_limit_exceeded`) for each wish that does not, and null for the others. Tells the owners
 * in the same transaction when a share is passed. What writes the rows counts the bytes.
 */
export async function admitBytes(tx: Tx, share: StoredShare, wishes: number[]) {
  if (share.limit_mb === null) return wishes.map(() => null)
  const limit = share.limit_mb * MB
  const { used, told } = await storedTotal(tx, share.project_id)
  let after = used
  const refusals = wishes.map((bytes) => {
    if (after + bytes > limit) return storedFull(share, used)
    after += bytes
    return null
  })
  const is_full = refusals.some((refusal) => refusal !== null)
  await notifyOfShare(tx, share, { told, used: is_full ? limit : after })
  return refusals
}

/** The refusal of anything more; undefined while there is room. Reads only. */
export async function fullRefusal(db: Reader, share: StoredShare): Promise<ApiError | undefined> {
  if (share.limit_mb === null) return undefined
  const { used } = await storedTotal(db, share.project_id)
  return used < share.limit_mb * MB ? undefined : storedFull(share, used)
}

function storedFull({ plan, limit_mb }: StoredShare, bytes: number): ApiError {
  const used = Math.ceil(bytes / MB)
  const message = `The plan ${plan} allows a project to store ${limit_mb} MB, and ${used} are in use. Delete mail, shorten the setting retention, or use a larger plan.`
  const details = { resource: "stored_mb", used, limit: limit_mb, plan }
  return new ApiError("plan_limit_exceeded", message, details)
}

/** The highest share that the owners hear of, in percent, of so many bytes; 0 below all of them. */
export function passedShare({ limit_mb }: Pick<StoredShare, "limit_mb">, used: number): number {
  if (limit_mb === null || limit_mb === 0) return 0 // where none is allowed, none is news
  return SHARES.find((percent) => used * 100 >= limit_mb * MB * percent) ?? 0
}

/** Enqueues one mail to the owners for each share that is passed. `used` is in bytes. */
export async function notifyOfShare(
  tx: Tx,
  { account_id, project_id, limit_mb }: StoredShare,
  { told, used }: { told: number; used: number },
): Promise<void> {
  const passed = passedShare({ limit_mb }, used)
  if (limit_mb === null || passed <= told) return
  // One at a time, also on several nodes: the row of the project is the lock.
  await forUpdate(tx.select({ id: projects.id }).from(projects).where(eq(projects.id, project_id)))
  const { told: now_told } = await storedTotal(tx, project_id)
  if (passed <= now_told) return
  await bump(tx, project_id, STORED_TOLD, passed - now_told)
  const payload = {
    ...{ account_id, project_id, metric: "stored_mb" as const, period: currentPeriod() },
    ...{ share: passed, used: Math.ceil(used / MB), limit: limit_mb },
  }
  await enqueue(tx, usageAlert, { payload, project_id: null })
}

/** Forgets what the owners were told where the project stores less again, so that they hear of the next time. */
export async function forgetToldShare(
  tx: Tx,
  { project_id, limit_mb }: Pick<StoredShare, "project_id" | "limit_mb">,
): Promise<void> {
  const { used, told } = await storedTotal(tx, project_id)
  const still = passedShare({ limit_mb }, used)
  if (still < told) await bump(tx, project_id, STORED_TOLD, still - told)
}
