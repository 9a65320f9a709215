import { millis } from "../../core/time"

/** A delivery that takes longer makes its server a slow one. */
const SLOW_MS = 1_000
const FIRST_GUESS_MS = 50

/** Whose message it is that wants a place. */
export interface Wish {
  is_urgent?: boolean | undefined
  project_id?: string | undefined
  /** What people know the server by, where that is not the key of its lane. */
  name?: string | undefined
}

/** Taken in a lane. */
export interface Place {
  domain: string
  lane: Lane
  wish: Wish
  /** Epoch milliseconds; undefined while the message is still made ready. */
  began: number | undefined
}

/** Waits for a place to become free: with nothing he is told to come later. */
export interface Waiter {
  wish: Wish
  call(place: Place | undefined): void
}

/** What is known of one server, or of all servers of a domain. */
export interface Lane {
  running: Set<Place>
  line: Set<Waiter>
  limit: number
  /** It has taken a message since it is remembered. */
  is_proven: boolean
  average_ms: number
  /** The next time that nobody waits for yet. */
  next_turn: number
  paused_until: number
  slowed_at: number
  pause_ms: number
  calm: number
  /** Sent away since the last crowd. */
  sent_away: number
  reason: string
}

export const newLane = (limit: number): Lane => ({
  running: new Set(),
  line: new Set(),
  limit,
  is_proven: false,
  average_ms: FIRST_GUESS_MS,
  next_turn: 0,
  paused_until: 0,
  slowed_at: 0,
  pause_ms: 0,
  calm: 0,
  sent_away: 0,
  reason: "",
})

/** Milliseconds that a delivery takes: as they did lately, or as long as one takes already. */
export function paceOf({ average_ms, running }: Lane): number {
  let longest = average_ms
  const now = millis()
  for (const { began = now } of running) longest = Math.max(longest, now - began)
  return longest
}

export const isSlow = (lane: Lane): boolean => paceOf(lane) > SLOW_MS

/** Slow, or not known to be anything else: it may turn out to hold what it is given for minutes. */
export const isDoubtful = (lane: Lane): boolean => !lane.is_proven || isSlow(lane)
