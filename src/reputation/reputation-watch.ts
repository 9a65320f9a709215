import { ne } from "drizzle-orm"
import { log } from "../core/log"
import { isoFrom, millis, millisFrom, sleep } from "../core/time"
import { accounts } from "../identity/tables"
import type { AnyWorkRows } from "../jobs/holds"
import { perStore } from "../store/cached"
import * as instance from "../store/instance-values"
import type { Store, Tx } from "../store/store"
import { holdComplained, releaseStranded } from "./complaint-holds"
import { evaluate } from "./evaluate"
import { hourOf, SENDERS_AT_ONCE, sendersIn } from "./hour-counts"

const LOOK_MILLISECONDS = 60_000

/** Bounces come in bursts: accounts are judged after them so often at most. */
const PAUSE_MILLISECONDS = 200

/** How much earlier than a minute a timer may fire. */
const SLACK_MILLISECONDS = 1000

/** When a node last judged all accounts, for the others. */
const LOOKED_AT = "reputation.looked_at"

const troubled = perStore(() => ({ accounts: new Set<string>(), listeners: new Set<() => void>() }))

/** Says, once the transaction is on disk, that accounts have a new bounce or complaint. */
export function noteTrouble(tx: Tx, account_ids: Iterable<string>) {
  const ids = [...account_ids]
  if (ids.length === 0) return
  tx.afterCommit(() => {
    const { accounts: waiting, listeners } = troubled(tx)
    for (const id of ids) waiting.add(id)
    for (const hear of listeners) hear()
  })
}

/** Judges the accounts that have waited since the last time. */
export async function judgeTroubled(store: Store): Promise<void> {
  const { accounts: waiting } = troubled(store.read)
  while (waiting.size > 0) {
    const ids = [...waiting]
    waiting.clear()
    for (const id of ids) await judgeOne(store, id)
  }
}

/** Accounts that sent lately, and those that are not active. Only one node does it in a minute. */
export async function judgeAll(store: Store): Promise<void> {
  if (!(await isOurs(store))) return
  const present = hourOf(millis())
  const seen = new Set<string>()
  const judgeNew = async (ids: string[]) => {
    for (const id of ids) {
      if (!seen.has(id)) await judgeOne(store, id)
      seen.add(id)
    }
  }
  const is_other = ne(accounts.sending_status, "active")
  const others = await store.read.select({ id: accounts.id }).from(accounts).where(is_other)
  await judgeNew(others.map(({ id }) => id))
  for (const hour of [present - 1, present]) {
    for (let after: string | undefined; ; ) {
      const ids = await sendersIn(store.read, hour, after)
      await judgeNew(ids)
      if (ids.length < SENDERS_AT_ONCE) break
      after = ids.at(-1)
    }
  }
}

/** Whether this node is the first to ask in this minute. A clock that was set back is no obstacle. */
function isOurs(store: Store): Promise<boolean> {
  if (store.isAlone) return Promise.resolve(true)
  return store.tx(async (tx) => {
    const at_ms = millis()
    const last = await instance.hold(tx, LOOKED_AT)
    const age = last === undefined ? Number.POSITIVE_INFINITY : at_ms - millisFrom(last)
    if (age >= 0 && age < LOOK_MILLISECONDS - SLACK_MILLISECONDS) return false
    await instance.set(tx, LOOKED_AT, isoFrom(at_ms))
    return true
  })
}

/**
 * Its tags and templates first: one of them may be the only trouble. An account that cannot be judged
 * keeps no other from it.
 */
async function judgeOne(store: Store, account_id: string) {
  try {
    await holdComplained(store, account_id)
    await evaluate(store, account_id)
  } catch (error) {
    log.warn("the reputation of an account could not be judged", { account_id, error })
  }
}

/**
 * Judges every minute and after each bounce or complaint, until the returned function is called. `rows`
 * are those that a held tag or template holds.
 */
export function watchReputation(store: Store, rows: AnyWorkRows): () => Promise<void> {
  const { listeners } = troubled(store.read)
  const stop = new AbortController()
  let running: Promise<void> | undefined
  const run = async () => {
    await sleep(PAUSE_MILLISECONDS, stop.signal)
    await judgeTroubled(store)
  }
  const hear = () => {
    running ??= run().finally(() => {
      running = undefined
      if (troubled(store.read).accounts.size > 0 && !stop.signal.aborted) hear()
    })
  }
  listeners.add(hear)
  const look = () =>
    void judgeAll(store)
      .then(() => releaseStranded(store, rows))
      .catch((error) => log.warn("reputations could not be judged", { error }))
  const timer = setInterval(look, LOOK_MILLISECONDS)
  return async () => {
    listeners.delete(hear)
    clearInterval(timer)
    stop.abort()
    await running
  }
}
