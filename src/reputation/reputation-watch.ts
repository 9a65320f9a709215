import { ne } from "drizzle-orm"
import { log } from "../core/log"
import { millis, sleep } from "../core/time"
import { accounts } from "../identity/tables"
import { perStore } from "../store/cached"
import type { Store, Tx } from "../store/store"
import { evaluate } from "./evaluate"
import { holdComplained } from "./gate"
import { hourOf, SENDERS_AT_ONCE, sendersIn } from "./hour-counts"

/** Bounces come in bursts: accounts are assessed after them so often at most. */
const PAUSE_MILLISECONDS = 200

const troubled = perStore(() => ({ accounts: new Set<string>(), listeners: new Set<() => void>() }))

/** Says, once the transaction is on disk, that accounts have a new bounce or complaint. */
export function noteTrouble(tx: Tx, account_ids: Iterable<string>) {
  tx.afterCommit(() => {
    const { accounts: waiting, listeners } = troubled(tx)
    for (const id of account_ids) waiting.add(id)
    for (const hear of listeners) hear()
  })
}

/** Assesses the accounts that have waited since the last time. */
export async function assessTroubled(store: Store): Promise<void> {
  const { accounts: waiting } = troubled(store.read)
  while (waiting.size > 0) {
    const ids = [...waiting]
    waiting.clear()
    for (const id of ids) await assessOne(store, id)
  }
}

/** Assesses the accounts that sent lately, and those that are not active. */
export async function assessAll(store: Store): Promise<void> {
  const present = hourOf(millis())
  const seen = new Set<string>()
  const assessNew = async (ids: string[]) => {
    for (const id of ids) {
      if (!seen.has(id)) await assessOne(store, id)
      seen.add(id)
    }
  }
  const is_other = ne(accounts.sending_status, "active")
  const others = await store.read.select({ id: accounts.id }).from(accounts).where(is_other)
  await assessNew(others.map(({ id }) => id))
  for (const hour of [present - 1, present]) {
    for (let after: string | undefined; ; ) {
      const ids = await sendersIn(store.read, hour, after)
      await assessNew(ids)
      if (ids.length < SENDERS_AT_ONCE) break
      after = ids.at(-1)
    }
  }
}

/**
 * Its tags and templates first: one of them may be the only trouble. An account that cannot be assessed
 * keeps no other from it.
 */
async function assessOne(store: Store, account_id: string) {
  try {
    await holdComplained(store, account_id)
    await evaluate(store, account_id)
  } catch (error) {
    log.warn("the reputation of an account could not be assessed", { account_id, error })
  }
}

/** Assesses after each bounce or complaint, until the returned function is called. */
export function assessAfterTrouble(store: Store): () => Promise<void> {
  const { listeners } = troubled(store.read)
  const stop = new AbortController()
  let running: Promise<void> | undefined
  const run = async () => {
    await sleep(PAUSE_MILLISECONDS, stop.signal)
    await assessTroubled(store)
  }
  const hear = () => {
    running ??= run().finally(() => {
      running = undefined
      if (troubled(store.read).accounts.size > 0 && !stop.signal.aborted) hear()
    })
  }
  listeners.add(hear)
  return async () => {
    listeners.delete(hear)
    stop.abort()
    await running
  }
}
