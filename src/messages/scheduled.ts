import { and, eq, inArray, isNotNull, isNull, ne, or, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { conflict, fail } from "../core/errors"
import { millis, millisFrom, now } from "../core/time"
import { changeUnclaimed } from "../jobs/claims"
import { RESTORE_REASON } from "../jobs/work-item"
import { wakeUpOf } from "../jobs/work-rows"
import { type RowList, rowById, rowList } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { rescheduled } from "./decided"
import { asTheyStand, isClaimed, type MessageView } from "./message-list"
import { messageRows } from "./pipeline"
import { CANCELLED, cancel as cancelMessage } from "./settle"
import { addressOf, isScheduled, type Message } from "./status-changes"
import { type ChannelName, messages } from "./tables"

export const SCHEDULED_STATUSES = [
  "scheduled",
  "processing",
  "queued",
  "cancelled",
  "failed",
] as const

type ScheduledStatus = (typeof SCHEDULED_STATUSES)[number]

export interface ScheduledScope {
  project_id: string
  channels: ChannelName[]
}

/** Keeps the planner from the indexes by channel and status: few messages of either are scheduled. */
const unindexed = (column: SQLiteColumn): SQL => sql`coalesce(${column}, '')`

const hasStatus = (status: Message["status"]): SQL => eq(unindexed(messages.status), status)

/** What was handed over is scheduled no more, also where it came to nothing after that. Its own record tells the rest. */
const isListed = or(
  hasStatus("queued"),
  and(
    inArray(unindexed(messages.status), ["failed", "cancelled", "expired"]),
    isNull(messages.sent_at),
  ),
)

const ofProject = ({ project_id }: ScheduledScope) =>
  and(eq(messages.project_id, project_id), isNotNull(messages.scheduled_at))

const inChannels = ({ channels }: ScheduledScope) => inArray(unindexed(messages.channel), channels)

const within = (scope: ScheduledScope) => and(ofProject(scope), inChannels(scope))

const missing = () => fail("not_found", "There is no such scheduled message.")

/** Messages with a scheduled time that were not handed over, newest first. */
export function list(
  db: Reader,
  scope: ScheduledScope,
  status: ScheduledStatus | undefined,
): RowList<MessageView> {
  const filter = and(inChannels(scope), isListed, status && matching(db, status))
  const rows = rowList(db, messages, {
    owner: scope.project_id,
    of: ofProject(scope),
    filter,
    missing,
  })
  return {
    ...rows,
    find: (id) => find(db, scope, id),
    async list(window) {
      const { rows: found, end } = await rows.list(window)
      return { rows: await asTheyStand(db, found), end }
    },
  }
}

function matching(db: Reader, status: ScheduledStatus): SQL | undefined {
  const { last_event_type, status_reason } = messages
  if (status === "processing") return and(hasStatus("queued"), isClaimed(db))
  const waits = and(hasStatus("queued"), sql`NOT (${isClaimed(db)})`)
  if (status === "scheduled") return and(waits, isNull(last_event_type))
  if (status === "queued") return and(waits, isNotNull(last_event_type))
  const has_failed = hasStatus("failed")
  if (status === "cancelled") {
    return or(hasStatus("cancelled"), and(has_failed, eq(status_reason, CANCELLED)))
  }
  const other = and(has_failed, or(isNull(status_reason), ne(status_reason, CANCELLED)))
  return or(hasStatus("expired"), other)
}

/** Throws 404 for a message that has no scheduled time, or was handed over. */
export async function find(db: Reader, scope: ScheduledScope, id: string): Promise<MessageView> {
  const row = await rowById(db, messages, id, and(within(scope), isListed))
  const [view] = row ? await asTheyStand(db, [row]) : []
  return view ?? missing()
}

/** The record of contract 20, section 2. One that a restored copy holds also has the reason. */
export function toResponse(message: MessageView) {
  const { id, channel, recipients, address, scheduled_at, created_at, status_reason } = message
  const [first] = recipients
  const to = first ? addressOf(first) : address
  return {
    id,
    channel,
    status: statusOf(message),
    to,
    scheduled_at: scheduled_at ?? "",
    created_at,
    ...(status_reason === RESTORE_REASON && { status_reason }),
  }
}

function statusOf(message: MessageView): ScheduledStatus {
  const { status, status_reason } = message
  if (status === "sending") return "processing"
  if (status === "queued") return isScheduled(message) ? "scheduled" : "queued"
  const was_cancelled = status === CANCELLED || status_reason === CANCELLED
  return was_cancelled ? "cancelled" : "failed"
}

/** Whole seconds; 0 for a message that is due, or that will not be sent. */
export function secondsUntilSend(message: MessageView): number {
  if (!isScheduled(message)) return 0
  const left = millisFrom(message.scheduled_at ?? "") - millis()
  return Math.max(0, Math.ceil(left / 1000))
}

/** Cancels a message that waits for its time. Throws 409 for one that was released. */
export const cancel = (store: Store, scope: ScheduledScope, id: string): Promise<void> =>
  changeScheduled(store, within(scope), id, (tx, message) =>
    cancelMessage(tx, message, "The message was cancelled before it was sent."),
  )

/**
 * Ends a message that waits, scheduled or not: one that is on its way, or settled, is a 409. `find` throws 404;
 * `noun`: what people call it.
 */
export const cancelQueued = (
  store: Store,
  find: (tx: Tx) => Promise<Message>,
  noun: string,
  id: string,
): Promise<void> =>
  changeUnclaimed(store, messageRows, [id], async (tx, [unclaimed]) => {
    const message = await find(tx)
    const status = unclaimed || message.status !== "queued" ? message.status : "sending"
    if (status !== "queued") {
      const text = `The ${noun} is ${status}. Only a queued ${noun} can be cancelled.`
      conflict("not_queued", id, text)
    }
    await cancelMessage(tx, message, `The ${noun} was cancelled before it was sent.`)
  })

/**
 * Gives a message that waits for its time another one; null means now. Quiet hours move it to their end.
 * Throws 404 for a message that the project does not have, and 409 for one that was released.
 */
export const reschedule = (
  store: Store,
  { project_id, channel }: Pick<Message, "project_id" | "channel">,
  id: string,
  scheduled_at: string | null,
): Promise<void> => {
  const ours = and(eq(messages.project_id, project_id), eq(messages.channel, channel))
  return changeScheduled(store, ours, id, async (tx, message) => {
    const wanted = scheduled_at ?? now()
    const decided = await rescheduled(tx, { ...message, scheduled_at: wanted })
    const run_at = decided.scheduled_at ?? wanted
    const moved = { ...decided, run_at, status_reason: null, updated_at: now() }
    await tx
      .update(messages)
      .set(moved)
      .where(and(ours, eq(messages.id, id)))
    tx.afterCommit(wakeUpOf(tx, messageRows.name).wakeUp)
  })
}

/** Changes a message that waits for its time and is not claimed; it stays so until the change is on disk. */
async function changeScheduled(
  store: Store,
  among: SQL | undefined,
  id: string,
  change: (tx: Tx, message: Message) => Promise<void>,
): Promise<void> {
  if (!(await rowById(store.read, messages, id, among))) missing()
  await changeUnclaimed(store, messageRows, [id], async (tx, [unclaimed]) => {
    const message = (await rowById(tx, messages, id, among)) ?? missing()
    if (unclaimed && isScheduled(message)) return change(tx, message)
    const what = `The message does not wait for a scheduled time, because it is ${wordFor(message, unclaimed)}.`
    return conflict("not_scheduled", id, `${what} Only a scheduled message can be changed.`)
  })
}

const wordFor = ({ status, status_reason }: Message, unclaimed: string | undefined) => {
  if (!unclaimed && status === "queued") return "sending"
  return status_reason === CANCELLED ? CANCELLED : status
}
