import type { Database } from "bun:sqlite"
import { AsyncLocalStorage } from "node:async_hooks"
import { faultOf } from "../core/faults"
import { log } from "../core/log"
import { TableChanges } from "./cached"

/** Bounds how long one group holds the event loop: some 15 ms at the usual cost of a closure. */
const MAX_GROUP = 256

interface Entry {
  closure: () => Promise<unknown>
  resolve: (value: never) => void
  reject: (error: unknown) => void
}

type Effect = () => void

interface Permit {
  open: boolean
  effects: Effect[]
  /** The store's whose closure runs. */
  changes: TableChanges
}

const permits = new AsyncLocalStorage<Permit>()

/** Throws where no closure of a group is running: the statement's `await` is missing. */
export function demandPermit(): Permit {
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

  run<Result>(closure: () => Promise<Result>): Promise<Result> {
    if (permits.getStore()?.open) throw new Error("A closure opened a transaction: pass `tx` down")
    return new Promise((resolve, reject) => {
      this.#waiting.push({ closure, resolve, reject })
      this.#draining ??= this.#drain()
    })
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
    while (this.#draining) await this.#draining
  }

  /** drizzle calls its logger before each statement, which makes this the place for a guard. */
  logQuery(text: string) {
    const { effects, changes } = demandPermit()
    if (changes !== this.changes) throw new Error("A closure used the transaction of another store")
    changes.noteStatement(text, effects)
  }

  async #drain() {
    await this.#gather()
    while (this.#waiting.length > 0) {
      await this.#commit(this.#waiting.splice(0, MAX_GROUP))
      await this.#gather()
      perform(this.#between)
      for (const act of this.#acts.splice(0)) act()
    }
    this.#draining = undefined
  }

  /** Lets requests in, so that the next group is a full one: as long as each turn brings more. */
  async #gather() {
    let before: number
    do {
      before = this.#waiting.length
      await nextTurn()
    } while (this.#waiting.length > before && this.#waiting.length < MAX_GROUP)
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

  async #commit(group: Entry[]) {
    const { begin, commit, rollback } = this.#statements
    const effects: Effect[] = []
    try {
      if (this.#database.inTransaction) rollback() // of a group before, which could not
      begin()
      const answers: (() => void)[] = []
      for (const entry of group) answers.push(await this.#attempt(entry, effects))
      commit()
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

/** What follows a commit or its failure cannot undo it, so its mistakes are only told. */
function perform(effect: Effect) {
  try {
    effect()
  } catch (error) {
    log.error("an effect after a commit failed", { error })
  }
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))
