import { log } from "./log"

type Listener = (value: unknown) => unknown

export interface Bus {
  /** Calls every listener of the topic in this turn. A listener's error is logged, never thrown. */
  publish(topic: string, value?: unknown): void
  /** Listens until the returned function is called. */
  on<T = unknown>(topic: string, listener: (value: T) => unknown): () => void
}

/** Publishes facts within this process. A fact is not kept for later listeners. */
export function createBus(): Bus {
  const topics = new Map<string, Set<{ listener: Listener }>>()
  return {
    publish(topic, value) {
      // A copy, because a listener may stop listening (or start another) while it is called.
      for (const { listener } of [...(topics.get(topic) ?? [])]) call(topic, listener, value)
    },
    on(topic, listener) {
      const entry = { listener: listener as Listener }
      const entries = topics.get(topic) ?? new Set()
      topics.set(topic, entries.add(entry))
      return () => {
        entries.delete(entry)
        if (entries.size === 0 && topics.get(topic) === entries) topics.delete(topic)
      }
    },
  }
}

function call(topic: string, listener: Listener, value: unknown): void {
  const failed = (error: unknown) => log.error("a bus listener failed", { topic, error })
  try {
    const result = listener(value)
    if (result instanceof Promise) result.catch(failed)
  } catch (error) {
    failed(error)
  }
}
