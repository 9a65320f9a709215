import type { Database } from "bun:sqlite"
import { faultOf } from "./trouble"

const CALLS = ["all", "get", "values", "run"] as const

/** A compiled statement, as far as it is watched. */
type Calls = Record<(typeof CALLS)[number], (...values: unknown[]) => unknown>

/**
 * Tells of a damaged file, whatever asked and whatever becomes of the error: a read is the first that
 * finds a bad page, and its caller may know nothing of storage. For what is prepared from now on.
 */
export function watchReads(database: Database, hear: (error: unknown) => void): void {
  const prepare = database.prepare.bind(database) as (...given: unknown[]) => Calls
  const watch = <Result>(act: () => Result): Result => {
    try {
      return act()
    } catch (error) {
      if (faultOf(error) === "damaged") hear(error)
      throw error
    }
  }
  const watched = (...given: unknown[]) => {
    const statement = watch(() => prepare(...given))
    for (const call of CALLS) statement[call] = heard(statement[call], hear)
    return statement
  }
  Object.assign(database, { prepare: watched })
}

/** The same call. It is made thousands of times a second, so there is one function around it. */
function heard(call: Calls["all"], hear: (error: unknown) => void): Calls["all"] {
  return function (this: unknown, ...values) {
    try {
      return Reflect.apply(call, this, values)
    } catch (error) {
      if (faultOf(error) === "damaged") hear(error)
      throw error
    }
  }
}
