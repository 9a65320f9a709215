import { and, asc, inArray, lte, sql } from "drizzle-orm"
import { isPast, now } from "../core/time"
import { type NamedBy, removeByIds } from "../messages/message-retention"
import { inSteps } from "../store/in-steps"
import type { Store, Tx } from "../store/store"
import { hasExpired } from "./inbox"
import { InboxLedger } from "./ledger"
import { entriesForUpdate, InboxFacts } from "./marks"
import { inboxEntries } from "./tables"

const AT_ONCE = 100

/** Ends snoozes whose time has come, and removes what has expired, some in a transaction. */
export const wakeInboxes = (store: Store, named_by: NamedBy, signal?: AbortSignal) =>
  inSteps(() => wakeSome(store, named_by), signal)

async function wakeSome(store: Store, named_by: NamedBy): Promise<number> {
  const { id, project_id, wakes_at } = inboxEntries
  const due = and(lte(wakes_at, now()), sql`wakes_at IS NOT NULL`)
  const rows = store.read.select({ id, project_id }).from(inboxEntries).where(due)
  const some = await rows.orderBy(asc(wakes_at)).limit(AT_ONCE)
  for (const [project, ours] of Map.groupBy(some, (row) => row.project_id)) {
    const ids = ours.map((row) => row.id)
    await store.tx((tx) => wake(tx, project, ids, named_by))
  }
  return some.length
}

async function wake(tx: Tx, project_id: string, ids: string[], named_by: NamedBy): Promise<void> {
  const { id, subscriber_id } = inboxEntries
  const rows = tx.select({ subscriber_id }).from(inboxEntries).where(inArray(id, ids))
  const people = (await rows).map((row) => row.subscriber_id)
  const ledger = await InboxLedger.open(tx, project_id, people)
  const facts = new InboxFacts()
  const expired: string[] = []
  for (const entry of await entriesForUpdate(tx, ids)) {
    if (hasExpired(entry)) {
      expired.push(entry.id)
      facts.note({ entry, fact: "expired" })
    } else if (entry.snoozed_until !== null && isPast(entry.snoozed_until)) {
      ledger.change(entry, { snoozed_until: null })
    }
  }
  await ledger.close()
  await facts.tell(tx)
  if (expired.length > 0) await removeByIds(tx, expired, named_by)
}
