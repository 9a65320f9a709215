import type { Database } from "bun:sqlite"
import { AsyncLocalStorage } from "node:async_hooks"
import { faultOf } from "../core/faults"
import { log } from "../core/log"
import { monotonic, nextTurn } from "../core/time"
import { FairQueue } from "../core/work-turns"
import { type Effect, perform, TableChanges } from "./cached"

/** Bounds how long one group holds the event loop: some 15 ms at the usual cost of a short closure. */
const MAX_GROUP = 256

/** One commit that hung must not make the next results wait as long. */
const MOST_BY_LENGTH_MS = 250

/** How long after the last transaction that could wait the next such one begins. */
export const distanceMs = (apart_ms: number, took_ms: number): number =>
  Math.max(apart_ms, Math.min(took_ms, MOST_BY_LENGTH_MS))

/** After so long no further large closure enters a group of those. */
const LONGEST_GROUP_MS = 12

interface Entry {
  closure: () => Promise<unknown>
  resolve: (value: never) => void
  reject: (error: unknown) => void
  may_wait: boolean
}

interface Permit {
  open: boolean
  effects: Effect[]
  /** The store's whose closure runs. */
  changes: TableChanges
}

const permits = new AsyncLocalStorage<Permit>()

/** Throws where no closure of a group is running: the statement's `await` is missing. */
export function requirePermit(): Permit {
  const permit = permits.getStore()
  if (permit?.open) return permit
  throw new Error("A statement ran outside its transaction: is an `await` missing?")
}

/**
 * Runs closures one after another and commits them in groups: BEGIN, a savepoint for each,
 * COMMIT. Many requests share one fsync. A promise resolves only after its COMMIT, and a closure
 * that throws rolls back alone.
 */
export class GroupCommit {
  readonly stats = { closures: 0, commits: 0 }
  readonly changes = new TableChanges()

  #waiting: Entry[] = []
  /** They share the next group, for whatever reason it begins. One begins for them when `#timer` ends. */
  readonly #patient: Entry[] = []
  #timer: Timer | undefined
  /** Of the last group with patient ones. */
  #shared = { ended: Number.NEGATIVE_INFINITY, took: 0 }
  readonly #large = new FairQueue<Entry>()
  #large_waiting = 0
  #acts: (() => void)[] = []
  #draining: Promise<void> | undefined
  #database: Database
  #onFault: (error: unknown) => void
  #between: () => void
  #statements: Record<"begin" | "commit" | "rollback" | "save" | "release" | "undo", () => void>

  /** `between` runs after each group, when its answers have left and no transaction is open. */
  constructor(
    database: Database,
    onFault: (error: unknown) => void,
    between: () => void = () => {},
  ) {
    const statement = (text: string) => {
      const compiled = database.prepare(text)
      return () => void compiled.run()
    }
    this.#database = database
    this.#onFault = onFault
    this.#between = between
    this.#statements = {
      begin: statement("BEGIN IMMEDIATE"),
      commit: statement("COMMIT"),
      rollback: statement("ROLLBACK"),
      save: statement("SAVEPOINT closure"),
      release: statement("RELEASE closure"),
      undo: statement("ROLLBACK TO closure"),
    }
  }

  /**
   * With an owner it is a large closure: such ones have groups of their own, so that the others need not
   * wait for them to be answered, and both kinds of groups take turns. Owners take turns within theirs.
   * `apart_ms` is as in `Store.tx`.
   */
  run<Result>(closure: () => Promise<Result>, owner?: string, apart_ms?: number): Promise<Result> {
    if (permits.getStore()?.open) throw new Error("A closure opened a transaction: pass `tx` down")
    return new Promise((resolve, reject) => {
      const entry = { closure, resolve, reject, may_wait: apart_ms !== undefined }
      if (apart_ms !== undefined) return this.#addPatient(entry, apart_ms)
      if (owner === undefined) this.#waiting.push(entry)
      else {
        this.#large.add(owner, "", entry)
        this.#large_waiting += 1
      }
      this.#draining ??= this.#drain()
    })
  }

  #addPatient(entry: Entry, apart_ms: number) {
    this.#patient.push(entry)
    const { ended, took } = this.#shared
    const early = ended + distanceMs(apart_ms, took) - monotonic()
    if (early <= 0) this.#beginPatient()
    else this.#timer ??= setTimeout(() => this.#beginPatient(), early)
  }

  #beginPatient() {
    this.#admitPatient()
    this.#draining ??= this.#drain()
  }

  #admitPatient() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#waiting.push(...this.#patient.splice(0))
  }

  /** Runs `act` where no transaction is open: after the next group. Resolves when it was run. */
  async between(act: () => void): Promise<void> {
    const done = new Promise<void>((resolve) => {
      this.#acts.push(() => {
        perform(act)
        resolve()
      })
    })
    await this.run(async () => {})
    await done
  }

  /** Resolves when nothing is waiting. */
  async idle() {
    do {
      this.#beginPatient()
      await this.#draining
    } while (this.#patient.length > 0)
  }

  /** drizzle calls its logger before each statement, which makes this the place for a guard. */
  logQuery(text: string) {
    const { effects, changes } = requirePermit()
    if (changes !== this.changes) throw new Error("A closure used the transaction of another store")
    changes.noteStatement(text, effects)
  }

  async #drain() {
    await this.#gather()
    for (let was_large = true; this.#count > 0; ) {
      was_large = this.#large_waiting > 0 && (!was_large || this.#waiting.length === 0)
      await this.#commit(was_large)
      await this.#gather()
      perform(this.#between)
      for (const act of this.#acts.splice(0)) act()
    }
    this.#draining = undefined
  }

  get #count(): number {
    return this.#waiting.length + this.#large_waiting
  }

  #nextLarge(): Entry[] {
    const entry = this.#large.next()
    if (!entry) return []
    this.#large_waiting -= 1
    return [entry]
  }

  /** Lets requests in, so that the next group is a full one: as long as each turn brings more. */
  async #gather() {
    let before: number
    do {
      before = this.#count
      await nextTurn()
    } while (this.#count > before && this.#count < MAX_GROUP)
  }

  /** Back to no transaction. It never throws, so the groups behind this one get their turn. */
  #recover(error: unknown) {
    perform(() => this.#onFault(error))
    if (!this.#database.inTransaction) return
    try {
      this.#statements.rollback()
    } catch (failure) {
      log.error("a group could not be rolled back", { error: failure })
      perform(() => this.#onFault(failure))
    }
  }

  async #commit(is_large: boolean) {
    if (!is_large) this.#admitPatient()
    const group = is_large ? this.#nextLarge() : this.#waiting.splice(0, MAX_GROUP)
    const { begin, commit, rollback } = this.#statements
    const effects: Effect[] = []
    const begun = monotonic()
    try {
      if (this.#database.inTransaction) rollback() // of a group before, which could not
      begin()
      const answers: (() => void)[] = []
      for (const entry of group) {
        answers.push(await this.#attempt(entry, effects))
        const is_last = answers.length === group.length
        if (is_large && is_last && monotonic() - begun < LONGEST_GROUP_MS)
          group.push(...this.#nextLarge())
      }
      commit()
      const ended = monotonic()
      if (group.some(({ may_wait }) => may_wait)) this.#shared = { ended, took: ended - begun }
      this.changes.ended()
      this.stats.commits += 1
      this.stats.closures += group.length
      for (const answer of answers) answer()
    } catch (error) {
      this.#recover(error)
      this.changes.ended()
      for (const { reject } of group) reject(error)
      return
    }
    for (const effect of effects) perform(effect)
  }

  /** Returns what to tell the caller once the group is on disk. */
  async #attempt({ closure, resolve, reject }: Entry, effects: Effect[]): Promise<() => void> {
    const { save, release, undo } = this.#statements
    save()
    try {
      const own: Effect[] = []
      const value = await guarded(closure, { open: true, effects: own, changes: this.changes })
      release()
      effects.push(...own)
      return () => resolve(value as never)
    } catch (error) {
      if (faultOf(error) === "damaged") perform(() => this.#onFault(error))
      // A full disk or an I/O error makes SQLite roll back everything: then the group is lost.
      if (!this.#database.inTransaction) throw error
      undo()
      release()
      return () => reject(error)
    }
  }
}

/**
 * Database calls resolve within the turn of the event loop that made them. A closure that still
 * runs in the next turn awaits something else, and every other closure would wait with it: it
 * fails, and its later calls are refused.
 */
async function guarded(closure: () => Promise<unknown>, permit: Permit) {
  const tripwire = Promise.withResolvers<never>()
  const turn = setImmediate(() => {
    tripwire.reject(new Error("A closure awaited something that is not its own transaction"))
  })
  try {
    const result = permits.run(permit, async () => await closure()) // a query runs when awaited
    return await Promise.race([result, tripwire.promise])
  } finally {
    permit.open = false
    clearImmediate(turn)
  }
}
