import { and, asc, eq, gt, inArray, type SQL, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import { events } from "../events/tables"
import { accounts, projects } from "../identity/tables"
import { DEAD, OVER, READY } from "../jobs/work-item"
import { type ChannelName, messageContents, messages, type Recipient } from "../messages/tables"
import { eventTypeOf } from "../messages/transitions"
import { STORED } from "../plans/stored-bytes"
import { total } from "../store/counters"
import type { Reader } from "../store/store"
import { counters } from "../store/tables"
import { missingDeliveries } from "../webhooks/missing-deliveries"
import { deliveries } from "../webhooks/tables"
import {
  type CounterOwner,
  countedRows,
  countInSteps,
  namesInRows,
  PLAIN_COUNTERS,
} from "./counted-rows"
import { storedByDeliveries, wrongTotals } from "./webhook-totals"

/** What must hold, by the names under which it is counted. */
export const INVARIANTS = {
  I1: "Every accepted message reaches a final state",
  I4: "Every final state has one event, and every event one delivery to each endpoint that asks for it",
  I5: "Every counter equals its rows",
} as const

export type InvariantName = keyof typeof INVARIANTS

/** A place where an invariant does not hold. It names ids, and no address. */
export interface BrokenInvariant {
  name: InvariantName
  /** The project or account. */
  owner_id: string
  what: string
  /** Of the row that it is about; null where it is a counter. */
  id: string | null
}

export interface InvariantLook {
  /** All reads are of one moment (`Store.snapshot`), or nothing is written meanwhile. */
  db: Reader
  /** Called after each step, so that other work gets the event loop. */
  pause: () => Promise<void>
  /** Only messages and deliveries that were made since then; null: all. ISO 8601. */
  since: string | null
  /** Work that was due before this is overdue; null where no server worked on it. ISO 8601. */
  overdue_before: string | null
  /** Also asks the rows which counters there should be. This reads an index for each of them. */
  is_thorough?: boolean
}

/** Ids of one page of projects or accounts behind `after`. */
async function nextOwners(db: Reader, kind: CounterOwner, after: string, limit: number) {
  const { id } = kind === "project" ? projects : accounts
  const rows = db.select({ id }).from(id.table).where(gt(id, after)).orderBy(asc(id)).limit(limit)
  return (await rows).map((row) => row.id)
}

const OWNERS = 200

/** Every project or account. */
export async function* allOwners(db: Reader, kind: CounterOwner): AsyncGenerator<string> {
  for (let after = ""; ; ) {
    const ids = await nextOwners(db, kind, after, OWNERS)
    yield* ids
    after = ids.at(-1) ?? ""
    if (ids.length < OWNERS) return
  }
}

/** Looks at all that belongs to one project, in bounded steps. */
export async function* brokenInProject(
  look: InvariantLook,
  project_id: string,
): AsyncGenerator<BrokenInvariant> {
  yield* openWithoutEnd(look, project_id)
  yield* withoutEvents(look, project_id)
  yield* withoutDeliveries(look, project_id)
  yield* wrongCounters(look, "project", project_id)
  for await (const { webhook_id, told, counted } of wrongTotals(look.db, project_id, look.pause)) {
    const [wrong, right] = [JSON.stringify(told), JSON.stringify(counted)]
    const what = `The totals of the deliveries of an endpoint are ${wrong}, but its rows give ${right}.`
    yield { name: "I5", owner_id: project_id, id: webhook_id, what }
  }
  yield* wrongDeliveryBytes(look, project_id)
}

/** Looks at the counters of one account. */
export const brokenInAccount = (look: InvariantLook, account_id: string) =>
  wrongCounters(look, "account", account_id)

const STEP = 500

/** I1: waiting messages that no attempt will ever end. */
async function* openWithoutEnd(
  { db, pause, overdue_before }: InvariantLook,
  project_id: string,
): AsyncGenerator<BrokenInvariant> {
  const { id, state, run_at } = messages
  const waiting = and(eq(messages.project_id, project_id), eq(messages.status, "queued"))
  const content = messageContents.message_id
  for (let after = ""; ; ) {
    const rows = await db
      .select({ id, state, run_at, content })
      .from(messages)
      .leftJoin(messageContents, eq(content, id))
      .where(and(waiting, gt(id, after)))
      .orderBy(asc(id))
      .limit(STEP)
    for (const row of rows) {
      const what = troubleOf(row, overdue_before)
      if (what !== undefined) yield { name: "I1", owner_id: project_id, id: row.id, what }
    }
    after = rows.at(-1)?.id ?? ""
    if (rows.length < STEP) return
    await pause()
  }
}

function troubleOf(
  row: { state: number; run_at: string; content: string | null },
  overdue_before: string | null,
): string | undefined {
  if (row.state === OVER || row.state === DEAD)
    return "The message waits, but nothing will try it again."
  if (row.content === null) return "The message waits, but its content is gone."
  const is_overdue = overdue_before !== null && row.state === READY && row.run_at < overdue_before
  return is_overdue
    ? "The message has been due for more than a day, and nothing tried it."
    : undefined
}

/** Messages of one step: their events are read as JSON. */
const MESSAGES_STEP = 100

/** Statuses that an event of the same name ends. `sent` may be the last one, and is told as well. */
const TOLD: ReadonlySet<string> = new Set([
  ...["sent", "delivered", "failed", "bounced", "complained"],
  ...["undelivered", "expired", "cancelled"],
])

/** I4, first part: each recipient's status has exactly one event. */
async function* withoutEvents(
  { db, pause, since }: InvariantLook,
  project_id: string,
): AsyncGenerator<BrokenInvariant> {
  const first = await firstKept(db, project_id, since)
  if (first === undefined) return
  const { id, channel, recipients } = messages
  for (const name of CHANNELS) {
    const ours = and(eq(messages.project_id, project_id), eq(channel, name))
    for (let after = first; ; ) {
      const page = db
        .select({ id, recipients })
        .from(messages)
        .where(and(ours, gt(id, after)))
      const rows = await page.orderBy(asc(id)).limit(MESSAGES_STEP)
      const told = await toldOf(
        db,
        rows.map((row) => row.id),
      )
      for (const row of rows) {
        const what = untoldIn(name, row.recipients, told.get(row.id) ?? [])
        if (what !== undefined) yield { name: "I4", owner_id: project_id, id: row.id, what }
      }
      after = rows.at(-1)?.id ?? ""
      if (rows.length < MESSAGES_STEP) break
      await pause()
    }
  }
}

const CHANNELS: ChannelName[] = ["email", "push", "sms", "in_app"]

/**
 * The first id of messages whose events are all kept still: retention removes the oldest ones first.
 * Undefined where the project has no event.
 */
async function firstKept(db: Reader, project_id: string, since: string | null) {
  const { id, created_at, position } = events
  const oldest = db.select({ created_at }).from(events).where(eq(events.project_id, project_id))
  const [row] = await oldest.orderBy(asc(position), asc(id)).limit(1)
  if (!row) return undefined
  const from = since !== null && since > row.created_at ? since : row.created_at
  return firstIdAt(millisFrom(from))
}

interface ToldEvent {
  type: string
  data: Record<string, unknown>
}

async function toldOf(db: Reader, ids: string[]): Promise<Map<string, ToldEvent[]>> {
  const told = new Map<string, ToldEvent[]>()
  if (ids.length === 0) return told
  const { subject_id, type, data } = events
  const rows = db.select({ subject_id, type, data }).from(events)
  for (const row of await rows.where(inArray(subject_id, ids))) {
    const key = row.subject_id ?? ""
    told.set(key, [...(told.get(key) ?? []), row])
  }
  return told
}

function untoldIn(channel: ChannelName, recipients: Recipient[], told: ToldEvent[]) {
  for (const { email, status } of recipients) {
    const type = TOLD.has(status) ? eventTypeOf(channel, status) : undefined
    if (type === undefined) continue
    const same = told.filter((event) => event.type === type && isAbout(event, email))
    if (same.length === 0) return `A recipient is ${status}, but no event tells it.`
    if (same.length > 1) return `A recipient is ${status}, and ${same.length} events tell it.`
  }
  return undefined
}

/** An event of the inbox names no address: its message has one recipient. */
function isAbout({ data }: ToldEvent, address: string): boolean {
  const named = data.recipient_email ?? data.device_id ?? data.to
  return named === undefined || named === address
}

/** I4, second part: each endpoint gets each event that it asks for. */
async function* withoutDeliveries(
  { db, pause, since }: InvariantLook,
  project_id: string,
): AsyncGenerator<BrokenInvariant> {
  for await (const missing of missingDeliveries(db, project_id, { since, pause })) {
    const what = `The endpoint ${missing.webhook_id} asks for the event, but has no delivery of it.`
    yield { name: "I4", owner_id: project_id, id: missing.event_id, what }
  }
}

/** I4, third part: no endpoint gets an event twice of itself. And I1 of deliveries. */
export async function* brokenDeliveries({
  db,
  pause,
  since,
}: InvariantLook): AsyncGenerator<BrokenInvariant> {
  const first = since === null ? "" : firstIdAt(millisFrom(since))
  for (let after = first; ; ) {
    const { id } = deliveries
    const ahead = db.select({ last: id }).from(deliveries).where(gt(id, after)).orderBy(asc(id))
    const [edge] = await ahead.limit(1).offset(STEP - 1)
    const within = and(gt(id, after), edge && sql`${id} <= ${sql.param(edge.last, id)}`)
    yield* plannedTwice(db, within)
    yield* endedUnsettled(db, within)
    if (!edge) return
    after = edge.last
    await pause()
  }
}

async function* plannedTwice(db: Reader, within: SQL | undefined): AsyncGenerator<BrokenInvariant> {
  const { id, project_id, event_id, webhook_id, trigger } = deliveries
  const earlier = sql`EXISTS (SELECT 1 FROM ${deliveries} AS other
    WHERE other.event_id = ${event_id} AND other.webhook_id = ${webhook_id}
      AND other."trigger" = 'event' AND other.id < ${id})`
  const rows = db.select({ id, project_id }).from(deliveries)
  for (const row of await rows.where(and(within, eq(trigger, "event"), earlier))) {
    const what = "The delivery is the second one of its event to its endpoint."
    yield { name: "I4", owner_id: row.project_id, id: row.id, what }
  }
}

async function* endedUnsettled(
  db: Reader,
  within: SQL | undefined,
): AsyncGenerator<BrokenInvariant> {
  const { id, project_id, status, state } = deliveries
  const unsettled = and(inArray(status, ["pending", "failed"]), inArray(state, [OVER, DEAD]))
  const rows = db.select({ id, project_id }).from(deliveries).where(and(within, unsettled))
  for (const row of await rows) {
    const what = "The delivery waits, but nothing will try it again."
    yield { name: "I1", owner_id: row.project_id, id: row.id, what }
  }
}

/** I5: totals that differ from what they count. */
async function* wrongCounters(
  { db, pause, is_thorough = false }: InvariantLook,
  kind: CounterOwner,
  owner_id: string,
): AsyncGenerator<BrokenInvariant> {
  const totals = await countersOf(db, kind, owner_id)
  const asked = is_thorough && kind === "project" ? await namesInRows(db, owner_id) : []
  for (const name of asked) if (!totals.has(name)) totals.set(name, 0)
  for (const [name, told] of totals) {
    const rows = countedRows(kind, owner_id, name)
    if (!rows) continue
    const counted = await countInSteps(db, rows, pause)
    await pause()
    if (counted === told) continue
    const found = rows.adds ? `its rows hold ${counted}` : `there are ${counted} rows`
    yield wrongCounter(owner_id, name, told, found)
  }
}

/** No index has the deliveries of a project, so this counter is not among `countedRows`. */
async function* wrongDeliveryBytes({ db, pause }: InvariantLook, project_id: string) {
  const name = STORED.deliveries
  const told = await total(db, project_id, name)
  const counted = await storedByDeliveries(db, project_id, pause)
  if (counted !== told) yield wrongCounter(project_id, name, told, `its rows hold ${counted}`)
}

function wrongCounter(
  owner_id: string,
  name: string,
  told: number,
  found: string,
): BrokenInvariant {
  return { name: "I5", owner_id, id: null, what: `The counter ${name} is ${told}, but ${found}.` }
}

async function countersOf(db: Reader, kind: CounterOwner, owner_id: string) {
  const { name, value } = counters
  const sum = sql<number>`sum(${value})`.mapWith(Number)
  const rows = db.select({ name, sum }).from(counters).where(eq(counters.project_id, owner_id))
  const told = new Map((await rows.groupBy(name)).map((row) => [row.name, row.sum]))
  for (const plain of PLAIN_COUNTERS[kind]) if (!told.has(plain)) told.set(plain, 0)
  return told
}
