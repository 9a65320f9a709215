import { getTableColumns } from "drizzle-orm"
import { log } from "../core/log"
import { millis, now } from "../core/time"
import type { EventDetail } from "../events/tables"
import { LEASED, READY } from "../jobs/work-item"
import { perStore } from "../store/cached"
import type { Reader, Tx } from "../store/store"
import { type Addressed, type ChannelName, messages, type Status } from "./tables"

export type Message = typeof messages.$inferSelect

const {
  priority,
  envelope,
  batch_id,
  stream,
  api_key_id,
  idempotency_key,
  rfc_message_id,
  thread_id,
  subject_key,
  stored_bytes,
  updated_at,
  ...needed
} = getTableColumns(messages)

export const tracked = needed

export type Tracked = Pick<Message, keyof typeof tracked>

/** The `source` of what the instance itself sends, which no request can name. */
export const OWN_SOURCE = "system"

export interface StatusChange {
  type: string
  /** Its address: of an email the mailbox, of an SMS the number, of a push message the device. */
  address: string
  bounce_type?: "Permanent" | "Transient"
  bounce_subtype?: string | null
  complaint_feedback_type?: string
  error?: { code: string; message: string }
  detail?: EventDetail | null
  /** When it became true; without it, when it is written. */
  at?: string
  /** Beside `failed`: the recipient's server deferred the message until it was given up. */
  is_soft?: true
  was_told?: true
}

/** Whether no attempt has ended the message yet: its recipient may be tried, or tried again. */
export const isOpen = (status: Status) => status === "queued" || status === "sending"

/**
 * Since when the message is wanted: its scheduled time, or when it was accepted. Ages, the Date header
 * and the time of its signature count from here.
 */
export const wantedSince = ({
  scheduled_at,
  created_at,
}: Pick<Message, "scheduled_at" | "created_at">): string => scheduled_at ?? created_at

/**
 * Whether the message waits for its scheduled time, and no attempt has begun: its first event tells
 * that it is released. A claimed one is about to be released.
 */
export const isScheduled = ({
  status,
  scheduled_at,
  last_event_type,
}: Pick<Message, "status" | "scheduled_at" | "last_event_type">): boolean =>
  isOpen(status) && scheduled_at !== null && last_event_type === null

const { id, project_id, channel, status, status_reason, address, recipients } = needed
const { state, run_at, attempt, scheduled_at, created_at } = needed

/** The columns that listeners need; rows have more. */
export const ANNOUNCED = {
  ...{ id, project_id, channel, status, status_reason, address, recipients },
  ...{ state, run_at, attempt, scheduled_at, created_at },
}

type Announced = Pick<Message, keyof typeof ANNOUNCED>

type Timed = "state" | "run_at" | "attempt" | "status_reason" | "recipients" | "scheduled_at"

/** When the message is tried again, where an attempt, a deferral or its sender has said so. */
export function nextAttemptAt(message: Pick<Announced, Timed>): string | null {
  const { state, run_at, attempt, status_reason, recipients, scheduled_at } = message
  const is_new = attempt === 0 && status_reason === null && scheduled_at === null
  if (state !== READY || is_new) return null
  return recipients.some(({ status }) => isOpen(status)) ? run_at : null
}

/** A change of a message's status that is on disk, for listeners: `belfry up`, the monitor. */
export interface MessageActivity {
  id: string
  project_id: string
  channel: ChannelName
  status: Status
  status_reason: string | null
  recipient: string
  at: string
  event_type: string | null
  elapsed_ms: number
  next_attempt_at: string | null
}

const watchersOf = perStore(() => new Set<(activity: MessageActivity) => void>())

/**
 * Calls `watcher` after each commit of the store that changed a status, until the returned function is
 * called. An error of the watcher is logged, never thrown.
 */
export function watch(db: Reader, watcher: (activity: MessageActivity) => void): () => void {
  const watchers = watchersOf(db)
  watchers.add(watcher)
  return () => void watchers.delete(watcher)
}

export function announce(tx: Tx, message: Announced, event_type: string | null) {
  if (watchersOf(tx).size === 0) return
  const told = activityOf(message, event_type)
  tx.afterCommit(() => notifyWatchers(tx, told))
}

/** Tells the watchers of claims, or of their release: nothing is written of these. */
export function announceStatus(db: Reader, messages: Announced[], status: "queued" | "sending") {
  if (watchersOf(db).size === 0) return
  for (const message of messages) {
    if (!isOpen(message.status)) continue
    const state = status === "sending" ? LEASED : READY
    notifyWatchers(db, activityOf({ ...message, status, state }, null))
  }
}

function activityOf(message: Announced, event_type: string | null): MessageActivity {
  const { id, project_id, channel, status, status_reason, address: recipient } = message
  const next_attempt_at = nextAttemptAt(message)
  const elapsed_ms = Math.max(0, millis() - Date.parse(wantedSince(message)))
  const told = { id, project_id, channel, status, status_reason, recipient, next_attempt_at }
  return { ...told, at: now(), event_type, elapsed_ms }
}

export function notifyWatchers(db: Reader, activity: MessageActivity) {
  for (const watcher of watchersOf(db)) {
    try {
      watcher(activity)
    } catch (error) {
      log.error("a watcher of messages failed", { error })
    }
  }
}

export const addressOf = ({ email: address }: Addressed): string => address
