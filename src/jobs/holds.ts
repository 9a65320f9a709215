import {
  and,
  count,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  lte,
  notInArray,
  or,
  type SQL,
} from "drizzle-orm"
import { fail } from "../core/errors"
import { log } from "../core/log"
import { now } from "../core/time"
import { wireDomain } from "../lib/address"
import { countUpTo } from "../store/rows"
import type { Reader, Select, Store, Tx } from "../store/store"
import { blank, type CountQueues, type QueueLine, QueueLines, type QueueTotals } from "./counts"
import { CRASH_HOLD } from "./crash-guard"
import { pausedQueues } from "./tables"
import { HELD, type Hold, READY, RESTORE_HOLD, type WorkRow } from "./work-item"
import { isHeld, isLeased, isReady, type WorkRows, wakeUpOf } from "./work-rows"

export type AnyWorkRows = Pick<WorkRows<WorkRow>, "name" | "table" | "freeOf" | "under_hold">

const AT_ONCE = 500

const FREE = { state: READY, owner: null, lease_until: null }

export const underHold = ({ table }: AnyWorkRows, by: string) => and(isHeld, eq(table.owner, by))

/** The holds that hold rows of the table now, one seek each. */
export async function holders(db: Reader, { table }: AnyWorkRows): Promise<string[]> {
  const found: string[] = []
  for (;;) {
    const after = found.at(-1)
    const beyond = and(isHeld, isNotNull(table.owner), after ? gt(table.owner, after) : undefined)
    const rows = db.select({ owner: table.owner }).from(table).where(beyond)
    const [next] = await rows.orderBy(table.owner).limit(1)
    if (!next?.owner) return found
    found.push(next.owner)
  }
}

/** The select that counts the rows under a hold. There may be as many as messages: see `readHeavy`. */
export const heldCount = (db: Reader, rows: AnyWorkRows, by: string): Select<{ n: number }> =>
  db.select({ n: count() }).from(rows.table).where(underHold(rows, by))

/** Releases what is under a hold, some at a time. Returns how many rows that were. */
export async function unhold(store: Store, rows: AnyWorkRows, by: string): Promise<number> {
  const { id } = rows.table
  const under = store.read.select({ id }).from(rows.table).where(underHold(rows, by))
  const ids = (await under.limit(AT_ONCE)).map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => unholdThese(tx, rows, by, ids))
  return ids.length
}

/** Releases what no hold may keep for longer, some at a time. Returns how many rows that were. */
export async function unholdEnded(store: Store, rows: AnyWorkRows): Promise<number> {
  const { id, owner, lease_until } = rows.table
  const ended = and(isHeld, isNotNull(lease_until), lte(lease_until, now()))
  const some = await store.read.select({ id, owner }).from(rows.table).where(ended).limit(AT_ONCE)
  for (const [by, list] of Map.groupBy(some, (row) => row.owner ?? "")) {
    const ids = list.map((row) => row.id)
    await store.tx((tx) => unholdThese(tx, rows, by, ids))
  }
  return some.length
}

/** Releases those of these rows that are under a hold. Returns how many. */
export async function unholdThese(
  tx: Tx,
  rows: AnyWorkRows,
  by: string,
  ids: string[],
  change: { run_at?: string } = {},
): Promise<number> {
  const { table, name, under_hold } = rows
  const freed = await tx
    .update(table)
    .set({ ...FREE, ...under_hold.frees, ...change })
    .where(and(inArray(table.id, ids), underHold(rows, by)))
    .returning({ id: table.id })
  tx.afterCommit(wakeUpOf(tx, name).wakeUp)
  return freed.length
}

/** Rows of one transaction: each such update takes some 50 ms. */
const HELD_AT_ONCE = 5000

export interface HeldTable {
  rows: AnyWorkRows
  which?: SQL | undefined
}

/**
 * Holds all open work of these tables under RESTORE_HOLD: waiting work, claimed work, and work under another hold.
 * Work that ended the process again and again stays under its own hold. No loop may run. Returns the number of rows.
 * It may be called again after a crash.
 */
export async function holdOpenWork(
  store: Store,
  tables: HeldTable[],
  progress: (held: number) => void = () => {},
): Promise<number> {
  // Before the rows, because it says that they are not to be released. Without a row it ends by itself.
  const row = { queue: RESTORE_HOLD, paused_by: null, paused_at: now() }
  await store.tx((tx) => tx.insert(pausedQueues).values(row).onConflictDoNothing())
  let held = 0
  for (const { rows, which } of tables) {
    for (const state of [isReady, isLeased, isHeldElsewhere(rows)]) {
      let some: number
      do {
        some = await holdSome(store, rows, and(state, which))
        held += some
        if (some > 0) progress(held)
      } while (some === HELD_AT_ONCE)
    }
  }
  return held
}

const isHeldElsewhere = ({ table: { owner } }: AnyWorkRows) =>
  and(isHeld, or(isNull(owner), notInArray(owner, [RESTORE_HOLD, CRASH_HOLD])))

const holdSome = (store: Store, { table, under_hold }: AnyWorkRows, which: SQL | undefined) =>
  store.tx(async (tx) => {
    const { id } = table
    const some = tx.select({ id }).from(table).where(which).limit(HELD_AT_ONCE)
    const taken = { state: HELD, owner: RESTORE_HOLD, lease_until: null, ...under_hold.takes }
    const rows = await tx.update(table).set(taken).where(inArray(id, some)).returning({ id })
    return rows.length
  })

const PROVIDER_HOLD = "provider"

const EMAIL = "email"

/**
 * Holds a project's messages of a channel while no provider can deliver them, or those that only one `service` can
 * deliver. A pause has another name.
 */
export function providerHold(project_id: string, channel: string = EMAIL, service?: string) {
  const names =
    service === undefined ? [channel].filter((name) => name !== EMAIL) : [service, channel]
  return [PROVIDER_HOLD, ...names, project_id].join(":")
}

/** Whose messages are held so. */
export interface HeldFor {
  project_id: string
  channel: string
  /** The name of the provider that alone can deliver them. */
  service?: string | undefined
}

/** Undefined where another hold holds them. */
export function heldFor(by: string): HeldFor | undefined {
  const [project_id = "", ...names] = by.split(":").reverse()
  if (names.pop() !== PROVIDER_HOLD) return undefined
  const [channel = EMAIL, service] = names
  return { project_id, channel, service }
}

export const pauseReason = (queue: string) => `The queue ${queue} is paused by an operator.`

export const queueOfDomain = (domain: string): string => OF_DOMAIN + domain

const OF_DOMAIN = "email:"

/** `/readyz` waits for the warnings, so a longer queue is not counted to its end. */
const MOST_WARNED_OF = 1000

const FILLED_AT_START = `The queue ${RESTORE_HOLD} cannot be paused. A restore and \`belfry serve --hold\` fill it.`

/** What is written with a pause or its end, in the same transaction. */
export type OnPauseChange = (
  tx: Tx,
  action: "queue.paused" | "queue.resumed",
  queue: string,
) => Promise<void>

const notifyNobody: OnPauseChange = async () => {}

interface Paused {
  /** The queues that can be paused, besides single domains. */
  names: string[]
  tables: AnyWorkRows[]
  counts: CountQueues[]
}

/**
 * What an operator paused. Work of a paused queue is held when it is due, once a row, and
 * released when the pause ends; what runs goes on to its end. Other nodes learn of it in a second.
 */
export class QueuePauses {
  readonly #store: Store
  readonly #lines: QueueLines
  #names: ReadonlySet<string>
  readonly #tables: AnyWorkRows[]
  #paused = new Set<string>()

  constructor(store: Store, { names, tables, counts }: Paused) {
    this.#store = store
    this.#lines = new QueueLines(store.read, counts)
    this.#names = new Set(names)
    this.#tables = tables
  }

  add(names: string[]) {
    this.#names = new Set([...this.#names, ...names])
  }

  async load() {
    const rows = await this.#store.read.select().from(pausedQueues)
    this.#paused = new Set(rows.map(({ queue }) => queue))
  }

  /** Each second: learns the pauses, and releases what is held by one that ended. */
  async follow() {
    await this.load()
    await this.#release()
  }

  /** Why work of the queue waits; undefined while it does not. */
  holdOf(queue: string): Hold | undefined {
    if (!this.#paused.has(queue)) return undefined
    return { until: null, reason: pauseReason(queue), by: queue }
  }

  /** Throws 404 for a queue there is none of, 409 for one that is paused. */
  async pause(given: string, paused_by: string | null, notify = notifyNobody): Promise<QueueLine> {
    if (given === RESTORE_HOLD) return fail("conflict", FILLED_AT_START, { reason: "no_pause" })
    const queue = this.#nameOf(given)
    const row = { queue, paused_by, paused_at: now() }
    const made = await this.#store.tx(async (tx) => {
      const rows = await tx.insert(pausedQueues).values(row).onConflictDoNothing().returning()
      if (rows.length > 0) await notify(tx, "queue.paused", queue)
      return rows
    })
    if (made.length === 0) fail("conflict", `The queue ${queue} is paused.`, { reason: "paused" })
    log.info("a queue was paused", { queue, paused_by })
    await this.load()
    return this.#find(queue)
  }

  /** Throws 404 for a queue there is none of, 409 for one that is not paused. */
  async resume(given: string, notify = notifyNobody): Promise<QueueLine> {
    const queue = this.#nameOf(given)
    const ended = await this.#store.tx(async (tx) => {
      const rows = await tx.delete(pausedQueues).where(eq(pausedQueues.queue, queue)).returning()
      if (rows.length > 0) await notify(tx, "queue.resumed", queue)
      return rows
    })
    if (ended.length === 0) {
      fail("conflict", `The queue ${queue} is not paused.`, { reason: "not_paused" })
    }
    log.info("a queue was resumed", { queue })
    await this.load()
    // The first of them now, all others by `follow`, within a second.
    for (const rows of this.#tables) await unhold(this.#store, rows, queue)
    return this.#find(queue)
  }

  /** Every queue, and every domain that is paused, by name. */
  async list(): Promise<QueueLine[]> {
    const lines = await this.#lines.all()
    const others = [...this.#paused].filter((queue) => !this.#names.has(queue))
    return [...this.#names, ...others].sort().map((queue) => this.#line(lines, queue))
  }

  async warnings(): Promise<string[]> {
    if (!this.#paused.has(RESTORE_HOLD)) return []
    let all = 0
    for (const rows of this.#tables) {
      const { table } = rows
      const held = { rows: table, id: table.id, where: underHold(rows, RESTORE_HOLD) }
      all += await countUpTo(this.#store.read, held, MOST_WARNED_OF + 1)
    }
    const number = all > MOST_WARNED_OF ? `More than ${MOST_WARNED_OF}` : all
    return [`${number} sends, deliveries and jobs wait in the queue ${RESTORE_HOLD}.`]
  }

  async #find(queue: string): Promise<QueueLine> {
    return this.#line(await this.#lines.all(), queue)
  }

  #line(lines: QueueTotals, queue: string): QueueLine {
    const counts = lines.get(queue) ?? blank()
    return { queue, ...counts, paused: this.#paused.has(queue) }
  }

  /** The name as it is kept. Domains compare as A-labels. */
  #nameOf(given: string): string {
    if (this.#names.has(given) || given === RESTORE_HOLD) return given
    const text = given.startsWith(OF_DOMAIN) ? given.slice(OF_DOMAIN.length) : ""
    if (text === "") return fail("not_found", `There is no queue ${given}.`)
    const domain = wireDomain(text.replace(/\.$/, ""))
    if (domain !== undefined) return queueOfDomain(domain)
    return fail("not_found", `"${text}" is not a domain name. Give one such as example.com.`)
  }

  /** What is held by a pause that ended while a process died, or on another node. */
  async #release() {
    let has_restored = false
    for (const rows of this.#tables) {
      for (const by of await holders(this.#store.read, rows)) {
        has_restored ||= by === RESTORE_HOLD
        if (!this.#isPause(by) || this.#paused.has(by)) continue
        while ((await unhold(this.#store, rows, by)) > 0);
      }
    }
    if (!has_restored && this.#paused.has(RESTORE_HOLD)) await this.#endRestored()
  }

  #isPause = (by: string) => this.#names.has(by) || by.startsWith(OF_DOMAIN) || by === RESTORE_HOLD

  /** The last part of it was released or dropped. */
  async #endRestored() {
    const { queue } = pausedQueues
    await this.#store.tx((tx) => tx.delete(pausedQueues).where(eq(queue, RESTORE_HOLD)))
    log.info("nothing is held after the restore any more")
    await this.load()
  }
}
