import { onEnqueued, ringJobs } from "../store/queue"
import type { Store } from "../store/store"
import { onEmitted, ring } from "./emit"

const JOBS = "belfry_jobs"
const EVENTS = "belfry_events"
const TOGETHER_MILLISECONDS = 10

/**
 * Carries the bells of new work and new events to the other nodes on the same Postgres, and theirs
 * to us. Commits that come together are told together; what is lost, the polls find.
 */
export function joinNodes(store: Store): () => void {
  const leave = [carry(store, JOBS, onEnqueued, ringJobs), carry(store, EVENTS, onEmitted, ring)]
  return () => {
    for (const stop of leave) stop()
  }
}

function carry(
  store: Store,
  topic: string,
  onRing: (listener: () => void) => () => void,
  ringHere: () => void,
) {
  let hearing = false
  let timer: Timer | undefined
  store.listen(topic, () => {
    hearing = true // the ring that follows came from outside: it must not go out again
    ringHere()
    hearing = false
  })
  const off = onRing(() => {
    if (hearing || timer) return
    timer = setTimeout(() => {
      timer = undefined
      store.notify(topic, "")
    }, TOGETHER_MILLISECONDS)
  })
  return () => {
    off()
    clearTimeout(timer)
  }
}
