import { and, eq, lt } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import type { Store } from "../store/store"
import { removeByIds } from "./mailbox"
import { mailboxMails } from "./tables"

/** Mails of one transaction. Their bytes are in the rows, so there are few. */
const BATCH = 50

/** Removes up to 50 mails of a project that are older than this moment (ISO 8601). Returns how many. */
export async function purgeMailbox(store: Store, project: string, before: string): Promise<number> {
  const { id, project_id } = mailboxMails
  const old = and(eq(project_id, project), lt(id, firstIdAt(millisFrom(before))))
  const some = store.read.select({ id }).from(mailboxMails).where(old).orderBy(id)
  const ids = (await some.limit(BATCH)).map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => removeByIds(tx, project, ids))
  return ids.length
}
