import { log } from "../core/log"
import { monotonic } from "../core/time"
import type { Reader } from "./store"

interface CachedOptions<Value> {
  /** What the answers are read from: a commit that changes one of these tables forgets them all. */
  tables: string[]
  /** With more answers than this, all are forgotten. */
  most?: number
  /** Whether the answer is kept; default: every answer is. */
  keeps?: (value: Value, db: Reader) => boolean
}

/**
 * A promise only where it reads. `recent_ms`: how old an answer may be where other nodes change the
 * tables, too; default: 0.
 */
type CachedLookUp<Value> = (
  db: Reader,
  key: string,
  read: () => Promise<Value>,
  recent_ms?: number,
) => Value | Promise<Value>

const MOST_ANSWERS = 10_000

interface Answer<Value> {
  value: Value
  read_at: number
}

/**
 * A look-up that remembers its answers, for each store, until a commit changes what they were read
 * from. Where this process is alone on the database they cannot be old, and on Postgres the caller
 * says how old they may be. Within a transaction nothing is remembered, because it may be undone.
 */
export function cached<Value>({
  tables,
  most = MOST_ANSWERS,
  keeps = () => true,
}: CachedOptions<Value>): CachedLookUp<Value> {
  const memoryOf = perStore((db) => {
    const memory = { answers: new Map<string, Answer<Value>>() }
    db.onChanged(tables, () => {
      memory.answers = new Map() // a read that runs now writes into the old map, which is dropped
    })
    return memory
  })

  const readAndKeep = async (db: Reader, key: string, read: () => Promise<Value>) => {
    const { answers } = memoryOf(db)
    const read_at = monotonic()
    const value = await read()
    if (!keeps(value, db)) return value
    if (answers.size >= most) answers.clear()
    answers.set(key, { value, read_at })
    return value
  }

  return (db, key, read, recent_ms = 0) => {
    if ("afterCommit" in db) return read()
    const known = memoryOf(db).answers.get(key)
    if (known && (db.isAlone || monotonic() - known.read_at < recent_ms)) return known.value
    return readAndKeep(db, key, read)
  }
}

/** What each store has one of, made at its first use, for its reader and all of its transactions. */
export const perStore = <Value>(make: (db: Reader) => Value): ((db: Reader) => Value) =>
  once((db) => db.identity, make)

/** What each store has one of for each table, by its name. */
export function perTable<Value extends object>(
  make: (db: Reader, table: string) => Value,
): (db: Reader, table: string) => Value {
  const tablesOf = perStore(() => new Map<string, Value>())
  return (db, table) => {
    const tables = tablesOf(db)
    const known = tables.get(table)
    if (known) return known
    const value = make(db, table)
    tables.set(table, value)
    return value
  }
}

/** Where work keeps up, what was just written is asked for within this time. In a longer queue the memory is of no use. */
const RECENT_MILLISECONDS = 10_000

interface RecentOptions<Value> {
  /** What is kept at most; each value counts 1 without `sizeOf`. */
  most: number
  /** Larger values are not kept: to use them costs far more than to read them back. */
  most_of_one?: number
  sizeOf?: (value: Value) => number
}

/**
 * What was just written, so that the first use need not read it back. Where there is too much, what is older than ten
 * seconds gives way, and nothing else: the next ones that are asked for are the first ones.
 */
export class Recent<Value> {
  readonly #options: RecentOptions<Value>
  readonly #kept = new Map<string, { value: Value; size: number; at: number }>()
  #size = 0
  /** Until then nothing that is kept is old enough to give way. */
  #full_until = 0

  constructor(options: RecentOptions<Value>) {
    this.#options = options
  }

  get size(): number {
    return this.#size
  }

  has(key: string): boolean {
    return this.#kept.has(key)
  }

  /** After the commit. `at`: when it was written, by `monotonic`. `size`: where it is known. */
  keep(key: string, value: Value, { at = monotonic(), size = this.#sizeOf(value) } = {}) {
    const { most, most_of_one = most } = this.#options
    if (size > most_of_one) return
    if (this.#size + size > most && at >= this.#full_until) this.#forgetOld(at)
    if (this.#size + size > most) return
    this.#kept.set(key, { value, size, at })
    this.#size += size
  }

  #sizeOf(value: Value): number {
    return this.#options.sizeOf?.(value) ?? 1
  }

  #forgetOld(now: number) {
    for (const [oldest, { at }] of this.#kept) {
      this.#full_until = at + RECENT_MILLISECONDS
      if (now <= this.#full_until) return
      this.remove(oldest)
    }
  }

  /** Once: a second use, much later, reads the database. */
  remove(key: string): Value | undefined {
    const found = this.#kept.get(key)
    if (!found) return undefined
    this.#kept.delete(key)
    this.#size -= found.size
    return found.value
  }

  clear() {
    this.#kept.clear()
    this.#size = 0
  }
}

export type Effect = () => void

/** What follows a commit or its failure cannot undo it, so its mistakes are only told. */
export function perform(effect: Effect) {
  try {
    effect()
  } catch (error) {
    log.error("an effect after a commit failed", { error })
  }
}

const CHANGE = /\b(?:insert into|update|delete from) "(\w+)"/

/** Tells listeners of commits that changed a table. Each store has one. */
export class TableChanges {
  readonly #listeners = new Map<string, Set<Effect>>()
  readonly #counts = new Map<string, number>()
  /** The tables that transactions under way have changed. */
  readonly #uncommitted = new Set<string>()

  /** Calls `hear` after each commit that changed one of the tables, until the function is called. */
  listen(tables: string[], hear: Effect): () => void {
    for (const table of tables) {
      const known = this.#listeners.get(table) ?? new Set()
      this.#listeners.set(table, known.add(hear))
    }
    return () => {
      for (const table of tables) this.#listeners.get(table)?.delete(hear)
    }
  }

  /** Adds to what follows the commit of the transaction that changed the table. */
  note(table: string, effects: Effect[]): void {
    this.#counts.set(table, this.countOf(table) + 1)
    this.#uncommitted.add(table)
    for (const hear of this.#listeners.get(table) ?? []) effects.push(hear)
  }

  /** How often the table was changed, changes included that are not committed or were undone. */
  countOf(table: string): number {
    return this.#counts.get(table) ?? 0
  }

  /** The same, as long as a reader sees all of these changes. */
  committedCountOf(table: string): number | undefined {
    return this.#uncommitted.has(table) ? undefined : this.countOf(table)
  }

  /** No transaction is under way any more. */
  ended() {
    this.#uncommitted.clear()
  }

  /** As `note`, for the table that a statement changes, if it is one of a transaction and does. */
  noteStatement(text: string, effects: Effect[] | undefined): void {
    const table = effects && CHANGE.exec(text)?.[1]
    if (table) this.note(table, effects)
  }
}

/** A function that computes once for each object, and remembers what it found while the object lives. */
export const oncePer = <Key extends object, Made>(make: (key: Key) => Made): ((key: Key) => Made) =>
  once((key) => key, make)

function once<From, Made>(keyOf: (from: From) => object, make: (from: From) => Made) {
  const all = new WeakMap<object, { made: Made }>()
  return (from: From): Made => {
    const known = all.get(keyOf(from))
    if (known) return known.made
    const made = make(from)
    all.set(keyOf(from), { made })
    return made
  }
}
