import { and, eq, gt, type SQL, sql } from "drizzle-orm"
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core"
import { millis, monotonic, nextTurn, secondsFromNow } from "../core/time"
import type { Reader } from "../store/store"
import { inFlightOf } from "./in-flight"
import { jobRows } from "./jobs"
import { jobs } from "./tables"
import { PRIORITIES, type WorkRow } from "./work-item"
import { isDead, isHeld, isLeased, isReady, type WorkRows } from "./work-rows"

const DAY_SECONDS = 86_400

/** Rows of one look: other work gets the event loop in between. */
const AT_ONCE = 10_000

/**
 * A slow count is reused for this multiple of the time it took, so counting takes a twentieth of
 * the time at most.
 */
const QUICK_MS = 50
const TRUSTED_TIMES = 20

export interface QueueCounts {
  /** Waiting, also for a later time or for the end of a pause. */
  depth: number
  oldest_seconds: number
  running: number
  failed_24h: number
}

export interface QueueLine extends QueueCounts {
  queue: string
  paused: boolean
}

/** The counts by queue. */
export type QueueTotals = Map<string, QueueCounts>

export type CountQueues = (db: Reader) => Promise<QueueTotals>

export const blank = (): QueueCounts => ({
  depth: 0,
  oldest_seconds: 0,
  running: 0,
  failed_24h: 0,
})

/**
 * What waits, runs and failed, by queue. Every row is counted, some thousands at a time; of a long
 * queue the numbers may be some seconds old, since counting it must not keep it waiting.
 */
export class QueueLines {
  readonly #db: Reader
  readonly #counts: CountQueues[]
  #counted: { lines: Promise<QueueTotals>; until: number } | undefined

  constructor(db: Reader, counts: CountQueues[]) {
    this.#db = db
    this.#counts = counts
  }

  all(): Promise<QueueTotals> {
    const known = this.#counted
    if (known && known.until > monotonic()) return known.lines
    const begun = monotonic()
    const counted = { lines: this.#count(), until: Number.POSITIVE_INFINITY }
    this.#counted = counted
    const ended = () => {
      const took = monotonic() - begun
      counted.until = took < QUICK_MS ? 0 : monotonic() + TRUSTED_TIMES * took
    }
    counted.lines.then(ended, () => {
      counted.until = 0
    })
    return counted.lines
  }

  async #count(): Promise<QueueTotals> {
    const lines: QueueTotals = new Map()
    for (const count of this.#counts) {
      for (const [queue, counts] of await count(this.#db)) {
        lines.set(queue, together(lines.get(queue), counts))
      }
    }
    return lines
  }
}

/** A hold may keep rows of several tables. */
const together = (one: QueueCounts | undefined, other: QueueCounts): QueueCounts =>
  one === undefined
    ? other
    : {
        depth: one.depth + other.depth,
        oldest_seconds: Math.max(one.oldest_seconds, other.oldest_seconds),
        running: one.running + other.running,
        failed_24h: one.failed_24h + other.failed_24h,
      }

/** What one row of a query counts. */
interface Counted {
  queue: string
  count: number | string
  oldest?: number | string | null
  held_by?: string | null
}

/** Counts a table of work by the queue of its rows, `queue_column`. A hold that is no queue has a line, too. */
export const countTable =
  <Row extends WorkRow>(
    rows: WorkRows<Row>,
    queue_column: AnySQLiteColumn,
    queueOf: (row: Row) => string,
    at_once = AT_ONCE,
  ): CountQueues =>
  async (db) => {
    const lines: QueueTotals = new Map()
    const lineOf = (queue: string) => {
      const line = lines.get(queue) ?? blank()
      lines.set(queue, line)
      return line
    }
    /** What is claimed has an age, too: one attempt that hangs must not look like an empty queue. */
    const grow = (line: QueueCounts, { oldest }: Counted) => {
      const age = oldest ? Math.floor((millis() - Number(oldest)) / 1000) : 0
      line.oldest_seconds = Math.max(line.oldest_seconds, age)
    }
    const add = (line: QueueCounts, found: Counted) => {
      line.depth += Number(found.count)
      grow(line, found)
    }
    const { table } = rows
    const { run_at, owner } = table
    const queue = sql<string>`${queue_column}`
    const wanted = { queue, count: COUNT, oldest: sql<number>`min(${rows.wanted_since})` }
    for await (const found of waiting(db, rows, { wanted, queue: queue_column, at_once })) {
      add(lineOf(found.queue), found)
    }
    const held = db
      .select({ ...wanted, held_by: owner })
      .from(table)
      .where(isHeld)
    for (const found of (await held.groupBy(queue_column, owner)) as Counted[]) {
      add(lineOf(found.queue), found)
      if (found.held_by && found.held_by !== found.queue) add(lineOf(found.held_by), found)
    }
    const running = db.select(wanted).from(table).where(isLeased)
    for (const found of (await running.groupBy(queue_column)) as Counted[]) {
      const line = lineOf(found.queue)
      line.running += Number(found.count)
      grow(line, found)
    }
    for (const row of inFlightOf(db, rows.name)?.claims<Row>() ?? []) {
      const line = lineOf(queueOf(row))
      line.running += 1
      line.depth = Math.max(0, line.depth - 1)
    }
    const recent = and(isDead, gt(run_at, secondsFromNow(-DAY_SECONDS)))
    const failed = db.select({ queue, count: COUNT }).from(table).where(recent)
    for (const found of await failed.groupBy(queue_column)) {
      lineOf(found.queue).failed_24h += Number(found.count)
    }
    return lines
  }

const COUNT = sql<number>`count(*)`

/** Work of every kind of job. */
export const countJobs = (at_once?: number) =>
  countTable(jobRows, jobs.name, ({ name }) => name, at_once)

interface Walk {
  wanted: Record<string, SQL>
  queue: AnySQLiteColumn
  at_once: number
}

/** What waits, along the index of each priority. */
async function* waiting<Row extends WorkRow>(
  db: Reader,
  { table }: WorkRows<Row>,
  { wanted, queue, at_once }: Walk,
): AsyncGenerator<Counted> {
  const { id, run_at } = table
  const place = sql`(${run_at}, ${id})`
  for (const priority of Object.values(PRIORITIES)) {
    for (let after: { run_at: string; id: string } | undefined; ; await nextTurn()) {
      const level = and(
        isReady,
        eq(table.priority, priority),
        after && sql`${place} > ${pairOf(after)}`,
      )
      const edge = db.select({ run_at, id }).from(table).where(level).orderBy(run_at, id)
      const [last] = await edge.limit(1).offset(at_once - 1)
      const part = and(level, last && sql`${place} <= ${pairOf(last)}`)
      yield* (await db
        .select(wanted)
        .from(table)
        .where(part)
        .groupBy(queue)) as unknown as Counted[]
      if (!last) break
      after = last
    }
  }

  function pairOf(row: { run_at: string; id: string }) {
    return sql`(${sql.param(row.run_at, run_at)}, ${sql.param(row.id, id)})`
  }
}
