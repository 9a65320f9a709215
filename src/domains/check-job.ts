import { enqueue, type JobKind, PRIORITIES } from "../jobs/queue"
import type { Tx } from "../store/store"
import type { DomainRow } from "./expected"

export interface DueCheck {
  domain_id: string
  project_id: string
  /** The `next_check_at` it was made for: when the domain has another one, it is not wanted. */
  due: string
}

/** A check that nobody asked for. What stands in its way here is tried again, never given up. */
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
