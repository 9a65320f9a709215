import type { SQL } from "bun"
import { sleep } from "../core/time"
import { connect } from "./postgres-pool"

/** Any number, as long as every node uses the same, and no other lock does. */
const START_LOCK = 727_002
const LOOK_MS = 200

/**
 * Runs it in one process at a time, of all that share the Postgres database. The lock is one of a transaction
 * on a connection of its own. So it holds through a pooler, and ends with the process. Throws what Postgres
 * says, and what `act` throws.
 */
export async function startLock<Result>(url: string, act: () => Promise<Result>): Promise<Result> {
  const pool = connect(url, { max: 1, prepare: false })
  try {
    return await pool.begin(async (tx) => {
      await tx`SET LOCAL idle_in_transaction_session_timeout = 0`
      while (!(await isTaken(tx))) await sleep(LOOK_MS)
      return act()
    })
  } finally {
    await pool.close()
  }
}

/** Without waiting in the server, where a statement may have a time limit. */
async function isTaken(tx: SQL): Promise<boolean> {
  const [row] = await tx`SELECT pg_try_advisory_xact_lock(${START_LOCK}) AS taken`
  return row?.taken === true
}
