import { isoFrom, millisFrom } from "../core/time"
import type { JobKind } from "../jobs/jobs"
import { enqueue } from "../jobs/jobs"
import { PRIORITIES } from "../jobs/work-item"
import type { Tx } from "../store/store"
import type { DomainRow, KeyRow } from "./expected-records"

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long records may take to appear. */
export const WINDOW_SECONDS = 72 * HOUR

/** How long a verified domain may lack a record. */
export const GRACE_SECONDS = 48 * HOUR

/** How long the record of a retired key has to stay: mail on its way is still verified with it. */
export const RETIRED_SECONDS = 7 * DAY

/** Every minute ×5, 5 minutes ×12, 30 minutes ×20, then 3 hours; in seconds from the beginning. */
export const OFFSETS: readonly number[] = offsets()

function offsets(): number[] {
  const steps = [
    { seconds: MINUTE, times: 5 },
    { seconds: 5 * MINUTE, times: 12 },
    { seconds: 30 * MINUTE, times: 20 },
    { seconds: 3 * HOUR, times: 72 },
  ]
  let at = 0
  const all = steps.flatMap(({ seconds, times }) => Array.from({ length: times }, () => seconds))
  const moments = all.map((seconds) => {
    at += seconds
    return at
  })
  return [...moments.filter((moment) => moment < WINDOW_SECONDS), WINDOW_SECONDS]
}

/** When the domain is to be checked next, seen from `from` (ms); null for one that failed. */
export function nextCheck(row: DomainFields, keys: KeyRow[], from: number): string | null {
  if (row.status === "failed") return null
  if (row.status === "pending") return isoFrom(nextOf(millisFrom(row.window_began_at), from))
  const moments = [from + DAY * 1000]
  if (row.missing_since) moments.push(millisFrom(row.missing_since) + GRACE_SECONDS * 1000)
  const waiting = keys.filter(({ state, algorithm }) => state === "pending" && algorithm === "rsa")
  for (const { created_at } of waiting) moments.push(nextOf(millisFrom(created_at), from))
  if (isChanged(row)) moments.push(nextOf(millisFrom(row.window_began_at), from))
  const ahead = moments.filter((moment) => moment > from)
  return isoFrom(Math.min(...ahead))
}

/** All but whose it is, and since when. */
type DomainFields = Omit<DomainRow, "account_id" | "project_id" | "created_at" | "updated_at">

/** Records were renamed or added after it was verified, and are not all seen yet. */
function isChanged(row: DomainFields): boolean {
  const { verified_at, window_began_at, records } = row
  if (verified_at === null || window_began_at <= verified_at) return false
  const wanted = [
    "spf" as const,
    "return_path" as const,
    ...(row.tracking_subdomain === null ? [] : ["tracking" as const]),
    ...(row.receiving ? ["receiving" as const] : []),
  ]
  return wanted.some((name) => records[name]?.status !== "verified")
}

/** The next moment of the grid that began then; daily once it is over. */
function nextOf(began: number, from: number): number {
  const age = (from - began) / 1000
  // What is about to come counts as come, but the end of the window: there a domain fails.
  const next = OFFSETS.find((offset) => offset > (offset === WINDOW_SECONDS ? age : age + 1))
  return next === undefined ? from + DAY * 1000 : began + next * 1000
}

export interface DueCheck {
  domain_id: string
  project_id: string
  /** The `next_check_at` it was made for: when the domain has another one, it is not wanted. */
  due: string
}

/** A check by the schedule. A failure of our own is retried without end. */
export const domainCheck: JobKind<DueCheck> = {
  name: "domain.check",
  schedule: (attempt) => Math.min(60 * attempt, 3600),
}

/** The check that the row asks for, if it does. An earlier one of it does nothing any more. */
export async function enqueueCheck(tx: Tx, row: DomainRow): Promise<void> {
  const { id: domain_id, project_id, next_check_at: due } = row
  if (due === null) return
  const payload = { domain_id, project_id, due }
  await enqueue(tx, domainCheck, { payload, project_id, run_at: due, priority: PRIORITIES.bulk })
}
