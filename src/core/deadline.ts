import { monotonic } from "./time"

interface Deadline {
  at: number
  end: () => void
}

/** So much later than asked for it may come, and never earlier. */
const TICK_MS = 20

const open = new Set<Deadline>()
let ticker: Timer | undefined

/**
 * Calls `end` once after `ms` milliseconds (at most a tick later), unless the returned function was
 * called. One timer serves all: most deadlines of requests are dropped long before they are due,
 * and a timer for each costs more than that.
 */
export function deadline(ms: number, end: () => void): () => void {
  const one = { at: monotonic() + ms, end }
  open.add(one)
  ticker ??= setInterval(tick, TICK_MS)
  return () => void open.delete(one)
}

function tick() {
  const reached = monotonic()
  for (const one of open) {
    if (one.at > reached) continue
    open.delete(one)
    one.end()
  }
  if (open.size > 0) return
  clearInterval(ticker)
  ticker = undefined
}
