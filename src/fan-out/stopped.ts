import { and, desc, eq, isNotNull, lt } from "drizzle-orm"
import { isPast, monotonic, nextTurn } from "../core/time"
import { changeUnclaimed } from "../jobs/claims"
import { enqueue, type JobHandler } from "../jobs/jobs"
import { EXPIRED, loadAll } from "../messages/change"
import { messageRows, type StopLookup } from "../messages/pipeline"
import { CANCELLED, type MessageStop, stopAll } from "../messages/settle"
import { isOpen } from "../messages/status-changes"
import { messages } from "../messages/tables"
import { cached } from "../store/cached"
import { rowById } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { CHUNK } from "./audience-source"
import { fanOutStopped } from "./fan-out"
import { type FanOutRow, fanOuts } from "./tables"

const BY_CANCEL: MessageStop = {
  status: CANCELLED,
  text: "The publish was cancelled before the message was sent.",
}

const BY_EXPIRY: MessageStop = {
  status: EXPIRED,
  text: "The publish expired before the message was sent.",
}

type Stopping = Pick<FanOutRow, "status" | "expires_at">

const stopBy = ({ status, expires_at }: Stopping): MessageStop | undefined => {
  if (status === "cancelled") return BY_CANCEL
  return expires_at !== null && isPast(expires_at) ? BY_EXPIRY : undefined
}

const TRUSTED_MS = 1000

const stoppings = cached<Stopping | undefined>({ tables: ["fan_outs"] })

/** Why messages of a fan-out are not sent any more; undefined while they are. */
export const stopOf: StopLookup = async (db, project, fan_out_id) => {
  const read = async () => {
    const { status, expires_at, id, project_id } = fanOuts
    const rows = db.select({ status, expires_at }).from(fanOuts)
    return (await rows.where(and(eq(id, fan_out_id), eq(project_id, project))))[0]
  }
  const row = await stoppings(db, `${project} ${fan_out_id}`, read, TRUSTED_MS)
  return row && stopBy(row)
}

const LOOK = 500

/** After so long it goes behind the jobs that wait. */
const SLICE_MS = 1000

/**
 * Ends the messages of a cancelled or expired fan-out that wait: for their time, for another attempt, or for
 * their turn. The newest ones go first, because the oldest ones are sent first. An attempt that runs goes on.
 */
export const endWaiting = (store: Store): JobHandler<{ fan_out_id: string; below?: string }> => ({
  async run({ fan_out_id, below: behind }) {
    const row = await rowById(store.read, fanOuts, fan_out_id)
    const stop = row && stopBy(row)
    if (!row || !stop) return {}
    let below = behind
    const until = monotonic() + SLICE_MS
    do {
      const range = await messagesBelow(store.read, row, below, LOOK)
      below = range.at(-1)?.id
      if (below === undefined) return {}
      const waiting = range.filter(({ status }) => isOpen(status)).map(({ id }) => id)
      for (let from = 0; from < waiting.length; from += CHUNK) {
        await endSome(store, waiting.slice(from, from + CHUNK), stop)
      }
      await nextTurn() // requests run between two ranges
    } while (monotonic() < until)
    const payload = { fan_out_id, below }
    const { project_id } = row
    return { done: (tx) => enqueue(tx, fanOutStopped, { payload, project_id }) }
  },
})

const endSome = (store: Store, ids: string[], stop: MessageStop): Promise<void> =>
  changeUnclaimed(store, messageRows, ids, async (tx: Tx, unclaimed) => {
    const found = await loadAll(tx, unclaimed)
    await stopAll(tx, [...found.values()], stop)
  })

/** The messages of a fan-out, newest first, at most `limit`: those before `below`. */
export function messagesBelow(
  db: Reader,
  { project_id, id }: FanOutRow,
  below: string | undefined,
  limit: number,
) {
  const theirs = and(
    eq(messages.project_id, project_id),
    eq(messages.fan_out_id, id),
    isNotNull(messages.fan_out_id),
    below === undefined ? undefined : lt(messages.id, below),
  )
  const rows = db.select({ id: messages.id, status: messages.status }).from(messages)
  return rows.where(theirs).orderBy(desc(messages.id)).limit(limit)
}
