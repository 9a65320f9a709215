import { newEventId } from "../core/ids"
import { now } from "../core/time"
import { inserter } from "../store/statements"
import type { Tx } from "../store/store"
import { type EventDetail, events } from "./tables"

export interface NewEvent {
  account_id: string
  project_id: string
  subject_id: string | null
  type: string
  data: Record<string, unknown>
  detail?: EventDetail | null
}

/** Records facts, in the transaction that makes them true. Nobody is told before that commits. */
export async function emitAll(tx: Tx, list: NewEvent[]): Promise<void> {
  const created_at = now()
  // The ids are made here, inside the transaction: on SQLite their order is the order of commits.
  await insertEvents(
    tx,
    list.map((event) => ({ detail: null, ...event, id: newEventId(), created_at })),
  )
  tx.afterCommit(ring)
}

export const emit = (tx: Tx, event: NewEvent) => emitAll(tx, [event])

const bells = new Set<() => void>()

/** Calls `listener` after each commit that brought events, until the returned function is called. */
export function onEmitted(listener: () => void): () => void {
  bells.add(listener)
  return () => void bells.delete(listener)
}

/** Wakes whoever waits for events; also called when another node says that there are some. */
export function ring() {
  for (const bell of bells) bell()
}

const insertEvents = inserter(events)
