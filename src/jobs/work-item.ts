import { secondsFromNow } from "../core/time"
import type { Tx } from "../store/store"

/** The states of work. `owner` is the claiming node of LEASED, the hold of HELD, else empty. */
export const READY = 0
export const LEASED = 1
export const DEAD = 2
export const HELD = 3
export const OVER = 4

/** Nothing is done any more in these states. */
export const ENDED = [OVER, DEAD]

export const hasEnded = ({ state }: { state: number }): boolean => ENDED.includes(state)

/**
 * The hold of what was open in a copy of the database that was started again: the original may have
 * sent it. It waits until an operator resumes or drops it.
 */
export const RESTORE_HOLD = "held_after_restore"

export const RESTORE_REASON = `This was open in a restored copy, so it may have been sent before. It waits until an operator resumes or drops ${RESTORE_HOLD}.`

/** Lower is sooner. A level waits for no other level's future work: one seek each. */
export const PRIORITIES = { urgent: 0, normal: 1, bulk: 2 } as const

/** Seconds until the next attempt, or `undefined` to give up. Attempts count from 1. */
export type RetrySchedule = (attempt: number, age_seconds: number) => number | undefined

/** Of a mail that tells people something: it is no news any more after a day. */
export const noticeSchedule: RetrySchedule = (attempt, age_seconds) =>
  age_seconds > 86_400 ? undefined : Math.min(60 * attempt, 3600)

/** Why work is not done now, though it is due. It is no attempt, so it uses none up. */
export interface Hold {
  /** When to look again, also where the pause `by` lasts longer; null: when that one ends. */
  until: string | null
  reason: string
  /** The queue whose pause it is, or another named hold. */
  by?: string
  /** It was an attempt after all, and is counted as one. */
  was_tried?: true
}

/**
 * The work cannot be tried at the moment, for a reason of our own: thrown before any attempt. It
 * waits, which counts as no attempt.
 */
export class DeferredError extends Error {
  override readonly name = "DeferredError"
  /** Null: until the pause `by` ends. Beside `by`: at most so long. */
  readonly seconds: number | null
  readonly by: string | undefined

  constructor(reason: string, seconds: number | null, by?: string) {
    super(reason)
    this.seconds = seconds
    this.by = by
  }
}

export function holdFor({ message: reason, seconds, by }: DeferredError): Hold {
  const until = seconds === null ? null : secondsFromNow(seconds)
  return { until, reason, ...(by !== undefined && { by }) }
}

export interface WorkColumns {
  state: number
  run_at: string
  attempt: number
  owner: string | null
  lease_until: string | null
}

export interface WorkRow extends WorkColumns {
  id: string
  created_at: string
  /** When it was wanted, in tables that know this: later than it was made. */
  scheduled_at?: string | null
}

/** What `run` answers. Without `retry` and `hold` the work is over. */
export interface WorkResult<End = never> {
  /** What came of it, for the table's `settle`. */
  end?: End
  /** The attempt failed. The reason is stored; the schedule says when the next one is, or that there is none. */
  retry?: string
  schedule?: RetrySchedule
  hold?: Hold
  /** Written with the result, in a transaction of its own. */
  done?: (tx: Tx) => Promise<void>
  /** The slot is free for other work before the result is on disk. */
  frees_slot?: boolean
  /** Called once when the result is on disk, or after the last try to write it. */
  settled?: () => void
}

export interface Settled<Row extends WorkRow, End> {
  row: Row
  end: End | undefined
  /** The work columns as they shall be: `settle` writes these, or others of its own choice. */
  after: WorkColumns
  /** Why it waits or is dead; null where it is over. */
  reason: string | null
  /** The row is as a read would give it, but for the work columns. */
  is_current?: boolean
}
