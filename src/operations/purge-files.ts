import { and, asc, eq, gt, ne, type SQL } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { sleep } from "../core/time"
import { messages } from "../messages/tables"
import type { Reader } from "../store/store"

/** Rows of one look: requests are to get their turn between. */
const AT_ONCE = 500

/**
 * Removes the attachments that only messages of this project name: files are shared by content, so
 * what anybody else names too stays. Called before the messages go, and again after a crash.
 */
export async function purgeFiles(db: Reader, blobs: Blobs, project_id: string): Promise<void> {
  const ours = new Set<string>()
  for await (const sha256 of filesNamed(db, eq(messages.project_id, project_id))) ours.add(sha256)
  if (ours.size === 0) return
  for await (const sha256 of filesNamed(db, ne(messages.project_id, project_id))) {
    ours.delete(sha256)
  }
  for (const sha256 of ours) await blobs.remove(sha256)
}

/** The hashes that these messages name, some of them more than once. */
async function* filesNamed(db: Reader, whose: SQL): AsyncGenerator<string> {
  let after = ""
  for (let found = AT_ONCE; found === AT_ONCE; ) {
    const rows = await db
      .select({ id: messages.id, envelope: messages.envelope })
      .from(messages)
      .where(and(whose, eq(messages.channel, "email"), after ? gt(messages.id, after) : undefined))
      .orderBy(asc(messages.id))
      .limit(AT_ONCE)
    for (const { envelope } of rows) {
      for (const { sha256 } of envelope?.attachments ?? []) yield sha256
    }
    found = rows.length
    after = rows.at(-1)?.id ?? after
    await sleep(0)
  }
}
