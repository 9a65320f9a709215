import type { Store } from "../../src/store/store"

/** A store whose transactions fail from the given one on, as in a process that is killed there. */
export function dying(store: Store, after: number): Store {
  let left = after
  const tx: Store["tx"] = (closure) => {
    if (left-- <= 0) return Promise.reject(new Error("killed"))
    return store.tx(closure)
  }
  return { ...store, tx }
}
