import { perTable } from "../store/cached"
import type { Store } from "../store/store"

const TOGETHER_MILLISECONDS = 10

/** How the parts of a process hear that there is something new, and how it is told. */
export interface WakeUpTopic {
  topic: string
  /** Calls `listener` after each commit that brought something, until the returned function is called. */
  onWakeUp(listener: () => void): () => void
  /** Wakes the listeners of this process; also called when another node tells of something new. */
  wakeUp(): void
}

/** The wake-up of a table of the store, by its name. */
export const wakeUpOf = perTable((_, table): WakeUpTopic => {
  const listeners = new Set<() => void>()
  return {
    topic: `belfry_work_${table}`,
    onWakeUp(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    wakeUp() {
      for (const listener of listeners) listener()
    },
  }
})

/**
 * Carries wake-ups to the other nodes on the same Postgres, and theirs to us. Commits that come
 * together are told together; what is lost, the polls find. Returns how to stop.
 */
export function shareWakeUps(store: Store, shared: WakeUpTopic[]): () => void {
  const leave = shared.map((one) => share(store, one))
  return () => {
    for (const stop of leave) stop()
  }
}

function share(store: Store, { topic, onWakeUp, wakeUp }: WakeUpTopic) {
  let is_foreign = false
  let timer: Timer | undefined
  void store.listen(topic, () => {
    is_foreign = true // what follows came from outside: it must not go out again
    wakeUp()
    is_foreign = false
  })
  const off = onWakeUp(() => {
    if (is_foreign || timer) return
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
