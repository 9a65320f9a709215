import { and, inArray } from "drizzle-orm"
import { underHold } from "../jobs/holds"
import { jobRows } from "../jobs/jobs"
import { jobs } from "../jobs/tables"
import { RESTORE_HOLD } from "../jobs/work-item"
import type { Reader } from "../store/store"
import { fanOutPart, fanOutStart } from "./fan-out-jobs"
import type { FanOutRow } from "./tables"

const WALKING = [fanOutStart.name, fanOutPart.name]

/** Of these fan-outs, the ids of those that wait since a restore: the job that starts or walks them is held. */
export async function heldFanOuts(
  db: Reader,
  rows: Pick<FanOutRow, "id" | "project_id" | "completed_at">[],
): Promise<Set<string>> {
  const open = rows.filter(({ completed_at }) => completed_at === null)
  if (open.length === 0) return new Set()
  const projects = [...new Set(open.map(({ project_id }) => project_id))]
  const { payload, project_id, name } = jobs
  const ours = and(inArray(project_id, projects), inArray(name, WALKING))
  // A project has at most 1,000 open publishes, and each of them few jobs.
  const held = await db
    .select({ payload })
    .from(jobs)
    .where(and(underHold(jobRows, RESTORE_HOLD), ours))
  return new Set(held.map((job) => (job.payload as { fan_out_id: string }).fan_out_id))
}
