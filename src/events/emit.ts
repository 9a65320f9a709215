import { fail } from "../core/errors"
import { newEventId } from "../core/ids"
import { now } from "../core/time"
import type { WakeUpTopic } from "../jobs/work-rows"
import { perStore } from "../store/cached"
import { inserter } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { lookup } from "./registry"
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
type EventRouter = (tx: Tx, recorded: Recorded[]) => Promise<void>

let route: EventRouter = async () => {}

/** Set once at the start: events lie below the code that tells the world of them. */
export function setRouter(router: EventRouter) {
  route = router
}

/**
 * Records facts, in the transaction that makes them true, and plans their deliveries there, too.
 * Readers are woken after the commit. Returns what was recorded, in the order given.
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
    id: newEventId(),
    position: 0, // the database fills it in
    account_id: event.account_id,
    project_id: event.project_id,
    subject_id: event.subject_id,
    type: event.type,
    data: event.data,
    detail: event.detail ?? null,
    created_at,
  }))
  await insertEvents(tx, recorded)
  const projects = new Set(list.map(({ project_id }) => project_id))
  tx.afterCommit(() => wakeReaders(tx, projects))
  return recorded
}

/** Whether one of the patterns (exact types, `prefix.*`, `*`) speaks of the type. */
export const matchesType = (patterns: readonly string[], type: string): boolean =>
  patterns.some(
    (pattern) =>
      pattern === "*" ||
      pattern === type ||
      (pattern.endsWith(".*") && type.startsWith(pattern.slice(0, -1))),
  )

/** The test of an endpoint is sent to no other endpoint, and not again. */
export const isTest = ({ type, subject_id, data }: Recorded) =>
  subject_id !== null && (type === "webhook.test" || data.simulated === true)

/** The projects with new events; undefined where they are not known, and every reader looks. */
type ChangedProjects = ReadonlySet<string> | undefined

const listenersOf = perStore(() => new Set<(projects: ChangedProjects) => void>())

/** Calls `listener` after each commit of the store that brought events, until the returned function is called. */
export function onEmitted(db: Reader, listener: (projects: ChangedProjects) => void): () => void {
  const listeners = listenersOf(db)
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Wakes every reader that waits for events. It is also called when another node says that there are some. */
function wakeReaders(db: Reader, projects?: ChangedProjects) {
  for (const listener of listenersOf(db)) listener(projects)
}

/** What the other nodes on the same database are told, too. */
export const emitted = (db: Reader): WakeUpTopic => ({
  topic: "belfry_events",
  onWakeUp: (listener) => onEmitted(db, listener),
  wakeUp: () => wakeReaders(db),
})

const insertEvents = inserter(events)

type Data = Record<string, unknown>

interface SimulatedEvent {
  type: string
  /** In place of what the example says; objects are merged, everything else is replaced. */
  data?: Data
}

/**
 * Records an event that did not happen, which says so by `data.simulated`, and delivers it like
 * every other. The type has to be registered.
 */
export async function trigger(
  tx: Tx,
  owner: Pick<NewEvent, "account_id" | "project_id">,
  { type, data = {} }: SimulatedEvent,
): Promise<Recorded> {
  const whole = { ...merged(exampleData(type), data), simulated: true }
  const { account_id, project_id } = owner
  const event = { account_id, project_id, subject_id: null, type, data: whole }
  const [recorded] = await emitAll(tx, [event])
  return recorded ?? fail("internal_error", "The event was not recorded.")
}

export const exampleData = (type: string): Data => lookup(type)?.example.data ?? {}

function merged(base: Data, changes: Data): Data {
  const entries = Object.entries(changes).map(([name, value]) => {
    const before = Object.hasOwn(base, name) ? base[name] : undefined
    return [name, isObject(before) && isObject(value) ? merged(before, value) : value]
  })
  return { ...base, ...Object.fromEntries(entries) }
}

const isObject = (value: unknown): value is Data =>
  typeof value === "object" && value !== null && !Array.isArray(value)
