import { engine } from "../store/columns"
import { onChanged } from "../store/group-commit"
import type { Claimed } from "./claimed"
import { isInHand } from "./in-hand"

const FIRST = 8
const MOST = 128
const MOST_OF_ALL = 20_000

interface List {
  rows: Claimed[]
  /** So many more than there is room for the next look asks for. */
  extra: number
}

/** How often everything was forgotten: what is being read meanwhile may be old. */
let forgotten = 0
const lists = new Map<string, List>()
let count = 0

if (engine === "sqlite") {
  onChanged(["deliveries"], () => {
    forgotten += 1
    count = 0
    lists.clear()
  })
}

/**
 * What a look found due beyond what there was room for, by endpoint and in order, so that a backlog
 * is read once. Only where one process holds the file: whatever changes a delivery makes it
 * forgotten, but for new ones, which come after these, and for what happens to those in hand.
 */
export const ahead = {
  /** As it is before a look: `keep` must hear it. */
  get forgotten(): number {
    return forgotten
  },

  /** Takes the next that are due, at most `room`. */
  take(webhook_id: string, room: number): Claimed[] {
    const list = lists.get(webhook_id)
    if (!list) return []
    const some = list.rows.splice(0, room)
    count -= some.length
    return some.filter(({ id }) => !isInHand(id))
  },

  /** How many more than it needs a look should ask for: with each that was not in vain, twice. */
  extraFor: (webhook_id: string): number => lists.get(webhook_id)?.extra ?? 0,

  /**
   * Keeps what a look found beyond its need, unless all was forgotten `since`. `is_all`: nothing
   * else is due.
   */
  keep(webhook_id: string, found: Claimed[], is_all: boolean, since: number) {
    if (since !== forgotten) return
    const { rows = [], extra = 0 } = lists.get(webhook_id) ?? {}
    count -= rows.length
    // Envelopes of their own may be large; those of events are read when they leave.
    const large = found.findIndex(({ body }) => body !== null)
    const small = large < 0 ? found : found.slice(0, large)
    const kept = count + small.length > MOST_OF_ALL ? [] : small
    count += kept.length
    if (is_all && kept.length === 0) lists.delete(webhook_id)
    else lists.set(webhook_id, { rows: kept, extra: nextExtra(extra, found, kept) })
  },
}

const nextExtra = (extra: number, found: Claimed[], kept: Claimed[]) =>
  kept.length < found.length ? 0 : Math.min(MOST, Math.max(FIRST, extra * 2))
