import { notInArray } from "drizzle-orm"
import type { Settings } from "../core/config"
import { log } from "../core/log"
import { noteLostEvents } from "../events/lost-events"
import { type HeldTable, holdOpenWork } from "../jobs/holds"
import { jobRows } from "../jobs/jobs"
import { jobs } from "../jobs/tables"
import { RESTORE_HOLD } from "../jobs/work-item"
import { requireNoOtherNode, showStart } from "../jobs/work-nodes"
import { messageRows } from "../messages/pipeline"
import { startLock } from "../store/start-lock"
import type { Store } from "../store/store"
import { deliveryRows } from "../webhooks/delivery-rows"
import { noneHeld } from "../webhooks/totals"
import { raiseMarkAboveAll, tryRaiseMark, whyPutBack } from "./database-mark"

interface StartHeldOptions {
  data_dir: string
  /** `serve --hold`. */
  is_asked: boolean
  /** The kinds of jobs that go on in any case. */
  runs_on: readonly string[]
}

/**
 * `startHeld`, then the mark and the sign of life of this start. On Postgres one node does this after the
 * other: of two that start at once, none may work while the other one still holds what is open. Returns how to
 * end the sign of life once the node works.
 */
export function startInTurn(
  store: Store,
  settings: Pick<Settings, "data_dir" | "database_url" | "database_direct_url">,
  options: Pick<StartHeldOptions, "is_asked" | "runs_on">,
): Promise<() => Promise<void>> {
  const { data_dir, database_url, database_direct_url } = settings
  const start = async () => {
    await startHeld(store, { ...options, data_dir })
    await tryRaiseMark(store, data_dir)
    return showStart(store)
  }
  const url = database_direct_url ?? database_url
  return url === null ? start() : startLock(url, start)
}

/** Everything that may send something, or cause it. */
export const heldTables = (runs_on: readonly string[]): HeldTable[] => [
  { rows: messageRows },
  { rows: deliveryRows },
  { rows: jobRows, which: notInArray(jobs.name, [...runs_on]) },
]

/**
 * Before anything runs: holds what is open where the start was asked to, and where the database was put
 * back by hand. Other nodes that start later do not hold again. Throws OtherNodeRuns where another node
 * works on the database.
 */
export async function startHeld(store: Store, options: StartHeldOptions): Promise<void> {
  const { data_dir, is_asked, runs_on } = options
  const reason = is_asked ? "The start was asked to hold it." : await whyPutBack(store, data_dir)
  if (reason === undefined) return
  await requireNoOtherNode(store)
  await store.tx(noteLostEvents)
  const told = (held: number) => log.info("open work is being held", { held })
  const held = await holdOpenWork(store, heldTables(runs_on), told)
  await store.tx(noneHeld)
  await raiseMarkAboveAll(store, data_dir)
  if (held === 0) return log.info("there is no open work to hold", { reason })
  log.warn("the server starts held: what was open in the database waits for its operator", {
    reason,
    held,
    next: `belfry queue resume ${RESTORE_HOLD} --data-dir ${data_dir}`,
  })
}
