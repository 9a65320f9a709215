import { and, asc, count, eq, gt, inArray, isNull, type SQL, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import { events } from "../events/tables"
import { accounts, projects } from "../identity/tables"
import { ENDED, HELD, hasEnded, LEASED, READY } from "../jobs/work-item"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { eventTypeOf } from "../messages/status-changes"
import { type ChannelName, messageContents, messages, type Recipient } from "../messages/tables"
import { STORED } from "../plans/stored-bytes"
import { total } from "../store/counters"
import { inPages } from "../store/in-steps"
import type { Reader } from "../store/store"
import { counters } from "../store/tables"
import { storedBytes, totalsOfOne } from "../webhooks/endpoint-counts"
import { missingDeliveries } from "../webhooks/missing-deliveries"
import { deliveries, webhooks, webhookTotals } from "../webhooks/tables"
import {
  type CounterOwner,
  countedRows,
  countInSteps,
  namesInRows,
  PLAIN_COUNTERS,
  rangesOf,
} from "./counted-rows"
import { wrongDays } from "./day-recount"
import { outsideInboxes, type WrongInbox, wrongInboxes } from "./inbox-recount"

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

interface InvariantLook {
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

/** What one look is about: all that a project has, the counters of an account, or the webhook deliveries or the inboxes of all. */
interface LookedAt {
  kind: CounterOwner | "deliveries" | "inboxes"
  /** Of the project or account. */
  id: string
}

const OWNERS = 200

/** Everything that can be looked at, so that each may be read at a moment of its own. */
export async function* lookedAt(db: Reader): AsyncGenerator<LookedAt> {
  for (const kind of ["project", "account"] as const) {
    const { id } = kind === "project" ? projects : accounts
    const next = (after: string) =>
      db.select({ id }).from(id.table).where(gt(id, after)).orderBy(asc(id)).limit(OWNERS)
    for await (const rows of inPages(OWNERS, next))
      for (const row of rows) yield { kind, id: row.id }
  }
  yield { kind: "deliveries", id: "" }
  yield { kind: "inboxes", id: "" }
}

/** The places in it where an invariant does not hold, looked for in bounded steps. */
export async function* brokenIn(
  look: InvariantLook,
  { kind, id }: LookedAt,
): AsyncGenerator<BrokenInvariant> {
  if (kind === "deliveries") return yield* brokenDeliveries(look)
  if (kind === "inboxes") return yield* asBroken(wrongInboxes(look.db, look.pause))
  if (kind === "account") return yield* wrongCounters(look, kind, id)
  yield* openWithoutEnd(look, id)
  yield* withoutEvents(look, id)
  yield* withoutDeliveries(look, id)
  yield* wrongCounters(look, kind, id)
  yield* wrongTotals(look, id)
  for await (const what of wrongDays(look.db, id, look))
    yield { name: "I5", owner_id: id, id: null, what }
  yield* asBroken(outsideInboxes(look.db, id, look.pause))
}

async function* asBroken(wrong: AsyncGenerator<WrongInbox>): AsyncGenerator<BrokenInvariant> {
  for await (const { project_id: owner_id, ...found } of wrong)
    yield { name: "I5", owner_id, ...found }
}

const STEP = 500

/** I1: waiting messages that no attempt will ever end. */
async function* openWithoutEnd(
  { db, pause, overdue_before }: InvariantLook,
  project_id: string,
): AsyncGenerator<BrokenInvariant> {
  const { id, state, run_at } = messages
  const waiting = and(eq(messages.project_id, project_id), eq(messages.status, "queued"))
  const content = messageContents.message_id
  const next = (after: string) =>
    db
      .select({ id, state, run_at, content })
      .from(messages)
      .leftJoin(messageContents, eq(content, id))
      .where(and(waiting, gt(id, after)))
      .orderBy(asc(id))
      .limit(STEP)
  for await (const rows of inPages(STEP, next, { pause })) {
    for (const row of rows) {
      const what = troubleOf(row, overdue_before)
      if (what !== undefined) yield { name: "I1", owner_id: project_id, id: row.id, what }
    }
  }
}

function troubleOf(
  row: { state: number; run_at: string; content: string | null },
  overdue_before: string | null,
): string | undefined {
  if (hasEnded(row)) return "The message waits, but nothing will try it again."
  if (row.content === null) return "The message waits, but its content is missing."
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
  for (const name of AUDIENCE_CHANNELS) {
    const ours = and(eq(messages.project_id, project_id), eq(channel, name))
    const next = (after: string) => {
      const rows = db.select({ id, recipients }).from(messages)
      return rows
        .where(and(ours, gt(id, after)))
        .orderBy(asc(id))
        .limit(MESSAGES_STEP)
    }
    for await (const rows of inPages(MESSAGES_STEP, next, { first, pause })) {
      const ids = rows.map((row) => row.id)
      const told = await toldOf(db, ids)
      for (const row of rows) {
        const what = untoldIn(name, row.recipients, told.get(row.id) ?? [])
        if (what !== undefined) yield { name: "I4", owner_id: project_id, id: row.id, what }
      }
    }
  }
}

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
    if (same.length === 0) return `A recipient is ${status}, but no event says so.`
    if (same.length > 1) return `A recipient is ${status}, and ${same.length} events say so.`
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
async function* brokenDeliveries({
  db,
  pause,
  since,
}: InvariantLook): AsyncGenerator<BrokenInvariant> {
  const { id, project_id } = deliveries
  const first = since === null ? "" : firstIdAt(millisFrom(since))
  for await (const range of rangesOf(db, id, { where: undefined, step: STEP, pause, first })) {
    for (const { name, what, where } of brokenDelivery()) {
      const rows = db.select({ id, project_id }).from(deliveries).where(and(range.rows, where))
      for (const row of await rows) yield { name, what, owner_id: row.project_id, id: row.id }
    }
  }
}

function brokenDelivery(): { name: InvariantName; what: string; where: SQL | undefined }[] {
  const { id, event_id, webhook_id, trigger, status, state } = deliveries
  const earlier = sql`EXISTS (SELECT 1 FROM ${deliveries} AS other
    WHERE other.event_id = ${event_id} AND other.webhook_id = ${webhook_id}
      AND other."trigger" = 'event' AND other.id < ${id})`
  return [
    {
      name: "I4",
      what: "The delivery is the second one of its event to its endpoint.",
      where: and(eq(trigger, "event"), earlier),
    },
    {
      name: "I1",
      what: "The delivery waits, but nothing will try it again.",
      where: and(inArray(status, ["pending", "failed"]), inArray(state, ENDED)),
    },
  ]
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

/** I5 of deliveries: the totals of each endpoint, and the bytes that the project stores by them. */
async function* wrongTotals({ db, pause }: InvariantLook, project_id: string) {
  let bytes = 0
  for (const webhook_id of await endpointsOf(db, project_id)) {
    const told = await totalsOfOne(db, webhook_id)
    const { stored, ...counted } = await countDeliveries(db, webhook_id, pause)
    bytes += stored
    await pause()
    if (Bun.deepEquals(told, counted)) continue
    const [wrong, right] = [JSON.stringify(told), JSON.stringify(counted)]
    const what = `The totals of the deliveries of an endpoint are ${wrong}, but its rows give ${right}.`
    yield { name: "I5" as const, owner_id: project_id, id: webhook_id, what }
  }
  const told = await total(db, project_id, STORED.deliveries)
  if (bytes !== told)
    yield wrongCounter(project_id, STORED.deliveries, told, `its rows hold ${bytes}`)
}

/** Endpoints that are there, and deleted ones with deliveries. */
async function endpointsOf(db: Reader, project_id: string): Promise<Set<string>> {
  const { webhook_id } = webhookTotals
  const counted = db.selectDistinct({ webhook_id }).from(webhookTotals)
  const there = db.select({ webhook_id: webhooks.id }).from(webhooks)
  const rows = [
    ...(await counted.where(eq(webhookTotals.project_id, project_id))),
    ...(await there.where(eq(webhooks.project_id, project_id))),
  ]
  return new Set(rows.map((row) => row.webhook_id))
}

async function countDeliveries(db: Reader, webhook_id: string, pause: () => Promise<void>) {
  const { id, state, owner } = deliveries
  // Added up, not filtered: a step that looks for open ones would pass all that have ended.
  const sumOf = (each: SQL) => sql<number>`coalesce(sum(${each}), 0)`.mapWith(Number)
  const numberOf = (which: SQL | undefined) => sumOf(sql`CASE WHEN ${which} THEN 1 ELSE 0 END`)
  const sums = {
    deliveries: count(),
    open: numberOf(inArray(state, [READY, LEASED, HELD])),
    held: numberOf(and(eq(state, HELD), isNull(owner))),
    stored: sumOf(storedBytes),
  }
  const all = { deliveries: 0, open: 0, held: 0, stored: 0 }
  const where = eq(deliveries.webhook_id, webhook_id)
  for await (const { rows } of rangesOf(db, id, { where, step: STEP, pause })) {
    const [found] = await db.select(sums).from(deliveries).where(rows)
    all.deliveries += found?.deliveries ?? 0
    all.open += found?.open ?? 0
    all.held += found?.held ?? 0
    all.stored += found?.stored ?? 0
  }
  return all
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
