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

const watchers = new Set<(activity: MessageActivity) => void>()

/** Calls `watcher` after each commit that changed a status, until the returned function is called. */
export function watch(watcher: (activity: MessageActivity) => void): () => void {
  watchers.add(watcher)
  return () => void watchers.delete(watcher)
}

export const isWatched = () => watchers.size > 0

export function tell(activity: MessageActivity) {
  for (const watcher of watchers) watcher(activity)
}
