import { sleep } from "../core/time"
import type { Reader } from "../store/store"
import { type Event, type Place, readWaiting } from "./feed"
import { matchesType } from "./patterns"

const AT_ONCE = 100
const WAIT_MILLISECONDS = 25_000

/** Between two reads of one follower, for each follower of the same project. */
const GAP_MILLISECONDS = 2
const LEAST_GAP = 10
const LONGEST_GAP = 200

/** How many follow a project here. */
const followers = new Map<string, number>()

/**
 * Every event behind a place (without one: from the oldest that is readable), in the order of the
 * feed and without a gap, as they come, until the signal. Of other types only the place is kept:
 * to ask for the wanted ones alone would mean to pass by all others again each time.
 */
export async function* follow(
  db: Reader,
  project_id: string,
  from: Place | undefined,
  types: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Event> {
  const isWanted = ({ type }: Event) => types.length === 0 || matchesType(types, type)
  let place = from
  count(project_id, 1)
  try {
    while (!signal.aborted) {
      const query = { from: place, limit: AT_ONCE, types: [] }
      const rows = await readWaiting(db, project_id, query, WAIT_MILLISECONDS, signal)
      for (const row of rows) {
        if (signal.aborted) return
        if (isWanted(row)) yield row
        place = row
      }
      // Many followers that read after each commit would do nothing else.
      if (rows.length < AT_ONCE) await sleep(gapOf(project_id), signal)
    }
  } finally {
    count(project_id, -1)
  }
}

function count(project_id: string, change: number) {
  const left = (followers.get(project_id) ?? 0) + change
  if (left > 0) followers.set(project_id, left)
  else followers.delete(project_id)
}

function gapOf(project_id: string): number {
  const wanted = (followers.get(project_id) ?? 1) * GAP_MILLISECONDS
  return Math.min(LONGEST_GAP, Math.max(LEAST_GAP, wanted))
}
