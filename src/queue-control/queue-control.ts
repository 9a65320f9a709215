import { and, eq, gt, not, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { log } from "../core/log"
import { millis, now, secondsFromNow } from "../core/time"
import { type Hold, heldProject, holders, unhold } from "../store/holding"
import type { Handlers } from "../store/job-handler"
import { LEASED } from "../store/queue"
import type { Reader, Store } from "../store/store"
import { jobs } from "../store/tables"
import { pausedQueues } from "./tables"

const LOOK_MILLISECONDS = 1000
const DAY_SECONDS = 86_400

/** Jobs that are not called like their queue. */
const QUEUES: Record<string, string> = { "message.deliver": "email" }

export const queueOf = (job_name: string): string => QUEUES[job_name] ?? job_name

/** The queue of what goes to one domain, which can be paused alone. */
export const queueOfDomain = (domain: string): string => `email:${domain}`

const DOMAIN_QUEUE = /^email:(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/

export interface QueueLine {
  queue: string
  /** Waiting, also for a later time or for the end of a pause. */
  depth: number
  oldest_seconds: number
  running: number
  failed_24h: number
  paused: boolean
}

/**
 * What an operator stopped. Work of a paused queue is put under the pause when its turn comes, once a
 * job, and given back when the pause ends; what runs is let run. Other nodes learn of it in a second.
 */
export class QueueControl {
  readonly #store: Store
  #names = new Set(["email"])
  #paused = new Set<string>()

  constructor(store: Store) {
    this.#store = store
  }

  /** The same table of jobs, where work of a paused queue is held when its turn comes. */
  over(handlers: Handlers): Handlers {
    this.#names = this.#names.union(new Set(Object.keys(handlers).map(queueOf)))
    const lines = Object.entries(handlers).map(([name, { schedule, handler }]) => {
      const run: typeof handler.run = async (payload, job) => {
        const hold = this.holdOf(queueOf(name))
        if (!hold) return handler.run(payload, job)
        return { hold, holding: async (tx) => handler.onHold?.(tx, payload, hold) }
      }
      return [name, { schedule, handler: { ...handler, run } }]
    })
    return Object.fromEntries(lines)
  }

  /** Knows the pauses when it resolves, and follows them until the returned function is called. */
  async start(): Promise<() => void> {
    await this.#load()
    let looking = false
    const look = async () => {
      if (looking) return
      looking = true
      try {
        await this.#load()
        await this.#release()
      } catch (error) {
        log.warn("the pauses of queues could not be read", { error })
      }
      looking = false
    }
    const timer = setInterval(look, LOOK_MILLISECONDS)
    return () => clearInterval(timer)
  }

  /** Why work of the queue waits; undefined while it does not. */
  holdOf(queue: string): Hold | undefined {
    if (!this.#paused.has(queue)) return undefined
    return { until: null, reason: `The queue ${queue} is paused by an operator.`, by: queue }
  }

  /** Throws 404 for a queue there is none of, 409 for one that is paused. */
  async pause(queue: string, paused_by: string | null): Promise<QueueLine> {
    this.#demand(queue)
    const row = { queue, paused_by, paused_at: now() }
    const made = await this.#store.tx((tx) =>
      tx.insert(pausedQueues).values(row).onConflictDoNothing().returning(),
    )
    if (made.length === 0) fail("conflict", `The queue ${queue} is paused.`, { reason: "paused" })
    log.info("a queue was paused", { queue, paused_by })
    await this.#load()
    return this.#find(queue)
  }

  /** Throws 404 for a queue there is none of, 409 for one that is not paused. */
  async resume(queue: string): Promise<QueueLine> {
    this.#demand(queue)
    const ended = await this.#store.tx((tx) =>
      tx.delete(pausedQueues).where(eq(pausedQueues.queue, queue)).returning(),
    )
    if (ended.length === 0) {
      fail("conflict", `The queue ${queue} is not paused.`, { reason: "not_paused" })
    }
    log.info("a queue goes on", { queue })
    await this.#load()
    while ((await unhold(this.#store, queue)) > 0);
    return this.#find(queue)
  }

  /** Every queue, and every domain that is paused, by name. */
  async list(): Promise<QueueLine[]> {
    const lines = await linesOf(this.#store.read)
    const domains = [...this.#paused].filter((queue) => DOMAIN_QUEUE.test(queue))
    return [...this.#names, ...domains].sort().map((queue) => ({
      ...(lines.get(queue) ?? blank(queue)),
      paused: this.#paused.has(queue),
    }))
  }

  async #find(queue: string): Promise<QueueLine> {
    const found = (await this.list()).find((line) => line.queue === queue)
    return found ?? { ...((await linesOf(this.#store.read)).get(queue) ?? blank(queue)) }
  }

  #demand(queue: string) {
    if (this.#names.has(queue) || DOMAIN_QUEUE.test(queue)) return
    fail("not_found", `There is no queue ${queue}.`)
  }

  async #load() {
    const rows = await this.#store.read.select().from(pausedQueues)
    this.#paused = new Set(rows.map(({ queue }) => queue))
  }

  /** What is held by a pause that ended while a process died, or on another node. */
  async #release() {
    for (const queue of await holders(this.#store.read)) {
      const is_pause = heldProject(queue) === undefined
      if (is_pause && !this.#paused.has(queue)) while ((await unhold(this.#store, queue)) > 0);
    }
  }
}

const blank = (queue: string): QueueLine => ({
  queue,
  depth: 0,
  oldest_seconds: 0,
  running: 0,
  failed_24h: 0,
  paused: false,
})

/** By queue; what a domain's pause holds counts for the domain, and for the whole queue. */
async function linesOf(db: Reader): Promise<Map<string, QueueLine>> {
  const { name, state, owner, created_at, dead_at } = jobs
  const is_dead = sql`state = 2` // as a literal, for the partial index
  const held_by = sql<string | null>`CASE WHEN ${state} = 3 THEN ${owner} END`
  const open = await db
    .select({ name, state, held_by, count: sql<number>`count(*)`, oldest: sql`min(${created_at})` })
    .from(jobs)
    .where(not(is_dead))
    .groupBy(name, state, held_by)
  const failed = await db
    .select({ name, count: sql<number>`count(*)` })
    .from(jobs)
    .where(and(is_dead, gt(dead_at, secondsFromNow(-DAY_SECONDS))))
    .groupBy(name)
  const lines = new Map<string, QueueLine>()
  const lineOf = (queue: string) => {
    const line = lines.get(queue) ?? blank(queue)
    lines.set(queue, line)
    return line
  }
  for (const row of open) {
    const queue = queueOf(row.name)
    const also = row.held_by && row.held_by !== queue ? [row.held_by] : []
    for (const line of [queue, ...also].map(lineOf)) {
      if (row.state === LEASED) line.running += Number(row.count)
      else line.depth += Number(row.count)
      const age = Math.floor((millis() - Number(row.oldest)) / 1000)
      line.oldest_seconds = Math.max(line.oldest_seconds, age)
    }
  }
  for (const row of failed) lineOf(queueOf(row.name)).failed_24h += Number(row.count)
  return lines
}
