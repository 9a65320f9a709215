import { monotonic } from "../core/time"
import type { Workers } from "../core/workers"
import { unavailable } from "../http/envelope"
import { OwnerTurns } from "../lib/owner-turns"

/** The other threads stay free for mail that is sent, however heavy the mails are that people look at. */
const AT_ONCE = 1
const MOST_WAITING = 100

/** As long as a request lasts: then nobody waits for the answer any more. */
const LONGEST_WAIT_MS = 30_000

const turns = new OwnerTurns(AT_ONCE, MOST_WAITING)

/**
 * Runs a task that looks into a kept mail of a project: one at a time on this node, and projects take turns.
 * Throws as `Workers.run`, and 503 `service_unavailable` where 100 others of the project wait already, or where
 * its turn comes later than in 30 seconds.
 */
export async function lookInto<Result>(
  workers: Workers,
  project_id: string,
  ...[task, input, options]: Parameters<Workers["run"]>
): Promise<Result> {
  const leave = await nextTurn(project_id)
  try {
    return await workers.run<Result>(task, input, options)
  } finally {
    leave()
  }
}

async function nextTurn(project_id: string): Promise<() => void> {
  const asked_at = monotonic()
  const leave = await turns.acquire(project_id)
  if (!leave) throw unavailable(BUSY, "busy")
  if (monotonic() - asked_at <= LONGEST_WAIT_MS) return leave
  leave()
  throw unavailable(BUSY, "busy")
}

const BUSY = "Too many mails of the mailbox are looked at. Try again in a few seconds."
