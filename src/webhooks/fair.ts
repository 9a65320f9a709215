import { millis, millisFrom } from "../core/time"
import type { ClaimRequest } from "./queue"
import type { OpenEndpoint } from "./walk"

/** One that hangs holds so many slots at first, half with each failure in a row, and one at last. */
const PER_ENDPOINT = 10

export interface SlotUsage {
  /** Of all. */
  concurrency: number
  /** SlotUsage, of all and of each endpoint. */
  running: number
  busy: ReadonlyMap<string, number>
}

/**
 * Shares the free slots among the endpoints that have work due, so that none waits for another's
 * backlog. `due`: when the next one becomes due, in milliseconds since 1970. `more`: a wish was cut
 * to its share, and there may be slots left for its rest. `wished`: how many all of them want.
 */
export function shareOut(waiting: readonly OpenEndpoint[], slots: SlotUsage) {
  let due = Number.POSITIVE_INFINITY
  const ready: (OpenEndpoint & { room: number })[] = []
  for (const one of waiting) {
    const at = Math.max(Number(one.due ?? Number.POSITIVE_INFINITY), slotOf(one))
    if (at > millis()) {
      due = Math.min(due, at)
      continue
    }
    const room = roomOf(one, slots)
    if (room > 0) ready.push({ ...one, room })
  }
  const free = slots.concurrency - slots.running
  const share = Math.max(1, Math.floor(free / Math.max(1, ready.length)))
  const wishes = ready.slice(0, free).map(
    (one): ClaimRequest => ({
      webhook_id: one.webhook_id,
      room: Math.min(one.room, share),
      rate_limit: one.rate_limit,
      only_by_hand: one.status !== "active",
    }),
  )
  const wished = wishes.reduce((sum, { room }) => sum + room, 0)
  return { wishes, wished, due, more: ready.some(({ room }) => room > share) }
}

const slotOf = ({ next_slot_at, rate_limit }: OpenEndpoint) =>
  next_slot_at === null || rate_limit === null ? 0 : millisFrom(next_slot_at)

/** When half of the slots are taken, something is slow: then nobody gets a second one. */
function roomOf({ webhook_id, consecutive_failures }: OpenEndpoint, slots: SlotUsage): number {
  const crowded = slots.running > slots.concurrency / 2
  const trusted = Math.floor(PER_ENDPOINT / 2 ** (consecutive_failures ?? 0))
  const most = crowded ? 1 : Math.max(1, trusted)
  return most - (slots.busy.get(webhook_id) ?? 0)
}
