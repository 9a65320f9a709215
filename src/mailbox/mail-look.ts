import { monotonic } from "../core/time"
import type { Workers } from "../core/workers"
import { unavailable } from "../http/envelope"
import { OwnerTurns } from "../lib/semaphore"

/** The other threads stay free for mail that is sent, however heavy the mails are that people look at. */
const AT_ONCE = 1
/** Of one project, and of all of them: each holds its mail. */
const MOST_WAITING = 50
const MOST_WAITING_IN_ALL = 100

/** As long as a request lasts: then nobody waits for the answer any more. */
const LONGEST_WAIT_MS = 30_000

const turns = new OwnerTurns(AT_ONCE, { of_one: MOST_WAITING, of_all: MOST_WAITING_IN_ALL })

const DEADLINE_MS = 10_000

/**
 * Runs a task that looks into a kept mail, within ten seconds: one at a time on this node, and projects take turns.
 * `input` gets a copy of the mail, which is made when its turn has come, so that a look that waits holds none. Throws
 * as `Workers.run`, and 503 `service_unavailable` where 50 others of the project or 100 in all wait already, or where
 * its turn comes later than in 30 seconds.
 */
export async function lookInto<Result>(
  workers: Workers,
  { project_id, raw }: { project_id: string; raw: Uint8Array },
  task: string,
  input: (raw: Uint8Array) => unknown,
): Promise<Result> {
  const leave = await nextTurn(project_id)
  try {
    const copy = new Uint8Array(raw)
    const options = { deadline_ms: DEADLINE_MS, transfer: [copy.buffer] }
    return await workers.run<Result>(task, input(copy), options)
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
