import { monotonic } from "../core/time"
import type { Workers } from "../core/workers"
import { unavailable } from "../http/envelope"
import { Semaphore } from "../lib/semaphore"

/** The other threads stay free for mail that is sent, however heavy the mails are that people look at. */
const AT_ONCE = 1
const MOST_WAITING = 100

/** As long as a request lasts: then nobody waits for the answer any more. */
const LONGEST_WAIT_MS = 30_000

const turns = new Semaphore(AT_ONCE)
let waiting = 0

/**
 * Runs a task that looks into a kept mail: one at a time on this node. Throws as `Workers.run`, and 503
 * `service_unavailable` where 100 others wait already, or where its turn comes later than in 30 seconds.
 */
export async function lookInto<Result>(
  workers: Workers,
  ...[task, input, options]: Parameters<Workers["run"]>
): Promise<Result> {
  const leave = turns.tryAcquire() ?? (await nextTurn())
  try {
    return await workers.run<Result>(task, input, options)
  } finally {
    leave()
  }
}

async function nextTurn(): Promise<() => void> {
  if (waiting >= MOST_WAITING) throw unavailable(BUSY, "busy")
  waiting += 1
  const asked_at = monotonic()
  const leave = await turns.acquire()
  waiting -= 1
  if (monotonic() - asked_at <= LONGEST_WAIT_MS) return leave
  leave()
  throw unavailable(BUSY, "busy")
}

const BUSY = "Too many mails of the mailbox are looked at. Try again in a few seconds."
