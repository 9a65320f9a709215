import type { JobKind, NewWork } from "../jobs/jobs"
import { PRIORITIES, type RetrySchedule } from "../jobs/work-item"

const DAY_SECONDS = 86_400
const MINUTE = 60

/** A fault of ours: soon at first, then every minute for a day. */
const schedule: RetrySchedule = (attempt, age_seconds) =>
  age_seconds > DAY_SECONDS ? undefined : Math.min(2 ** attempt, MINUTE)

interface Start {
  fan_out_id: string
}

/** Fixes the audience of a fan-out and shares it among the nodes. */
export const fanOutStart: JobKind<Start> = { name: "fan_out.start", schedule }

export interface PartOfWalk extends Start {
  part: number
}

export const fanOutPart: JobKind<PartOfWalk> = { name: "fan_out.part", schedule }

/** Ends messages of a fan-out that wait, once it is cancelled or expired. */
export const fanOutStopped: JobKind<Start & { below?: string }> = {
  name: "fan_out.stopped",
  schedule,
}

export const partWork = (
  payload: PartOfWalk,
  project_id: string,
  run_at?: string,
): NewWork<PartOfWalk> => ({
  payload,
  project_id,
  priority: PRIORITIES.bulk,
  ...(run_at !== undefined && { run_at }),
})
