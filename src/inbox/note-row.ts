import { and, eq } from "drizzle-orm"
import { now } from "../core/time"
import { searchable } from "../lib/text"
import { messages, messageTags } from "../messages/tables"
import type { Tx } from "../store/store"
import type { InboxEntry } from "./tables"

type Row = typeof messages.$inferInsert

/** What the row of a message says beside its content. */
type NoteRow = Pick<Row, "category" | "tags" | "metadata" | "subject" | "template_id">

/** Gives the row of a message other words, where its content changes. What is absent stays. */
export async function rewriteRow(
  tx: Tx,
  { id, project_id }: Pick<InboxEntry, "id" | "project_id">,
  changes: Partial<NoteRow>,
): Promise<void> {
  const { subject, tags } = changes
  const words = { ...changes, ...(subject != null && { subject_key: searchable(subject) }) }
  const row = { ...words, updated_at: now() }
  await tx.update(messages).set(row).where(eq(messages.id, id))
  if (!tags) return
  const old = and(eq(messageTags.project_id, project_id), eq(messageTags.message_id, id))
  await tx.delete(messageTags).where(old)
  const rows = [...new Set(tags)].map((tag) => ({ project_id, tag, message_id: id }))
  if (rows.length > 0) await tx.insert(messageTags).values(rows)
}
