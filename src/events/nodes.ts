import { onEnqueued, ringJobs } from "../jobs/wake-ups"
import type { Store } from "../store/store"
import { onEmitted, ring } from "./emit"

const JOBS = "belfry_jobs"
const EVENTS = "belfry_events"
const TOGETHER_MILLISECONDS = 10

/** Of features that lie above this one: how to hear it, and how to ring it here. */
export interface Bell {
  topic: string
  onRing(listener: () => void): () => void
  ring(): void
}

/**
 * Carries the bells of new work and new events to the other nodes on the same Postgres, and theirs
 * to us. Commits that come together are told together; what is lost, the polls find.
 */
export function joinNodes(store: Store, others: Bell[] = []): () => void {
  const bells: Bell[] = [
    { topic: JOBS, onRing: onEnqueued, ring: ringJobs },
    { topic: EVENTS, onRing: onEmitted, ring },
    ...others,
  ]
  const leave = bells.map((bell) => carry(store, bell))
  return () => {
    for (const stop of leave) stop()
  }
}

function carry(store: Store, { topic, onRing, ring: ringHere }: Bell) {
  let hearing = false
  let timer: Timer | undefined
  void store.listen(topic, () => {
    hearing = true // the ring that follows came from outside: it must not go out again
    ringHere()
    hearing = false
  })
  const off = onRing(() => {
    if (hearing || timer) return
    timer = setTimeout(() => {
      timer = undefined
      void store.notify(topic, "")
    }, TOGETHER_MILLISECONDS)
  })
  return () => {
    off()
    clearTimeout(timer)
  }
}
