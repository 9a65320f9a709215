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

interface CountedTable<Row extends WorkRow> {
  /** The column that names the queue of a row; a text is the queue of all. */
  queue: AnySQLiteColumn | string
  queueOf: (row: Row) => string
  /** What waits or is held, each part with the index that has it. */
  waiting?: IndexedRows[]
  /** Rows that one statement counts; between two of them the reads of projects have their turn. */
  at_once?: number | undefined
}

/** Rows that an index has, and its columns, which no two rows have alike. */
type IndexedRows = [which: SQL | undefined, along: AnySQLiteColumn[]]

/** Counts a table of work by the queue of its rows. A hold that is no queue has a line, too. */
export const countTable =
  <Row extends WorkRow>(rows: WorkRows<Row>, counting: CountedTable<Row>): CountQueues =>
  async (db) => {
    const { table } = rows
    const { id, run_at, owner, priority } = table
    const { queue, queueOf, at_once = AT_ONCE } = counting
    const levels = Object.values(PRIORITIES)
    const {
      waiting = [
        ...levels.map((one): IndexedRows => [and(isReady, eq(priority, one)), [run_at, id]]),
        [isHeld, [owner, id]],
      ],
    } = counting
    const lines: QueueTotals = new Map()
    const lineOf = (name: string | null) => {
      const known = name ?? String(queue)
      const line = lines.get(known) ?? blank()
      lines.set(known, line)
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
    const wanted = {
      queue: typeof queue === "string" ? sql<null>`NULL` : sql<string>`${queue}`,
      count: sql<number>`count(*)`,
      oldest: sql<number>`min(${rows.wanted_since})`,
      held_by: sql<string | null>`CASE WHEN ${isHeld} THEN ${owner} END`,
    }
    const groups = typeof queue === "string" ? [] : [wanted.queue]
    const counted = (which: SQL | undefined) => (reader: Reader) =>
      reader
        .select(wanted)
        .from(table)
        .where(which)
        .groupBy(...groups, wanted.held_by)
    const walk = (part: IndexedRows) => inParts(db, table, part, at_once, counted)
    for (const part of waiting) {
      for await (const found of walk(part)) {
        add(lineOf(found.queue), found)
        if (found.held_by && found.held_by !== found.queue) add(lineOf(found.held_by), found)
      }
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
    for await (const found of walk([recent, [run_at, id]]))
      lineOf(found.queue).failed_24h += Number(found.count)
    return lines
  }

export const countJobs = (at_once?: number) =>
  countTable(jobRows, { queue: jobs.name, queueOf: ({ name }) => name, at_once })

/** What `counted` finds in one part of the rows after the other. */
async function* inParts<Found>(
  db: Reader,
  table: SQLiteTable,
  [which, along]: IndexedRows,
  at_once: number,
  counted: (which: SQL | undefined) => (db: Reader) => Select<Found>,
): AsyncGenerator<Found> {
  const place = sql`(${sql.join(along, sql`, `)})`
  const columns = Object.fromEntries(along.map((column, at) => [at, column]))
  const edgeOf = (row: Record<string, unknown>) => {
    const values = along.map((column, at) => sql`${sql.param(row[at], column)}`)
    return sql`(${sql.join(values, sql`, `)})`
  }
  for (let after: Record<string, unknown> | undefined; ; ) {
    const rest = and(which, after && sql`${place} > ${edgeOf(after)}`)
    const [last] = await readOfAll(db, (reader) => {
      const edge = reader.select(columns).from(table).where(rest)
      return edge
        .orderBy(...along)
        .limit(1)
        .offset(at_once - 1)
    })
    yield* await readOfAll(db, counted(and(rest, last && sql`${place} <= ${edgeOf(last)}`)))
    if (!last) return
    after = last
  }
}
