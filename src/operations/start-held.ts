import { notInArray } from "drizzle-orm"
import { log } from "../core/log"
import { noteLostEvents } from "../events/lost-events"
import { jobRows } from "../jobs/jobs"
import { type HeldTable, holdOpenWork } from "../jobs/restore-hold"
import { jobs } from "../jobs/tables"
import { RESTORE_HOLD } from "../jobs/work-item"
import { demandNoOtherNode } from "../jobs/work-nodes"
import { messageRows } from "../messages/pipeline"
import type { Store } from "../store/store"
import { deliveryRows } from "../webhooks/delivery-rows"
import { whyPutBack } from "./database-mark"

interface StartHeldOptions {
  data_dir: string
  /** `serve --hold`. */
  is_asked: boolean
  /** The kinds of jobs that go on in any case. */
  runs_on: readonly string[]
}

/** Everything that may send something, or cause it. */
export const heldTables = (runs_on: readonly string[]): HeldTable[] => [
  { rows: messageRows },
  { rows: deliveryRows },
  { rows: jobRows, which: notInArray(jobs.name, [...runs_on]) },
]

/**
 * Before anything runs: holds what is open where the start was asked to, and where the database was put
 * back by hand. Throws OtherNodeRuns where another node works on the database.
 */
export async function startHeld(store: Store, options: StartHeldOptions): Promise<void> {
  const { data_dir, is_asked, runs_on } = options
  const reason = is_asked ? "The start was asked to hold it." : await whyPutBack(store, data_dir)
  if (reason === undefined) return
  await demandNoOtherNode(store)
  await store.tx(noteLostEvents)
  const told = (held: number) => log.info("open work is being held", { held })
  const held = await holdOpenWork(store, heldTables(runs_on), told)
  if (held === 0) return log.info("there is no open work to hold", { reason })
  log.warn("the server starts held: what was open in the database waits for its operator", {
    reason,
    held,
    next: `belfry queue resume ${RESTORE_HOLD}`,
  })
}
