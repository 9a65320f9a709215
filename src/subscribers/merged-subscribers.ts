import { and, asc, count, eq, inArray } from "drizzle-orm"
import { tooMany } from "../core/errors"
import { now } from "../core/time"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import type { SubscriberRow } from "./find-subscriber"
import { mergedSubscribers } from "./tables"

/** Subscribers that one subscriber may take in. An export and an erasure look for the names of all. */
export const MOST_MERGED = 100

type MergedSubscriberRow = typeof mergedSubscribers.$inferSelect

/** What was merged into a subscriber, also by way of another one, in the order of the merges. */
export const mergedInto = async (
  db: Reader,
  subscriber_id: string,
): Promise<MergedSubscriberRow[]> =>
  db
    .select()
    .from(mergedSubscribers)
    .where(into(subscriber_id))
    .orderBy(asc(mergedSubscribers.created_at), asc(mergedSubscribers.id))

const into = (subscriber_id: string) => eq(mergedSubscribers.subscriber_id, subscriber_id)

const { id, project_id, subscriber_id } = mergedSubscribers

/** What was merged into any of these subscribers, each with the one that took it in. */
export const takenInBy = prepared({ project_id, ids: idList }, (db: Reader, slot) =>
  db
    .select({ id, subscriber_id })
    .from(mergedSubscribers)
    .where(and(eq(project_id, slot.project_id), isAmong(db, subscriber_id, slot.ids))),
)

/** The subscriber that took in each of these removed ones. One that no merge removed is missing. */
export const mergedIds = prepared({ project_id, ids: idList }, (db: Reader, slot) =>
  db
    .select({ id, subscriber_id })
    .from(mergedSubscribers)
    .where(and(eq(project_id, slot.project_id), isAmong(db, id, slot.ids))),
)

/** Throws 409 `conflict` where the merge of `gone` into `kept` makes more than `MOST_MERGED`. */
export async function requireMergeable(
  db: Reader,
  kept: SubscriberRow,
  gone: SubscriberRow,
): Promise<void> {
  const both = inArray(mergedSubscribers.subscriber_id, [kept.id, gone.id])
  const [found] = await db.select({ all: count() }).from(mergedSubscribers).where(both)
  if ((found?.all ?? 0) < MOST_MERGED) return
  const text = `At most ${MOST_MERGED} subscribers can be merged into one. ${kept.external_id} is at this limit. Keep the two apart.`
  tooMany(text, MOST_MERGED)
}

/**
 * Keeps the names of `gone`, and of all that was merged into it, for `kept`. The transaction holds both,
 * and removes `gone` afterwards.
 */
export async function keepNames(tx: Tx, kept: SubscriberRow, gone: SubscriberRow): Promise<void> {
  await tx.update(mergedSubscribers).set({ subscriber_id: kept.id }).where(into(gone.id))
  const { id, project_id, external_id, email_key, phone } = gone
  const names = { id, project_id, external_id, email_key, phone }
  await tx.insert(mergedSubscribers).values({ ...names, subscriber_id: kept.id, created_at: now() })
}

/** The record of a former name in an export. */
export const shownMerged = ({
  id,
  external_id,
  email_key,
  phone,
  created_at,
}: MergedSubscriberRow) => ({
  ...{ id, external_id, email: email_key, phone, merged_at: created_at },
})
