import { perStore } from "../store/cached"
import type { Reader } from "../store/store"
import type { ChannelName, Status } from "./tables"

/** A change of a message's status that is on disk, for listeners: `belfry up`, the monitor. */
export interface MessageActivity {
  id: string
  project_id: string
  channel: ChannelName
  status: Status
  status_reason: string | null
  recipient: string
  at: string
  event_type: string | null
  elapsed_ms: number
  next_attempt_at: string | null
}

const watchersOf = perStore(() => new Set<(activity: MessageActivity) => void>())

/** Calls `watcher` after each commit of the store that changed a status, until the returned function is called. */
export function watch(db: Reader, watcher: (activity: MessageActivity) => void): () => void {
  const watchers = watchersOf(db)
  watchers.add(watcher)
  return () => void watchers.delete(watcher)
}

export const isWatched = (db: Reader) => watchersOf(db).size > 0

export function tell(db: Reader, activity: MessageActivity) {
  for (const watcher of watchersOf(db)) watcher(activity)
}
