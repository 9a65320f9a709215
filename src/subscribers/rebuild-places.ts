import { asc, gt } from "drizzle-orm"
import type { Store } from "../store/store"
import { notePosted } from "./postings"
import { addPlaces } from "./subscribers"
import { subscribers, subscriberTags, subscriberWords } from "./tables"

/** Subscribers of one transaction. */
const AT_ONCE = 500

/**
 * Writes the words and tags of all subscribers anew, from their own rows. The next start does the same with
 * the posting lists, in the background. Nothing else may write meanwhile.
 */
export async function rebuildPlaces(store: Store): Promise<void> {
  await store.tx(async (tx) => {
    await notePosted(tx, undefined)
    await tx.delete(subscriberWords)
    await tx.delete(subscriberTags)
  })
  const { id, project_id, search_key, tags } = subscribers
  for (let after = ""; ; ) {
    const next = store.read.select({ id, project_id, search_key, tags }).from(subscribers)
    const rows = await next.where(gt(id, after)).orderBy(asc(id)).limit(AT_ONCE)
    await store.tx((tx) => addPlaces(tx, rows))
    after = rows.at(-1)?.id ?? ""
    if (rows.length < AT_ONCE) return
  }
}
