import { connect, type Socket } from "node:net"
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

/**
 * Says `dead` when the host keeps silent for `connect_ms`, until the returned function is called.
 * `fetch` does not tell when it is connected, so half the time is only waited; then a connection of
 * our own asks whether anybody is there, has the other half for it, and is closed. A refusal is an
 * answer, too: whether the request succeeds is not judged here.
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
