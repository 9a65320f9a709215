import { and, asc, eq, inArray, isNotNull, lte, type SQL, sql } from "drizzle-orm"
import { madeAt } from "../core/ids"
import { isoFrom, millis, now } from "../core/time"
import { PUSH_PROVIDERS } from "../devices/tables"
import { pauseReason, providerHold, underHold } from "../jobs/holds"
import { pausedQueues } from "../jobs/tables"
import { HELD, RESTORE_HOLD, RESTORE_REASON } from "../jobs/work-item"
import { isHeld, isLeased, isReady } from "../jobs/work-rows"
import { isClaimed } from "../messages/message-list"
import { messageRows } from "../messages/pipeline"
import {
  isScheduled,
  type Message,
  nextAttemptAt,
  settledCounters,
  wantedSince,
} from "../messages/status-changes"
import { messages } from "../messages/tables"
import { kindOf } from "../providers/provider"
import { refusalFor, waitingReason } from "../providers/routing"
import { heldIn, holdName, isComplaintHold } from "../reputation/gate"
import { totals } from "../store/counters"
import { readHeavy } from "../store/heavy-reads"
import type { Reader, Select } from "../store/store"
import { deliveryRows, isHeldByEndpoint, isInFlight, WEBHOOKS } from "../webhooks/delivery-rows"
import { totalsOf } from "../webhooks/endpoint-counts"
import { deliveries, webhooks } from "../webhooks/tables"
import { byDomain, byState, counted, countedOthers, type OpenWork, type WorkState } from "./lines"

/** Rows of each kind that are looked at one by one; of a longer queue the rest is only counted. */
const MOST_ROWS = 500

/**
 * A project's open work: by queue, state and reason, and of its mail by the recipient's domain. Where it is
 * `incomplete`, the counts of the states are those of all work, and only the oldest mail was asked for its
 * reason and its domain.
 */
export async function openWork(db: Reader, project_id: string) {
  const open = and(eq(messages.project_id, project_id), eq(messages.status, "queued"))
  const end = await endOf(db, open)
  const email = await openMessages(db, { project_id, channel: "email", open, end })
  const sms = await openMessages(db, { project_id, channel: "sms", open, end })
  const push = await openMessages(db, { project_id, channel: "push", open, end })
  const hooks = await openDeliveries(db, project_id)
  const by_state = [
    ...byState("email", email),
    ...byState("sms", sms),
    ...byState("push", push),
    ...byState("webhooks", hooks),
  ]
  const incomplete = [...email, ...sms, ...push].some(({ count }) => count !== undefined)
  return { work: { by_state, by_domain: byDomain(email) }, incomplete }
}

interface OpenOf {
  project_id: string
  channel: "email" | "sms" | "push"
  open: SQL | undefined
  /** The last message of any channel that is looked at. */
  end: string | undefined
}

async function openMessages(db: Reader, of: OpenOf): Promise<OpenWork[]> {
  const { project_id, channel, open, end } = of
  const ours = and(open, eq(messages.channel, channel))
  const look = (which: SQL | undefined) =>
    db
      .select(WAITING_MESSAGE)
      .from(messages)
      .where(which)
      .orderBy(asc(messages.id))
      .limit(MOST_ROWS)
  const running = await look(and(ours, isClaimed(db)))
  const bound = end === undefined ? undefined : lte(messages.id, end)
  const others = await look(and(ours, bound, sql`NOT (${isClaimed(db)})`))
  const beyond = end === undefined ? undefined : behind(end)
  const all = beyond ? (await openTotal(db, of)) - running.length : others.length
  const held: HeldMessages[] = []
  for (const hold of await holdsOf(db, of))
    held.push(await heldMessages(db, project_id, hold, others, beyond))
  const left = new Set(held.flatMap(({ mails }) => mails))
  const waiting = others.filter((row) => !left.has(row)).map((row) => messageWork(row, "waiting"))
  const more = held.reduce((rest, one) => rest - one.more, all - others.length)
  return [
    ...running.map((row) => messageWork(row, "running")),
    ...waiting,
    ...countedOthers(more, waiting.at(-1) ?? beyond),
    ...held.flatMap(({ work }) => work),
  ]
}

/** Mail under one hold: what was looked at, and how many more there are. */
interface HeldMessages {
  mails: WaitingMessage[]
  work: OpenWork[]
  more: number
}

/** Work behind the last message that was looked at, of which no more is known than that it is not older. */
const behind = (end: string): OpenWork => ({
  state: "waiting",
  reason: null,
  since: isoFrom(madeAt(end) ?? millis()),
  next_attempt_at: null,
  lease_until: null,
})

/** The last message that is looked at; undefined where all are. The index alone is walked. */
async function endOf(db: Reader, open: SQL | undefined): Promise<string | undefined> {
  const ids = db.select({ id: messages.id }).from(messages).where(open).orderBy(asc(messages.id))
  const [last, next] = await ids.limit(2).offset(MOST_ROWS - 1)
  return next && last?.id
}

async function openTotal(db: Reader, { project_id, channel }: OpenOf): Promise<number> {
  const settled = settledCounters(channel)
  const counted = await totals(db, project_id, [channel, ...settled])
  return settled.reduce((open, name) => open - (counted.get(name) ?? 0), counted.get(channel) ?? 0)
}

/** Counts rows of a hold, of which there may be as many as messages. */
async function countIn(
  db: Reader,
  project_id: string,
  table: typeof messages | typeof deliveries,
  which: SQL | undefined,
): Promise<number> {
  const n = sql<number>`count(*)`.mapWith(Number)
  const [row] = await readHeavy(db, project_id, (read) =>
    read((thread) => thread.select({ n }).from(table).where(which)),
  )
  return row?.n ?? 0
}

const { id, status, status_reason, created_at, address, recipients } = messages
const { state, run_at, attempt, owner, lease_until } = messages
const { scheduled_at, last_event_type } = messages

const WAITING_MESSAGE = {
  ...{ id, status, status_reason, created_at, address, recipients },
  ...{ state, run_at, attempt, owner, lease_until },
  ...{ scheduled_at, last_event_type },
}

type WaitingMessage = Pick<Message, keyof typeof WAITING_MESSAGE>

interface MessageHold {
  isOf: (owner: string | null) => boolean
  /** All of it. */
  rows: () => Promise<SQL | undefined>
  /** What all of it waits for, where that is known. */
  wait: Partial<OpenWork>
  /** It may hold mail although none was found among what was looked at. */
  is_certain?: boolean
}

/** A provider that refuses our login, complaints about a tag or template, and a restored copy. */
async function holdsOf(db: Reader, { project_id, channel }: OpenOf): Promise<MessageHold[]> {
  const ours = and(eq(messages.project_id, project_id), eq(messages.channel, channel))
  const complaints: MessageHold = {
    isOf: isComplaintHold,
    rows: async () => {
      const names = (await heldIn(db, project_id)).map(({ id }) => holdName(id))
      return names.length === 0 ? undefined : and(isHeld, inArray(messages.owner, names))
    },
    wait: {},
  }
  const restore: MessageHold = {
    isOf: (owner) => owner === RESTORE_HOLD,
    rows: async () => and(ours, underHold(messageRows, RESTORE_HOLD)),
    wait: { reason: RESTORE_REASON },
  }
  const providers: MessageHold[] = []
  for (const service of channel === "push" ? PUSH_PROVIDERS : [undefined]) {
    const refusal = await refusalFor(db, kindOf(channel), project_id, service)
    if (!refusal) continue
    const by = providerHold(project_id, channel, service)
    const reason = waitingReason(refusal)
    providers.push({
      isOf: (owner) => owner === by,
      rows: async () => underHold(messageRows, by),
      wait: { state: "held", reason, next_attempt_at: refusal.next_probe_at },
      is_certain: true,
    })
  }
  return [...providers, complaints, restore]
}

async function heldMessages(
  db: Reader,
  project_id: string,
  { isOf, rows, wait, is_certain = false }: MessageHold,
  looked_at: WaitingMessage[],
  beyond: OpenWork | undefined,
): Promise<HeldMessages> {
  const mails = looked_at.filter((row) => row.state === HELD && isOf(row.owner))
  const work = mails.map((row) => ({ ...messageWork(row, "held"), ...wait }))
  const all = beyond && (is_certain || mails.length > 0) ? await rows() : undefined
  const number = all ? await countIn(db, project_id, messages, all) : 0
  const more = Math.max(0, number - mails.length)
  const last = work.at(-1) ?? (beyond && { ...beyond, ...wait })
  return { mails, work: [...work, ...counted(more, last)], more }
}

/** Mail that waits for the time that its sender chose holds nothing up, so no domain counts it. */
const SCHEDULED = "scheduled for a later time"

function messageWork(row: WaitingMessage, state: WorkState): OpenWork {
  const work = dueWork(row, state)
  if (state !== "waiting" || !isScheduled(row) || row.run_at <= now()) return work
  const { domain: _, ...timed } = work
  return { ...timed, reason: row.status_reason ?? SCHEDULED }
}

const dueWork = (row: WaitingMessage, state: WorkState): OpenWork => ({
  state: state === "waiting" && row.status_reason !== null ? "retrying" : state,
  reason: row.status_reason,
  since: wantedSince(row),
  next_attempt_at: state === "running" ? null : nextAttemptAt(row),
  lease_until: state === "running" ? row.lease_until : null,
  ...(row.address.includes("@") && { domain: row.address.slice(row.address.lastIndexOf("@") + 1) }),
})

const { webhook_id } = deliveries

const OPEN_DELIVERY = {
  id: deliveries.id,
  webhook_id,
  state: deliveries.state,
  status: deliveries.status,
  last_error: deliveries.last_error,
  created_at: deliveries.created_at,
  run_at: deliveries.run_at,
  lease_until: deliveries.lease_until,
}

type DeliveryRow = Pick<typeof deliveries.$inferSelect, keyof typeof OPEN_DELIVERY>

async function openDeliveries(db: Reader, project_id: string): Promise<OpenWork[]> {
  const endpoints = await db
    .select({ id: webhooks.id, reason: webhooks.disabled_reason })
    .from(webhooks)
    .where(eq(webhooks.project_id, project_id))
  if (endpoints.length === 0) return []
  const ids = endpoints.map(({ id }) => id)
  const sums = await totalsOf(db, ids)
  const sum = (some: string[], name: "open" | "held") =>
    some.reduce((all, id) => all + (sums.get(id)?.[name] ?? 0), 0)
  const look = (some: string[], which: SQL | undefined) => (reader: Reader) =>
    reader
      .select(OPEN_DELIVERY)
      .from(deliveries)
      .where(and(inArray(webhook_id, some), which))
      .limit(MOST_ROWS)
  const pause = await pauseOf(db, WEBHOOKS)
  const restored = await restoredDeliveries(db, project_id, look(ids, RESTORED))
  // Where this process is alone, what it attempts is among the rows that are ready.
  const leased = db.isAlone
    ? []
    : await look(ids, and(isLeased, isNotNull(deliveries.lease_until)))(db)
  const ready = await look(ids, isReady)(db)
  const all = sum(ids, "open") - sum(ids, "held") - restored.all - leased.length
  const waiting = ready.map((row) => {
    const running = isInFlight(db, row)
    const one = deliveryWork(row, running, null)
    return pause !== null && !running ? { ...one, reason: pause } : one
  })
  const from_copy = restored.rows.map((row) => deliveryWork(row, false, RESTORE_REASON))
  const found = [
    ...waiting,
    ...(ready.length < MOST_ROWS ? [] : countedOthers(all - ready.length, waiting.at(-1))),
    ...leased.map((row) => deliveryWork(row, true, null)),
    ...from_copy,
    ...counted(restored.all - from_copy.length, from_copy.at(-1)),
  ]
  for (const [reason, list] of Map.groupBy(endpoints, (endpoint) => endpoint.reason)) {
    const theirs = list.map(({ id }) => id).filter((id) => sum([id], "held") > 0)
    if (theirs.length === 0) continue
    const held = await look(theirs, isHeldByEndpoint)(db)
    const rows = held.map((row) => deliveryWork(row, false, reason))
    const more = rows.length < MOST_ROWS ? 0 : sum(theirs, "held") - rows.length
    found.push(...rows, ...counted(more, rows.at(-1)))
  }
  return found
}

const RESTORED = underHold(deliveryRows, RESTORE_HOLD)

/** Those of other projects stand between them, so they are looked for elsewhere, and only after a restore. */
async function restoredDeliveries(
  db: Reader,
  project_id: string,
  look: (reader: Reader) => Select<DeliveryRow>,
): Promise<{ rows: DeliveryRow[]; all: number }> {
  if ((await pauseOf(db, RESTORE_HOLD)) === null) return { rows: [], all: 0 }
  const rows = await readHeavy(db, project_id, (read) => read(look))
  if (rows.length < MOST_ROWS) return { rows, all: rows.length }
  const ours = and(eq(deliveries.project_id, project_id), RESTORED)
  return { rows, all: await countIn(db, project_id, deliveries, ours) }
}

async function pauseOf(db: Reader, queue: string): Promise<string | null> {
  const rows = db.select({ queue: pausedQueues.queue }).from(pausedQueues)
  const [paused] = await rows.where(eq(pausedQueues.queue, queue))
  return paused ? pauseReason(queue) : null
}

function deliveryWork(
  { status, last_error, created_at: since, run_at, lease_until }: DeliveryRow,
  running: boolean,
  held_reason: string | null,
): OpenWork {
  if (running) return { since, next_attempt_at: null, lease_until, state: "running", reason: null }
  const work = { since, lease_until: null }
  if (status === "held") {
    return { ...work, next_attempt_at: null, state: "held", reason: held_reason }
  }
  const state = status === "failed" ? "retrying" : "waiting"
  return { ...work, next_attempt_at: run_at, state, reason: last_error }
}
