import type { JobKind } from "../jobs/queue"
import type { RetrySchedule } from "../jobs/work"

/** How long what was deleted can be taken back. */
export const KEPT_SECONDS = 7 * 86_400

const TRIES = 100
const HOUR = 3600

/** Whatever stands in the way may be mended: several days of tries. */
const hourly: RetrySchedule = (attempt) => (attempt < TRIES ? HOUR : undefined)

/** Removes what a deletion left, once its days are over; does nothing for what was restored. */
export const purgeProject: JobKind<{ id: string }> = { name: "project.purge", schedule: hourly }
export const purgeAccount: JobKind<{ id: string }> = { name: "account.purge", schedule: hourly }
