import type { Closure, Store } from "../../src/store/store"

/** The same store, whose transactions fail from `fail` to `mend`, as those of a full disk do. */
export function fallible(store: Store) {
  let broken = false
  let refused = 0
  const tx = <Result>(closure: Closure<Result>): Promise<Result> => {
    if (!broken) return store.tx(closure)
    refused += 1
    return Promise.reject(Object.assign(new Error("full"), { code: "SQLITE_FULL" }))
  }
  return {
    store: Object.assign(Object.create(store) as Store, { tx }),
    fail() {
      broken = true
    },
    mend() {
      broken = false
    },
    refused: () => refused,
  }
}
