import { and, asc, eq, type SQL } from "drizzle-orm"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { type NamedBy, removeByIds } from "../messages/message-retention"
import { forUpdate } from "../store/columns"
import { inSteps } from "../store/in-steps"
import { rowById } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { mergedIds } from "../subscribers/merged-subscribers"
import { subscribers } from "../subscribers/tables"
import { removeSomeChanges } from "./inbox-retention"
import { ARCHIVED, IN_SIGHT, ofInbox, SNOOZED } from "./ledger"
import { inboxCategories, inboxChanges, inboxEntries, inboxes } from "./tables"

/** Messages of one transaction. */
const AT_ONCE = 50

interface RemovedInbox {
  project_id: string
  /** Of the subscriber. */
  id: string
}

/** The inbox of a subscriber that was deleted, which may have very many messages. */
export const inboxRemoved: JobKind<RemovedInbox> = {
  name: "inbox.removed",
  schedule: (attempt) => Math.min(attempt * 30, 3600),
}

/** Whether there is anything in the inbox, or was lately. */
export const hasInbox = async (db: Reader, id: string): Promise<boolean> =>
  (await rowById(db, inboxes, id)) !== undefined

/** Plans that the inbox of a subscriber goes, in the transaction that deletes them. */
export async function plan(tx: Tx, removed: RemovedInbox): Promise<void> {
  const { project_id, id } = removed
  if (await hasInbox(tx, id)) await enqueue(tx, inboxRemoved, { payload: removed, project_id })
}

/** Removes the inbox, some messages in each transaction. */
export const removeInbox = (store: Store, named_by: NamedBy): JobHandler<RemovedInbox> => ({
  run: async (removed) => {
    await removeLeft(store, removed, named_by)
    return {}
  },
})

/** Removes what is left of the inbox of a subscriber that is gone. A merge moves the messages elsewhere. */
export async function removeLeft(
  store: Store,
  { project_id, id }: RemovedInbox,
  named_by: NamedBy,
) {
  const { read } = store
  if (await rowById(read, subscribers, id)) return
  const [heir] = await mergedIds(read, { project_id, ids: [id] })
  if (!heir) {
    for (const some of [IN_SIGHT, ARCHIVED, SNOOZED]) {
      await inSteps(() => removeSome(store, id, some, named_by), undefined)
    }
  }
  await dropInbox(store, id)
}

/** The conditions are those of partial indexes. */
async function removeSome(store: Store, owner: string, some: SQL, named_by: NamedBy) {
  const { id } = inboxEntries
  const rows = store.read
    .select({ id })
    .from(inboxEntries)
    .where(and(ofInbox(owner), some))
  const ids = (await rows.orderBy(asc(id)).limit(AT_ONCE)).map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => removeByIds(tx, ids, named_by))
  return ids.length
}

/** Removes the totals and the log of an inbox without messages. One that has some stays. */
export async function dropInbox(store: Store, subscriber_id: string): Promise<void> {
  const of_inbox = eq(inboxChanges.subscriber_id, subscriber_id)
  await inSteps(() => removeSomeChanges(store, of_inbox, inboxChanges.seq), undefined)
  await store.tx(async (tx) => {
    await forUpdate(tx.select().from(inboxes).where(eq(inboxes.id, subscriber_id)))
    const left = tx.select({ id: inboxEntries.id }).from(inboxEntries)
    for (const some of [IN_SIGHT, ARCHIVED, SNOOZED]) {
      if ((await left.where(and(ofInbox(subscriber_id), some)).limit(1)).length > 0) return
    }
    await tx.delete(inboxChanges).where(of_inbox)
    await tx.delete(inboxCategories).where(eq(inboxCategories.subscriber_id, subscriber_id))
    await tx.delete(inboxes).where(eq(inboxes.id, subscriber_id))
  })
}
