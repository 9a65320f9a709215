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

export type Recorded = typeof events.$inferSelect

/** Decides, in the transaction of the events, which endpoints are told of them. */
export type Router = (tx: Tx, recorded: Recorded[]) => Promise<void>

let route: Router = async () => {}

/** Set once at the start: events lie below the code that tells the world of them. */
export function setRouter(router: Router) {
  route = router
}

/**
 * Records facts, in the transaction that makes them true, and plans their deliveries there, too.
 * Nobody is told before that commits. Returns what was recorded, in the order given.
 */
export async function emitAll(tx: Tx, list: NewEvent[]): Promise<Recorded[]> {
  const recorded = await record(tx, list)
  await route(tx, recorded)
  return recorded
}

export async function emit(tx: Tx, event: NewEvent): Promise<void> {
  await emitAll(tx, [event])
}

/** As `emitAll`, but no endpoint is told: for what concerns one of them alone, such as its test. */
export async function record(tx: Tx, list: NewEvent[]): Promise<Recorded[]> {
  const created_at = now()
  // The ids are made here, inside the transaction: on SQLite their order is the order of commits.
  const recorded = list.map((event) => ({
    detail: null,
    ...event,
    id: newEventId(),
    position: 0, // the database fills it in
    created_at,
  }))
  await insertEvents(tx, recorded)
  const projects = new Set(list.map(({ project_id }) => project_id))
  tx.afterCommit(() => ring(projects))
  return recorded
}

/** Which projects have something new; undefined where nobody knows, and all have to look. */
type Rung = ReadonlySet<string> | undefined

const bells = new Set<(projects: Rung) => void>()

/** Calls `listener` after each commit that brought events, until the returned function is called. */
export function onEmitted(listener: (projects: Rung) => void): () => void {
  bells.add(listener)
  return () => void bells.delete(listener)
}

/** Wakes every reader that waits for events. It is also called when another node says that there are some. */
export function ring(projects?: Rung) {
  for (const bell of bells) bell(projects)
}

const insertEvents = inserter(events)
