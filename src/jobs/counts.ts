import { and, gt, lte, sql } from "drizzle-orm"
import { newId } from "../core/ids"
import { millis, monotonic, nextTurn, secondsFromNow } from "../core/time"
import type { Reader } from "../store/store"
import { LEASED } from "./queue"
import { jobs } from "./tables"

const DAY_SECONDS = 86_400

/** Rows of one look: others are to get their turn between. */
const AT_ONCE = 10_000

/** Who counted for longer goes on believing it for so many times as long: a share of one in twenty. */
const QUICK_MS = 50
const TRUSTED_TIMES = 20

/** Jobs that are not called like their queue. */
const QUEUES: Record<string, string> = { "message.deliver": "email" }

export const queueOf = (job_name: string): string => QUEUES[job_name] ?? job_name

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

export type CountQueue = (db: Reader) => Promise<QueueCounts>

export type Lines = Map<string, QueueCounts>

export const blank = (): QueueCounts => ({
  depth: 0,
  oldest_seconds: 0,
  running: 0,
  failed_24h: 0,
})

/**
 * What waits, runs and failed, by queue. Every job is counted, some thousands at a time; of a long
 * queue the numbers may be some seconds old, since counting it must not keep it waiting.
 */
export class QueueLines {
  readonly #db: Reader
  readonly #others: Record<string, CountQueue>
  readonly #at_once: number
  #counted: { lines: Promise<Lines>; until: number } | undefined

  constructor(db: Reader, others: Record<string, CountQueue>, at_once = AT_ONCE) {
    this.#db = db
    this.#others = others
    this.#at_once = at_once
  }

  all(): Promise<Lines> {
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

  async #count(): Promise<Lines> {
    const lines = await jobLines(this.#db, this.#at_once)
    for (const [queue, count] of Object.entries(this.#others)) {
      lines.set(queue, await count(this.#db))
    }
    return lines
  }
}

/** What a domain's pause holds counts for the domain, and for the whole queue. */
async function jobLines(db: Reader, at_once: number): Promise<Lines> {
  const lines: Lines = new Map()
  const lineOf = (queue: string) => {
    const line = lines.get(queue) ?? blank()
    lines.set(queue, line)
    return line
  }
  for await (const row of openJobs(db, at_once)) {
    const queue = queueOf(row.name)
    const also = row.held_by && row.held_by !== queue ? [row.held_by] : []
    for (const line of [queue, ...also].map(lineOf)) {
      if (row.state === LEASED) line.running += Number(row.count)
      else line.depth += Number(row.count)
      const age = Math.floor((millis() - Number(row.oldest)) / 1000)
      line.oldest_seconds = Math.max(line.oldest_seconds, age)
    }
  }
  for (const { name, count } of await failedJobs(db)) {
    lineOf(queueOf(name)).failed_24h += Number(count)
  }
  return lines
}

const { id, name, state, owner, created_at, dead_at } = jobs

/** Along the ids, which rise with time, up to those of this moment. */
async function* openJobs(db: Reader, at_once: number) {
  const last = newId()
  const held_by = sql<string | null>`CASE WHEN ${state} = 3 THEN ${owner} END`
  const wanted = {
    name,
    state,
    held_by,
    count: sql<number>`count(*)`,
    oldest: sql`min(${created_at})`,
  }
  for (let after = ""; after < last; await nextTurn()) {
    const beyond = and(gt(id, after), lte(id, last))
    const edge = db
      .select({ id })
      .from(jobs)
      .where(beyond)
      .orderBy(id)
      .limit(1)
      .offset(at_once - 1)
    const upto = (await edge)[0]?.id ?? last
    const part = and(gt(id, after), lte(id, upto), sql`state <> 2`)
    yield* await db.select(wanted).from(jobs).where(part).groupBy(name, state, held_by)
    after = upto
  }
}

/** As a literal, for the partial index. */
const failedJobs = (db: Reader) =>
  db
    .select({ name, count: sql<number>`count(*)` })
    .from(jobs)
    .where(and(sql`state = 2`, gt(dead_at, secondsFromNow(-DAY_SECONDS))))
    .groupBy(name)
