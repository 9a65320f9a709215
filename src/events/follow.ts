import { sleep } from "../core/time"
import type { Reader } from "../store/store"
import { type Event, type Place, readWaiting } from "./feed"
import { matchesType } from "./patterns"

const AT_ONCE = 100
const WAIT_MILLISECONDS = 25_000
const TOGETHER_MILLISECONDS = 10

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
  while (!signal.aborted) {
    const query = { from: place, limit: AT_ONCE, types: [] }
    const rows = await readWaiting(db, project_id, query, WAIT_MILLISECONDS, signal)
    for (const row of rows) {
      if (signal.aborted) return
      if (isWanted(row)) yield row
      place = row
    }
    // Others' events ring too: who reads after each commit would do nothing else.
    if (rows.length < AT_ONCE) await sleep(TOGETHER_MILLISECONDS, signal)
  }
}
