import { AsyncLocalStorage } from "node:async_hooks"
import { SQL } from "bun"
import { drizzle } from "drizzle-orm/bun-sql"
import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { sleep } from "../core/time"
import { migratePostgres } from "./migrate"
import type { Closure, Reader, Store, Tx } from "./store"
import { sqlState } from "./trouble"

const MAX_CONNECTIONS = 16
const CONNECT_SECONDS = 5
const MAX_ATTEMPTS = 8

/** serialization_failure and deadlock_detected: nobody's fault, and cured by another try. */
const CONFLICTS = ["40001", "40P01"]

/** The transaction whose closure is running here; `open` ends with it. */
const running = new AsyncLocalStorage<{ open: boolean }>()

export interface PostgresOptions {
  url: string
  /** Hears of every transaction that failed for good, but for those that we refused ourselves. */
  onTrouble?: (error: unknown) => void
}

/** A pool on one Postgres; N nodes may share it. Migrations run first, under an advisory lock. */
export async function openPostgres({ url, onTrouble }: PostgresOptions): Promise<Store> {
  const pool = new SQL(url, { max: MAX_CONNECTIONS, connectionTimeout: CONNECT_SECONDS })
  try {
    await migratePostgres(pool)
  } catch (error) {
    await pool.close()
    throw error
  }
  const database = drizzle(pool)
  const stats = { closures: 0, commits: 0 }

  async function tx<Result>(closure: Closure<Result>): Promise<Result> {
    if (running.getStore()?.open) throw new Error("A closure opened a transaction: pass `tx` down")
    const effects: (() => void)[] = []
    const result = await database.transaction((raw) => {
      const open = raw as unknown as Tx
      open.afterCommit = (effect) => void effects.push(effect)
      return alone(() => closure(open))
    })
    stats.closures += 1
    stats.commits += 1
    for (const effect of effects) perform(effect)
    return result
  }

  return {
    read: database as unknown as Reader,
    tx: (closure) => retryConflicts(() => tx(closure), onTrouble),
    notify: (topic, payload) => tell(pool, topic, payload),
    listen: (topic, hear) => hearFrom(pool, topic, hear),
    stats,
    close: () => pool.close({ timeout: 5 }),
  }
}

/** A closure that opened another transaction would hold one connection and wait for a second. */
async function alone<Result>(closure: () => Promise<Result>): Promise<Result> {
  const mark = { open: true }
  try {
    return await running.run(mark, async () => await closure())
  } finally {
    mark.open = false
  }
}

async function retryConflicts<Result>(
  attempt: () => Promise<Result>,
  onTrouble: (error: unknown) => void = () => {},
): Promise<Result> {
  for (let number = 1; ; number++) {
    try {
      return await attempt()
    } catch (error) {
      if (number === MAX_ATTEMPTS || !CONFLICTS.includes(sqlState(error) ?? "")) {
        if (!(error instanceof ApiError)) onTrouble(error) // a refusal of ours is no trouble
        throw error
      }
      await sleep(Math.random() * 10 * 2 ** number) // jitter, lest the same two meet again
    }
  }
}

/** Outside every transaction: NOTIFY takes a lock on the whole database until its commit. */
async function tell(pool: SQL, topic: string, payload: string) {
  try {
    await pool`SELECT pg_notify(${topic}, ${payload})`
  } catch (error) {
    log.debug("a notification was lost; the poll behind it will do", { topic, error })
  }
}

async function hearFrom(pool: SQL, topic: string, hear: (payload: string) => void) {
  try {
    await pool.listen(topic, hear)
  } catch (error) {
    log.warn("cannot listen on Postgres; polling instead", { topic, error })
  }
}

function perform(effect: () => void) {
  try {
    effect()
  } catch (error) {
    log.error("an effect after a commit failed", { error })
  }
}
