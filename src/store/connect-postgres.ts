import type { SQL } from "bun"
import { faultOf } from "../core/faults"
import { log } from "../core/log"
import { monotonic, sleep } from "../core/time"
import { connect } from "./postgres-pool"

const TRY_EVERY_MS = 500
const TELL_EVERY_MS = 5000
/** A pooler gives the same server to two connections at once, or two servers to one, within these. */
const LOOKS = 5

/** Postgres could not be reached for as long as it was waited for. */
export class DatabaseAway extends Error {
  override readonly name = "DatabaseAway"
}

export interface ConnectOptions {
  patience_ms?: number
  /** For tests: how often the wait is told. */
  tell_every_ms?: number
}

/**
 * A pool on a Postgres that answers. One that is away, or that just starts, is waited for, with a
 * line in the log now and then. Throws DatabaseAway after that, and at once what waiting does not mend.
 */
export async function connectPatiently(
  url: string,
  max: number,
  options: ConnectOptions,
): Promise<SQL> {
  const { patience_ms = 0, tell_every_ms = TELL_EVERY_MS } = options
  const begun = monotonic()
  let told = Number.NEGATIVE_INFINITY
  for (;;) {
    const pool = connect(url, { max })
    const error = await failureOf(pool)
    if (error === undefined) return pool
    await pool.close()
    if (faultOf(error) !== "away") throw error
    const waited = monotonic() - begun
    if (waited >= patience_ms) throw away(url, error, waited)
    if (monotonic() - told >= tell_every_ms) {
      told = monotonic()
      const seconds_left = Math.ceil((patience_ms - waited) / 1000)
      log.warn(`${nameOf(url)} does not answer; waiting`, { seconds_left, error })
    }
    await sleep(Math.min(TRY_EVERY_MS, patience_ms - waited))
  }
}

async function failureOf(pool: SQL): Promise<unknown> {
  try {
    await processOf(pool)
    return undefined
  } catch (error) {
    return error ?? new Error("it gave no reason")
  }
}

/** Asked in the simple protocol, which leaves no statement behind. */
async function processOf(connection: Pick<SQL, "unsafe">): Promise<number> {
  const [row] = await connection.unsafe("SELECT pg_backend_pid() AS pid").simple()
  return Number(row.pid)
}

function away(url: string, error: unknown, waited_ms: number): DatabaseAway {
  const reason = error instanceof Error ? error.message : String(error)
  const how_long = waited_ms < 1000 ? "" : ` for ${Math.round(waited_ms / 1000)} s`
  return new DatabaseAway(`${nameOf(url)} did not answer${how_long}: ${reason}.`, { cause: error })
}

/** Without user and password. */
export function nameOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `The Postgres database ${host}${pathname}`
}

/**
 * Whether a pooler lends its servers by the transaction. Then a session ends with each transaction:
 * one connection of ours meets several processes of Postgres, or two of ours meet the same.
 */
export async function sharesSessions(pool: SQL): Promise<boolean> {
  const connections = await Promise.all([pool.reserve(), pool.reserve()])
  const seen = connections.map(() => new Set<number>())
  try {
    for (let look = 0; look < LOOKS; look++) {
      for (const [at, connection] of connections.entries()) {
        seen[at]?.add(await processOf(connection))
      }
    }
  } finally {
    for (const connection of connections) connection.release()
  }
  const [one = new Set<number>(), other = new Set<number>()] = seen
  return one.size > 1 || other.size > 1 || !one.isDisjointFrom(other)
}
