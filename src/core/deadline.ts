import { monotonic } from "./time"

/** A deadline comes at most this much late, and never early. */
const TICK_MS = 20

const deadlines = new Set<{ at: number; end: () => void }>()
let ticker: Timer | undefined

/**
 * Calls `end` once after `ms` milliseconds (at most a tick later), unless the returned function was
 * called. One timer serves all: most deadlines are dropped long before they are due, and a timer for
 * each costs more than that. A deadline keeps no process alive.
 */
export function deadline(ms: number, end: () => void): () => void {
  const one = { at: monotonic() + ms, end }
  deadlines.add(one)
  ticker ??= setInterval(tick, TICK_MS).unref()
  return () => void deadlines.delete(one)
}

function tick() {
  const reached = monotonic()
  const due = [...deadlines].filter(({ at }) => at <= reached)
  // After a stall several are due at once. The end of one may drop a later one.
  for (const one of due.sort((first, second) => first.at - second.at)) {
    if (deadlines.delete(one)) one.end()
  }
  if (deadlines.size > 0) return
  clearInterval(ticker)
  ticker = undefined
}
