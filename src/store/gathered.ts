import { perStore } from "./cached"
import type { Reader } from "./store"

interface Query<Key, Value> {
  key: Key
  resolve: (value: Value) => void
  reject: (error: unknown) => void
}

/**
 * A look-up whose questions of one turn of the event loop share a query, so that many messages that
 * are handled at once cost one round trip. `read` answers each key, in their order, and begins after
 * all of them were asked. A transaction asks alone.
 */
export function gathered<Key, Value>(
  read: (db: Reader, keys: Key[]) => Promise<Value[]>,
): (db: Reader, key: Key) => Promise<Value> {
  const waitingOf = perStore(() => ({ list: [] as Query<Key, Value>[] }))

  async function flush(db: Reader) {
    const waiting = waitingOf(db)
    const { list } = waiting
    waiting.list = []
    try {
      const values = await read(
        db,
        list.map(({ key }) => key),
      )
      for (const [at, { resolve }] of list.entries()) resolve(values[at] as Value)
    } catch (error) {
      for (const { reject } of list) reject(error)
    }
  }

  return async (db, key) => {
    if ("afterCommit" in db) return (await read(db, [key]))[0] as Value
    return new Promise((resolve, reject) => {
      const { list } = waitingOf(db)
      list.push({ key, resolve, reject })
      if (list.length === 1) setImmediate(() => void flush(db))
    })
  }
}
