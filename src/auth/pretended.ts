import type { Store, Tx } from "../store/store"

class Undone extends Error {}

/**
 * Does work in a transaction and undoes it, so that the time of an answer does not tell whether there was anything to
 * do. Only what it resolves with stays.
 */
export async function pretend<Result>(
  store: Store,
  work: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  const kept: Result[] = []
  try {
    await store.tx(async (tx) => {
      kept.push(await work(tx))
      throw new Undone()
    })
  } catch (error) {
    if (!(error instanceof Undone)) throw error
  }
  return kept.at(-1) as Result
}
