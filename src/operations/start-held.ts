import { not, notInArray } from "drizzle-orm"
import type { Settings } from "../core/config"
import { log } from "../core/log"
import { sleep } from "../core/time"
import { noteLostEvents } from "../events/lost-events"
import { type HeldTable, holdOpenWork } from "../jobs/holds"
import { jobRows } from "../jobs/jobs"
import { jobs } from "../jobs/tables"
import { RESTORE_HOLD } from "../jobs/work-item"
import { requireNoOtherNode, showStart } from "../jobs/work-nodes"
import { messageRows } from "../messages/pipeline"
import { onConnection } from "../store/postgres-pool"
import type { Store } from "../store/store"
import { deliveryRows } from "../webhooks/delivery-rows"
import { noneHeld } from "../webhooks/endpoint-counts"
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

/** Everything that may send something, or cause it. A message that left already may expire. */
export const heldTables = (runs_on: readonly string[]): HeldTable[] => [
  { rows: messageRows, which: not(messageRows.idle) },
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

/** Any number, as long as every node uses the same, and no other lock does. */
const START_LOCK = 727_002
const LOOK_MS = 200

/**
 * Runs it in one process at a time, of all that share the Postgres database. The lock is one of a transaction
 * on a connection of its own. So it holds through a pooler, and ends with the process. Throws what Postgres
 * says, and what `act` throws.
 */
export const startLock = <Result>(url: string, act: () => Promise<Result>): Promise<Result> =>
  onConnection(url, (pool) =>
    pool.begin(async (tx) => {
      await tx`SET LOCAL idle_in_transaction_session_timeout = 0`
      // Without waiting in the server, where a statement may have a time limit.
      const lock = () => tx`SELECT pg_try_advisory_xact_lock(${START_LOCK}) AS is_taken`
      while (!(await lock())[0]?.is_taken) await sleep(LOOK_MS)
      return act()
    }),
  )
