import type { Database } from "bun:sqlite"
import { drizzle } from "drizzle-orm/bun-sqlite"
import { ApiError } from "../core/errors"
import { faultOf } from "../core/faults"
import { openWorkers, WorkerTimeout } from "../core/workers"
import { OwnerTurns } from "../lib/semaphore"
import { takenApart } from "./direct-statements"
import type { ReadOrder } from "./read-task"
import type { ReaderAccess } from "./snapshot"
import type { HeavyRead, Reader, Select } from "./store"

/** Reads of one project that wait for the one that runs. */
const MOST_WAITING = 10
const RETRY_AFTER_SECONDS = 1

/** No read that is bounded takes as long. */
export const HEAVY_READ_MS = 10_000

/** Where such selects run: in a thread, or in the server of the database. */
export type HeavyPlace = <Result>(act: (read: HeavyRead) => Promise<Result>) => Promise<Result>

/**
 * Reads what would hold the event loop for longer than a page of a list does. An owner (a project, or an account)
 * has one such read at a time. Ten more wait. Any other one is 429 `rate_limit_exceeded`, and 504 `timeout` is one
 * that takes 10 s. Within a transaction it reads in place, since only that sees its own writes.
 *
 *     const [row] = await readHeavy(db, project_id, (read) => read((db) => db.select({ … }).from(…)))
 */
export const readHeavy = <Result>(
  db: Reader,
  owner: string,
  act: (read: HeavyRead) => Promise<Result>,
): Promise<Result> => (db.heavy ? db.heavy.run(owner, act) : act(async (build) => await build(db)))

/** Whose are the reads of an operator. */
const OPERATOR = ""

/**
 * One statement about the rows of all projects, as `readHeavy` runs it, so that a count for an operator keeps nobody
 * waiting.
 */
export const readOfAll = <Row>(db: Reader, build: (db: Reader) => Select<Row>): Promise<Row[]> =>
  readHeavy(db, OPERATOR, (read) => read(build))

/** The heavy reads of one store. Owners take turns: each has one read among those that wait for the place. */
export class HeavyReads {
  readonly #place: HeavyPlace
  readonly #turns: OwnerTurns

  /** `most` is the number of owners that may read at the same time. */
  constructor(place: HeavyPlace, most: number) {
    this.#place = place
    this.#turns = new OwnerTurns(most, { of_one: MOST_WAITING })
  }

  async run<Result>(owner: string, act: (read: HeavyRead) => Promise<Result>): Promise<Result> {
    const turn = this.#turns.acquire(owner)
    if (!turn) throw tooMany()
    const leave = await turn
    try {
      return await this.#place(act)
    } finally {
      leave()
    }
  }
}

function tooMany(): ApiError {
  const details = {
    retry_after: RETRY_AFTER_SECONDS,
    limit: MOST_WAITING,
    window_seconds: RETRY_AFTER_SECONDS,
    scope: "reads",
  }
  const message = `${MOST_WAITING} searches and filtered lists of this project wait already. Try again in ${RETRY_AFTER_SECONDS} s.`
  return new ApiError("rate_limit_exceeded", message, details)
}

/** Also of Postgres, which ends a statement by itself. */
export const tookTooLong = () =>
  new ApiError(
    "timeout",
    `The search took longer than ${HEAVY_READ_MS / 1000} s. Give a narrower filter, such as created_after.`,
  )

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
