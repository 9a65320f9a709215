/** One value that parts of a page follow. */
export interface Observable<Value> {
  readonly value: Value
  set(value: Value): void
  /** Calls `listener` after each change, until the function is called. */
  subscribe(listener: () => void): () => void
}

export function observable<Value>(first: Value): Observable<Value> {
  const listeners = new Set<() => void>()
  let value = first
  return {
    get value() {
      return value
    },
    set(next) {
      if (Object.is(next, value)) return
      value = next
      for (const listener of [...listeners]) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
