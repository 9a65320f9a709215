import { and, asc, eq, gt, inArray } from "drizzle-orm"
import { events } from "../events/tables"
import { comparable } from "../lib/address"
import { untilDone } from "../store/in-steps"
import * as instanceValues from "../store/instance-values"
import type { Store, Tx } from "../store/store"
import { MOST_DIAGNOSTIC } from "./suppressions"
import { type SuppressionRow, suppressions } from "./tables"

/** Suppressions of one transaction. */
const AT_ONCE = 100

/** How far the suppressions are filled; by its name in the database. */
const FILLED = "suppression_diagnostics"
const COMPLETE = "complete"

/**
 * Gives the suppressions that an older version made the replies that caused them, from the events that are kept. It
 * goes on where the last process stopped. The returned function ends it.
 */
export const keepFilled = (store: Store): (() => Promise<void>) =>
  untilDone(() => fillSome(store), { failed: "the replies behind suppressions could not be kept" })

/** One step. Returns whether more is left. */
export async function fillSome(store: Store): Promise<boolean> {
  if ((await instanceValues.find(store.read, FILLED)) === COMPLETE) return false
  return store.tx(fill)
}

async function fill(tx: Tx): Promise<boolean> {
  const filled = await instanceValues.find(tx, FILLED)
  if (filled === COMPLETE) return false
  const rows = await tx
    .select()
    .from(suppressions)
    .where(filled === undefined ? undefined : gt(suppressions.id, filled))
    .orderBy(asc(suppressions.id))
    .limit(AT_ONCE)
  const replies = await repliesTo(tx, rows.filter(isOpen))
  for (const row of rows) {
    const diagnostic = replies.get(keyOf(row.source_message_id, row.address))
    if (diagnostic === undefined || !isOpen(row)) continue
    const ours = and(eq(suppressions.project_id, row.project_id), eq(suppressions.id, row.id))
    await tx.update(suppressions).set({ diagnostic }).where(ours)
  }
  await instanceValues.set(tx, FILLED, rows.at(-1)?.id ?? COMPLETE)
  return rows.length > 0
}

const isOpen = ({ reason, origin, diagnostic }: SuppressionRow) =>
  reason === "bounce" && origin === "event" && diagnostic === null

const TOLD_BY = ["email.bounced", "email.failed"]

/** What the servers said of the recipients of the messages behind the rows, by message and address. */
async function repliesTo(tx: Tx, rows: SuppressionRow[]): Promise<Map<string, string>> {
  const ids = rows.flatMap(({ source_message_id: id }) => id ?? [])
  if (ids.length === 0) return new Map()
  const { subject_id, type, project_id, data, detail } = events
  const owners = [...new Set(rows.map((row) => row.project_id))]
  const told = await tx
    .select({ subject_id, data, detail })
    .from(events)
    .where(and(inArray(subject_id, ids), inArray(type, TOLD_BY), inArray(project_id, owners)))
    .orderBy(asc(events.id))
  return new Map(
    told.flatMap((event): [string, string][] => {
      const email = event.data.recipient_email
      const response = event.detail?.response
      if (typeof email !== "string" || !response) return []
      const words = response.slice(0, MOST_DIAGNOSTIC).toWellFormed()
      return [[keyOf(event.subject_id, comparable(email)), words]]
    }),
  )
}

const keyOf = (message_id: string | null, address: string) => `${message_id}\n${address}`
