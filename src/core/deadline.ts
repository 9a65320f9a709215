import { connect, type Socket } from "node:net"
import { monotonic } from "./time"

interface Deadline {
  at: number
  end: () => void
}

/** A deadline comes at most this much late, and never early. */
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

/**
 * Calls `dead` when the host is silent for `connect_ms`, until the returned function is called.
 * `fetch` does not report its connection. So half the time only passes; then a connection of our
 * own asks the host, has the other half for that, and is closed. A refused connection is an answer,
 * too.
 */
export function watchReach(
  address: string,
  port: number,
  connect_ms: number,
  dead: () => void,
): () => void {
  const half = connect_ms / 2
  let socket: Socket | undefined
  const finish = () => {
    drop()
    socket?.destroy()
  }
  let drop = deadline(half, () => {
    socket = connect({ host: address, port })
    socket.once("connect", finish)
    socket.on("error", finish) // for good: a socket without a listener throws
    drop = deadline(half, () => {
      finish()
      dead()
    })
  })
  return finish
}
