import { and, eq, gt, type SQL, sql } from "drizzle-orm"
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { millis, monotonic, secondsFromNow } from "../core/time"
import { readOfAll } from "../store/heavy-reads"
import type { Reader, Select } from "../store/store"
import { inFlightOf } from "./in-flight"
import { jobRows } from "./jobs"
import { jobs } from "./tables"
import { PRIORITIES, type WorkRow } from "./work-item"
import { isDead, isHeld, isLeased, isReady, type WorkRows } from "./work-rows"

const DAY_SECONDS = 86_400

/** Rows of one statement: other heavy reads come in between. */
const AT_ONCE = 10_000

/** A slow count is reused for this multiple of its time, so counting takes a twentieth at most. */
const QUICK_MS = 50
const TRUSTED_TIMES = 20

interface QueueCounts {
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

export type QueueTotals = Map<string, QueueCounts>

export type CountQueues = (db: Reader) => Promise<QueueTotals>

export const blank = (): QueueCounts => ({
  depth: 0,
  oldest_seconds: 0,
  running: 0,
  failed_24h: 0,
})

/**
 * What waits, runs and failed, by queue. Every row is counted, off the event loop; of a long
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

interface Counted {
  count: number | string
  oldest: number | string | null
}

/**
 * Counts a table of work by the queue of its rows, `queue_column`. A hold that is no queue has a line, too.
 * One statement counts `at_once` rows; between two of them the reads of projects have their turn.
 */
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
    const { id, run_at, owner, priority } = table
    const wanted = {
      queue: sql<string>`${queue_column}`,
      // Idle rows are no condition, because an index alone tells where a part ends.
      count: sql<number>`sum(CASE WHEN ${rows.idle} THEN 0 ELSE 1 END)`,
      oldest: sql<number | null>`min(CASE WHEN NOT (${rows.idle}) THEN ${rows.wanted_since} END)`,
      held_by: sql<string | null>`CASE WHEN ${isHeld} THEN ${owner} END`,
    }
    const counted = (which: SQL | undefined) => (reader: Reader) =>
      reader.select(wanted).from(table).where(which).groupBy(wanted.queue, wanted.held_by)
    const walk = (which: SQL | undefined, along: Along) =>
      inParts(db, table, { which, along, at_once }, counted)
    for (const level of Object.values(PRIORITIES)) {
      for await (const found of walk(and(isReady, eq(priority, level)), [run_at, id]))
        add(lineOf(found.queue), found)
    }
    for await (const found of walk(isHeld, [owner, id])) {
      add(lineOf(found.queue), found)
      if (found.held_by && found.held_by !== found.queue) add(lineOf(found.held_by), found)
    }
    for (const found of await readOfAll(db, counted(isLeased))) {
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
    for await (const found of walk(recent, [run_at, id]))
      lineOf(found.queue).failed_24h += Number(found.count)
    return lines
  }

export const countJobs = (at_once?: number) =>
  countTable(jobRows, jobs.name, ({ name }) => name, at_once)

/** Columns of an index in its order, which no two rows have alike. */
type Along = [AnySQLiteColumn, AnySQLiteColumn]

interface Walk {
  which: SQL | undefined
  along: Along
  at_once: number
}

/** What `counted` finds in one part of the rows after the other. */
async function* inParts<Found>(
  db: Reader,
  table: SQLiteTable,
  { which, along: [first, second], at_once }: Walk,
  counted: (which: SQL | undefined) => (db: Reader) => Select<Found>,
): AsyncGenerator<Found> {
  const place = sql`(${first}, ${second})`
  const pairOf = (row: Edge) =>
    sql`(${sql.param(row.first, first)}, ${sql.param(row.second, second)})`
  for (let after: Edge | undefined; ; ) {
    const rest = and(which, after && sql`${place} > ${pairOf(after)}`)
    const [last] = await readOfAll(db, (reader) => {
      const edge = reader.select({ first, second }).from(table).where(rest)
      return edge
        .orderBy(first, second)
        .limit(1)
        .offset(at_once - 1)
    })
    yield* await readOfAll(db, counted(and(rest, last && sql`${place} <= ${pairOf(last)}`)))
    if (!last) return
    after = last
  }
}

/** The last row of a part. */
interface Edge {
  first: unknown
  second: unknown
}
