import { and, eq, inArray, lt, ne } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import { STORED } from "../plans/stored-bytes"
import { type Bump, bumpAll } from "../store/counters"
import type { Store, Tx } from "../store/store"
import {
  INBOUND_COUNTER,
  type InboundRow,
  inboundContents,
  inboundEmails,
  inboundFiles,
  inboundRaws,
} from "./tables"

/** Rows of one transaction, so that other transactions run between two of them. */
const BATCH = 200

/**
 * Removes up to 200 mails of a project that came in before this moment (ISO 8601), with their contents.
 * One that is not processed yet stays. Returns how many.
 */
export async function purgeInbound(store: Store, project: string, before: string): Promise<number> {
  const { id, project_id, status } = inboundEmails
  const is_old = lt(id, firstIdAt(millisFrom(before)))
  const old = and(eq(project_id, project), is_old, ne(status, "received"))
  const some = store.read.select({ id }).from(inboundEmails).where(old).orderBy(id)
  const rows = await some.limit(BATCH)
  if (rows.length > 0)
    await store.tx((tx) =>
      remove(
        tx,
        rows.map((row) => row.id),
      ),
    )
  return rows.length
}

/** Deletes these mails. Files that no other mail names are removed by `operations/file-sweep.ts`, within hours. */
export async function remove(tx: Tx, ids: string[]): Promise<void> {
  await tx.delete(inboundFiles).where(inArray(inboundFiles.inbound_id, ids))
  await tx.delete(inboundRaws).where(inArray(inboundRaws.inbound_id, ids))
  await tx.delete(inboundContents).where(inArray(inboundContents.inbound_id, ids))
  const { id, project_id, status, size, stored_bytes } = inboundEmails
  const gone = await tx
    .delete(inboundEmails)
    .where(inArray(id, ids))
    .returning({ project_id, status, size, stored_bytes })
  const counted = gone.filter((row) => row.status !== "received")
  await bumpAll(tx, totalsOf(counted, -1))
}

type CountedMail = Pick<InboundRow, "project_id" | "size" | "stored_bytes">

/** What a mail stores. Of an earlier version it is all of it. */
const bytesOf = ({ stored_bytes, size }: CountedMail): number => stored_bytes ?? size

/**
 * The totals of each project for mails that are made known, or with `sign` -1 for those that go. Mail that
 * is not read yet counts nowhere: its project may show only then.
 */
export const totalsOf = (mails: CountedMail[], sign: 1 | -1 = 1): Bump[] =>
  mails.flatMap((mail) => [
    { owner: mail.project_id, name: INBOUND_COUNTER, by: sign },
    { owner: mail.project_id, name: STORED.received, by: sign * bytesOf(mail) },
  ])
