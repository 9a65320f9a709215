import { faultOf } from "../core/faults"
import { perStore } from "./cached"
import type { Reader, Store, Tx } from "./store"

interface BatcherOptions<Entry, Result> {
  store: Store
  /** Writes a batch, and returns one result for each of its entries. It may run twice. */
  write: (tx: Tx, batch: Entry[]) => Promise<Result[]>
  /** Entries of one transaction. */
  most: number
  /** As in `Store.tx`. */
  apart_ms?: number | undefined
}

/** Transactions of one batcher side by side, where each waits for its own commit. */
const LANES = 2

interface WaitingEntry<Entry, Result> {
  entry: Entry
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/**
 * Entries that come together are written in one transaction: it takes what waits when it begins, and
 * what comes later shares the next one. What is too much for one goes into several, which share a
 * commit on SQLite. An entry that spoils a transaction does so for itself alone,
 * because each of the others gets its own then. A fault of the storage is everybody's.
 */
export class Batcher<Entry, Result> {
  readonly #options: BatcherOptions<Entry, Result>
  #waiting: WaitingEntry<Entry, Result>[] = []
  #running = 0
  /** How many transactions were asked for and have not begun: they take what comes until then. */
  #open = 0

  constructor(options: BatcherOptions<Entry, Result>) {
    this.#options = options
  }

  /** Entries that no transaction has taken yet. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Resolves when the entry is on disk. */
  add(entry: Entry): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject })
      if (this.#needsMore() && this.#mayBegin()) void this.#run()
    })
  }

  #needsMore = () => this.#waiting.length > this.#open * this.#options.most

  /** On Postgres one batch fills while the other waits for its commit. SQLite has one writer. */
  #mayBegin = () =>
    this.#options.store.isAlone ? this.#running === this.#open : this.#running < LANES

  async #run() {
    this.#running += 1
    while (this.#needsMore()) await this.#writeSome()
    this.#running -= 1
  }

  async #writeSome() {
    const { store, write, most, apart_ms } = this.#options
    let taken: WaitingEntry<Entry, Result>[] | undefined
    this.#open += 1
    const take = () => {
      if (taken) return taken // the closure runs again, for the same ones
      this.#open -= 1
      taken = this.#waiting.splice(0, most)
      return taken
    }
    try {
      const results = await store.tx((tx) => write(tx, entriesOf(take())), undefined, apart_ms)
      for (const [at, { resolve }] of take().entries()) resolve(results[at] as Result)
    } catch (error) {
      const batch = take()
      if (batch.length === 1 || faultOf(error)) for (const { reject } of batch) reject(error)
      else for (const one of batch) await this.#writeAlone(one)
    }
  }

  async #writeAlone({ entry, resolve, reject }: WaitingEntry<Entry, Result>) {
    try {
      const [result] = await this.#options.store.tx((tx) => this.#options.write(tx, [entry]))
      resolve(result as Result)
    } catch (error) {
      reject(error)
    }
  }
}

const entriesOf = <Entry, Result>(list: WaitingEntry<Entry, Result>[]) =>
  list.map(({ entry }) => entry)

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
