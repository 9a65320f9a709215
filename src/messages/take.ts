import { and, eq, inArray, sql } from "drizzle-orm"
import { millis, monotonic, now } from "../core/time"
import { type ClaimedJob, isHeld } from "../jobs/queue"
import { jobs } from "../jobs/tables"
import { idList, isAmong } from "../store/id-filters"
import { prepared } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { announce, isOpen, type Message } from "./facts"
import { messages, type Status } from "./tables"

/** A message as it was when its job was taken, which is not true for ever. */
export interface Taken {
  message: Message
  at: Moment
}

/** By both clocks: the one may be set, and the other stands still while the machine sleeps. */
interface Moment {
  epoch_ms: number
  monotonic_ms: number
}

/**
 * For so long nothing is asked again before the attempt: far less than a lease lasts. Work that
 * waited longer may have been taken over, or ended, meanwhile.
 */
const FRESH_MILLISECONDS = 1000

/** Whether what was taken needs not be asked for again. A clock that was set back says no. */
export function isFresh({ at }: Taken): boolean {
  const [by_clock, lasted] = [millis() - at.epoch_ms, monotonic() - at.monotonic_ms]
  return by_clock >= 0 && Math.max(by_clock, lasted) < FRESH_MILLISECONDS
}

/**
 * Marks the messages of jobs that were just claimed, all with one statement, and returns them by
 * their ids. What is settled or gone is left out.
 */
export async function takeAll(tx: Tx, claimed: ClaimedJob[]): Promise<Map<string, Taken>> {
  const taken = new Map<string, Taken>()
  const at = { epoch_ms: millis(), monotonic_ms: monotonic() }
  const ids = claimed.map(({ id }) => id)
  for (const message of await markAll(tx, { ids, updated_at: now() })) {
    taken.set(message.id, { message, at })
    announce(tx, message, null)
  }
  for (const { id, attempt } of claimed) {
    if (taken.has(id)) continue
    const message = await countAlone(tx, id, attempt)
    if (message) taken.set(id, { message, at })
  }
  return taken
}

/** As `takeAll` for one job, unless it is somebody else's by now. */
export const takeAgain = (store: Store, job: ClaimedJob): Promise<Taken | undefined> =>
  store.tx(async (tx) => {
    if (!(await isHeld(tx, job))) return undefined
    return (await takeAll(tx, [job])).get(job.id)
  })

/** The first recipient is settled, and with him the status; the others have their attempt. */
async function countAlone(tx: Tx, id: string, attempts: number): Promise<Message | undefined> {
  const [message] = await tx.select().from(messages).where(eq(messages.id, id))
  if (!message?.recipients.some(({ status }) => isOpen(status))) return undefined
  const change = { attempts, next_attempt_at: null, updated_at: now() }
  const [counted] = await tx.update(messages).set(change).where(eq(messages.id, id)).returning()
  return counted
}

const { id, status, updated_at } = messages

const OPEN: Status[] = ["queued", "sending"]

/** The job carries the message's id, and counts the attempts. */
const attempts = sql`(SELECT ${jobs.attempt} FROM ${jobs} WHERE ${jobs.id} = ${messages.id})`

const markAll = prepared({ ids: idList, updated_at }, (tx: Tx, slot) =>
  tx
    .update(messages)
    .set({ status: "sending", next_attempt_at: null, attempts, updated_at: slot.updated_at })
    .where(and(isAmong(id, slot.ids), inArray(status, OPEN)))
    .returning(),
)
