import { spyOn } from "bun:test"
import { NoopLogger } from "drizzle-orm/logger"
import { TableChanges } from "../../src/store/cached"
import { engine } from "../harness/store"
import type { Outside } from "./outside"

/** The statements that `work` sends to the database, in order. It only listens. */
export async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const texts: string[] = []
  const listen = (text: string) => void texts.push(text)
  const reader: { logQuery(text: string): void } = NoopLogger.prototype
  const inReader = spyOn(reader, "logQuery").mockImplementation(listen)
  const real = TableChanges.prototype.noteStatement
  const inWriter = spyOn(TableChanges.prototype, "noteStatement").mockImplementation(function (
    this: TableChanges,
    text,
    effects,
  ) {
    listen(text)
    real.call(this, text, effects)
  })
  try {
    await work()
  } finally {
    inReader.mockRestore()
    inWriter.mockRestore()
  }
  return texts
}

/** How the database would go about a statement, one line a step, whatever its values are. */
export async function planOf(database: Outside, text: string): Promise<string[]> {
  return engine === "sqlite" ? sqlitePlan(database, text) : postgresPlan(database, text)
}

/** Values that nobody bound are NULL, which no partial index is chosen for. */
async function sqlitePlan(database: Outside, text: string) {
  const rows = await database.rows(`EXPLAIN QUERY PLAN ${text}`)
  return rows.map(({ detail }) => String(detail))
}

/**
 * The generic plan, as a statement gets it that was prepared and ran some times. A table of tests
 * is so small that reading it whole would always be cheaper: that is ruled out here.
 */
async function postgresPlan(database: Outside, text: string) {
  const holes = new Set([...text.matchAll(/\$(\d+)/g)].map(([, number]) => number)).size
  const values = holes === 0 ? "" : `(${Array.from({ length: holes }, () => "NULL").join(", ")})`
  await database.rows("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
  await database.rows(`PREPARE asked AS ${text}`)
  const rows = await database.rows(`EXPLAIN EXECUTE asked${values}`)
  await database.rows("DEALLOCATE asked")
  return rows.map((row) => String(row["QUERY PLAN"]).trim())
}

/**
 * The steps that read a whole table, or sort what an index could have given in order. The partial
 * index of what is leased is small: reading all of it is what a sweep wants. A list of ids that
 * belongs to the statement is small, too.
 */
export const slowSteps = (plan: string[]) =>
  plan.filter((step) =>
    /^SCAN (?!CONSTANT|json_each|jobs USING INDEX jobs_leased)|TEMP B-TREE|Seq Scan|^(->\s*)?Sort\b/.test(
      step,
    ),
  )
