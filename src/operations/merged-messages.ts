import { and, desc, eq, gte, inArray, isNotNull, type SQL } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import { firstOpenStart, isOfOpenFanOut } from "../fan-out/publishing"
import { InboxLedger } from "../inbox/ledger"
import { moveTo } from "../inbox/moved"
import { hasInbox, removeLeft } from "../inbox/removed-inbox"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { jobs } from "../jobs/tables"
import { havingMessages, ofSubscriber } from "../messages/message-list"
import { messages } from "../messages/tables"
import { forUpdate } from "../store/columns"
import type { Reader, Store, Tx } from "../store/store"
import { mergedIds } from "../subscribers/merged-subscribers"
import { subscribers } from "../subscribers/tables"
import { namedByMessages } from "./table-lives"

/** Messages of one transaction: others work in between. */
const AT_ONCE = 500

/** The clocks of two nodes differ by less. */
const SKEW_MS = 60_000

interface MergedMessages {
  project_id: string
  /** The subscriber that was kept. It may have been merged or removed since then. */
  into: string
  /** The removed subscriber, behind those that were merged into it before. */
  from: string[]
}

/** Moves the messages that a merge leaves to the subscriber that is kept. */
export const subscriberMerged: JobKind<MergedMessages> = {
  name: "subscriber.merged",
  schedule: (attempt) => Math.min(attempt * 30, 3600),
}

/**
 * Moves the messages that the merge itself has to move: those of publishes that are not over, because a chunk
 * asks which of its subscribers have one, and the newest others. A job moves the rest.
 */
export async function moveFirstMessages(tx: Tx, merged: MergedMessages): Promise<void> {
  const { project_id, into, from } = merged
  const gone = from.at(-1)
  if (gone === undefined) return
  const since = await firstOpenStart(tx, project_id)
  if (since !== undefined) {
    const recent = gte(messages.id, firstIdAt(millisFrom(since) - SKEW_MS))
    const open = and(recent, isOfOpenFanOut(tx, project_id, messages.fan_out_id))
    while ((await moveSome(tx, { project_id, from: gone, into, which: open })) === AT_ONCE);
  }
  await moveSome(tx, { project_id, from: gone, into })
  if ((await havingMessages(tx, project_id, from)).length > 0 || (await hasInbox(tx, gone))) {
    await enqueue(tx, subscriberMerged, { payload: merged, project_id })
  }
}

/** The removed subscribers whose messages a job has yet to give to this one. */
export async function unmovedTo(db: Reader, project_id: string, into: string): Promise<string[]> {
  const ours = and(eq(jobs.project_id, project_id), eq(jobs.name, subscriberMerged.name))
  const rows = await db.select({ payload: jobs.payload }).from(jobs).where(ours).orderBy(jobs.id)
  const payloads = rows.map(({ payload }) => payload as MergedMessages)
  return payloads.filter((payload) => payload.into === into).flatMap(({ from }) => from)
}

/** May run twice, and beside the job of another merge of the same subscribers. */
export const moveRest = (store: Store): JobHandler<MergedMessages> => ({
  async run({ project_id, into, from }) {
    for (let moved = 1; moved > 0; ) {
      moved = 0
      for (const id of from) {
        let some = AT_ONCE
        while (some === AT_ONCE) {
          some = await store.tx((tx) => moveToHeir(tx, { project_id, from: id, into }))
          moved += some
        }
      }
    }
    // What came for one that was removed is not kept, and the log of an inbox is long.
    for (const id of [into, ...from]) await removeLeft(store, { project_id, id }, namedByMessages)
    return {}
  },
})

/**
 * To the subscriber that has the names of `from` now. Where that one was removed, to its id: an erasure of
 * what it left finds them there.
 */
async function moveToHeir(tx: Tx, { project_id, from, into }: Move): Promise<number> {
  const [heir] = await mergedIds(tx, { project_id, ids: [from] })
  return moveSome(tx, { project_id, from, into: heir?.subscriber_id ?? into })
}

interface Move {
  project_id: string
  from: string
  into: string
  which?: SQL | undefined
}

/** The newest ones first, because they count for the frequency cap. Fewer than 500: there are no others. */
async function moveSome(tx: Tx, { project_id, from, into, which }: Move): Promise<number> {
  const { id, user_id } = messages
  const theirs = and(ofSubscriber(project_id, from), which)
  const newest = await tx
    .select({ id })
    .from(messages)
    .where(theirs)
    .orderBy(desc(id))
    .limit(AT_ONCE)
  if (newest.length === 0) return 0
  const among = inArray(
    id,
    newest.map((row) => row.id),
  )
  // Inboxes are held before their messages, and rows in the order of their ids, as everywhere.
  if (await hasInbox(tx, from)) await InboxLedger.open(tx, project_id, [from, into])
  const rows = await forUpdate(
    tx.select({ id }).from(messages).where(and(theirs, among)).orderBy(id),
  )
  const ids = rows.map((row) => row.id)
  if (ids.length > 0) {
    const [heir] = await tx
      .select({ user_id: subscribers.external_id })
      .from(subscribers)
      .where(eq(subscribers.id, into))
    await tx.update(messages).set({ subscriber_id: into }).where(inArray(id, ids))
    // Of a message to a device. Where the heir is gone, an erasure finds it by the subscriber.
    if (heir)
      await tx
        .update(messages)
        .set(heir)
        .where(and(inArray(id, ids), isNotNull(user_id)))
    await moveTo(tx, project_id, into, ids)
  }
  return newest.length
}
