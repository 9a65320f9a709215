import { asc, gt } from "drizzle-orm"
import { untilDone } from "../store/in-steps"
import { remover } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { COMPLETE, notePosted, postedUpTo, writeChanges } from "./postings"
import { subscriberPostings, subscribers } from "./tables"

/** Subscribers of one transaction, and rows that one removes. */
const AT_ONCE = 100

/**
 * Writes the posting lists of a database that has none: an older version wrote it, or it comes from a Postgres. It goes
 * on where the last process stopped, and after an error `again_ms` later. On Postgres it removes the lists that came from
 * an SQLite. Searches take another way meanwhile. The returned function ends it after the transaction that runs.
 */
export const keepPosted = (store: Store, again_ms?: number): (() => Promise<void>) =>
  untilDone(() => fillSome(store), {
    failed: "the posting lists of subscribers could not be filled",
    again_ms,
  })

/** One step. Returns whether more is left. */
export const fillSome = async (store: Store): Promise<boolean> => {
  const posted = await postedUpTo(store.read)
  if (store.isAlone && posted === COMPLETE) return false
  return store.tx((tx) => (tx.isAlone ? fill(tx) : clear(tx)))
}

async function fill(tx: Tx): Promise<boolean> {
  const posted = await postedUpTo(tx)
  if (posted === COMPLETE) return false
  if (posted === undefined) {
    if (!(await removeSome(tx))) await notePosted(tx, "")
    return true
  }
  const { id, project_id, search_key, tags } = subscribers
  const rows = await tx
    .select({ id, project_id, search_key, tags })
    .from(subscribers)
    .where(gt(id, posted))
    .orderBy(asc(id))
    .limit(AT_ONCE)
  await writeChanges(
    tx,
    rows.map((after) => ({ after })),
  )
  await notePosted(tx, rows.at(-1)?.id ?? null)
  return rows.length > 0
}

async function clear(tx: Tx): Promise<boolean> {
  if ((await postedUpTo(tx)) !== undefined) await notePosted(tx, undefined)
  return removeSome(tx)
}

async function removeSome(tx: Tx): Promise<boolean> {
  const { project_id, term, first } = subscriberPostings
  const some = await tx.select({ project_id, term, first }).from(subscriberPostings).limit(AT_ONCE)
  await removeParts(tx, some)
  return some.length > 0
}

const removeParts = remover(subscriberPostings, ["first", "project_id", "term"], { quiet: true })
