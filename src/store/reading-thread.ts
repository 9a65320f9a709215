import type { Database } from "bun:sqlite"
import { drizzle } from "drizzle-orm/bun-sqlite"
import { faultOf } from "../core/faults"
import { openWorkers, WorkerTimeout } from "../core/workers"
import { takenApart } from "./direct-statements"
import { HEAVY_READ_MS, HeavyReads, tookTooLong } from "./heavy-reads"
import type { ReadOrder } from "./read-task"
import type { ReaderAccess } from "./snapshot"
import type { HeavyRead, Reader } from "./store"

/** Of the thread, as of `nice`: what is accepted and sent goes first. */
const NICENESS = 5

/**
 * The one thread that does the heavy reads of an SQLite file. It starts with the first of them. A select is built
 * here, where nothing is compiled, and its rows are decoded here. `hear` is told of a damaged file.
 */
export function openReadingThread(
  path: string,
  access: ReaderAccess,
  hear: (error: unknown) => void,
) {
  const workers = openWorkers({ size: 1, niceness: NICENESS })
  let is_begun = false
  const run = <Result>(task: string, input: ReadOrder | string) =>
    workers.run<Result>(task, input, { deadline_ms: HEAVY_READ_MS })
  const uncompiled = { prepare: () => ({}) } as unknown as Database
  const db: Reader = Object.assign(drizzle(uncompiled) as unknown as Reader, access)

  const read: HeavyRead = async (build) => {
    const { text, values, decode } = takenApart(build(db).prepare())
    is_begun = true
    try {
      const rows = await run<unknown[][]>("read-rows", { path, text, values })
      return rows.map(decode) as never
    } catch (error) {
      if (faultOf(error) === "damaged") hear(error)
      throw error instanceof WorkerTimeout ? tookTooLong() : error
    }
  }

  return {
    heavy: new HeavyReads((act) => act(read), 1),
    /** Its connection ends before the thread does, and so before the writer's. */
    async close(): Promise<void> {
      if (is_begun) await run("close-reader", path).catch(() => {})
      await workers.close()
    },
  }
}
