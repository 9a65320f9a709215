import { inArray } from "drizzle-orm"
import { messages } from "../messages/tables"
import type { Tx } from "../store/store"
import { addressedTo } from "./accept"
import { InboxLedger } from "./ledger"
import { entriesForUpdate } from "./marks"
import { withParts } from "./records"
import { inboxEntries } from "./tables"

/**
 * Moves messages to the inbox of another subscriber, with their states. Both inboxes give them numbers, and no event
 * tells of it. Messages of other channels are passed over.
 */
export async function moveTo(
  tx: Tx,
  project_id: string,
  into: string,
  ids: string[],
): Promise<void> {
  const { id, subscriber_id } = inboxEntries
  const found = tx.select({ subscriber_id }).from(inboxEntries)
  const people = (await found.where(inArray(id, ids))).map((row) => row.subscriber_id)
  if (people.length === 0) return
  const ledger = await InboxLedger.open(tx, project_id, [...people, into])
  const rows = await withParts(tx, await entriesForUpdate(tx, ids))
  for (const { entry, ...parts } of rows) ledger.move(entry, into, parts)
  await ledger.close()
  const moved = rows.map(({ entry }) => entry.id)
  await tx.update(inboxEntries).set({ subscriber_id: into }).where(inArray(id, moved))
  await tx.update(messages).set(addressedTo(into)).where(inArray(messages.id, moved))
}
