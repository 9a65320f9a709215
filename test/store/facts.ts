import { asc } from "drizzle-orm"
import { emit } from "../../src/events/emit"
import { events } from "../../src/events/tables"
import type { Reader, Tx } from "../../src/store/store"
import { idFor } from "../harness/ids"

/** The smallest row there is to write: something happened. */
export const happened = (tx: Tx, type: string, data: Record<string, unknown> = {}) =>
  emit(tx, {
    account_id: idFor("account_1"),
    project_id: idFor("project_1"),
    subject_id: null,
    type,
    data,
  })

/** What happened, in the order of writing. */
export async function types(db: Reader): Promise<string[]> {
  const rows = await db.select().from(events).orderBy(asc(events.position), asc(events.id))
  return rows.map(({ type }) => type)
}

/** Awaits what should fail, and returns its message; throws where it does not fail. */
export async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof Error)) throw new Error("nothing was refused")
  return error.message
}
