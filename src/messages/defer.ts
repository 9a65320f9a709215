import { and, asc, eq, inArray, lte } from "drizzle-orm"
import { now } from "../core/time"
import { inFlightOf } from "../jobs/in-flight"
import { PRIORITIES } from "../jobs/work-item"
import { isReady } from "../jobs/work-rows"
import { domainOf } from "../lib/address"
import { short } from "../lib/text"
import type { Reader, Store } from "../store/store"
import { announce } from "./facts"
import { messages } from "./tables"

/** Due messages that are looked at in one go, and how many of them get the same time. */
const AT_ONCE = 2_000
const TOGETHER = 100

/** When the next `count` messages may be tried, and why not now. */
export type NextSlot = (count: number) => { until: string; reason: string }

/** Messages that all go to one domain, or those of a project, except what goes to the sandbox. */
export type MessagesOf = { domain: string } | { project_id: string }

/**
 * Gives what waits for one domain, or for the provider of one project, at the head of the queue its
 * times, many at a time: claimed one by one, a million messages for a slow server would keep all
 * others waiting. It counts as no attempt.
 * Resolves with how many were deferred; messages with recipients elsewhere are left alone.
 */
export async function deferAll(
  store: Store,
  whose: MessagesOf,
  nextSlot: NextSlot,
): Promise<number> {
  let count = 0
  for (const priority of [PRIORITIES.normal, PRIORITIES.bulk]) {
    const ids = await dueFor(store.read, whose, priority)
    const slots = chunks(ids).map((some) => ({ some, ...nextSlot(some.length) }))
    if (slots.length === 0) continue
    await store.tx(async (tx) => {
      for (const { some, until, reason } of slots) {
        const later = { run_at: until, status_reason: short(reason), updated_at: now() }
        const waiting = some.filter((id) => !inFlightOf(tx, "messages")?.has(id))
        const deferred = tx
          .update(messages)
          .set(later)
          .where(and(inArray(messages.id, waiting), isReady))
        for (const message of await deferred.returning(ANNOUNCED)) announce(tx, message, null)
      }
    })
    count += ids.length
  }
  return count
}

const { id, project_id, channel, status, status_reason, recipient, recipients } = messages
const { state, run_at, attempt, scheduled_at, created_at, sandbox } = messages

/** The columns that listeners need; rows have more. */
const ANNOUNCED = {
  ...{ id, project_id, channel, status, status_reason, recipient, recipients },
  ...{ state, run_at, attempt, scheduled_at, created_at },
}

/** The columns that say what a message waits for. */
const ADDRESSED = { id, project_id, sandbox, recipients }

async function dueFor(db: Reader, whose: MessagesOf, priority: number): Promise<string[]> {
  const is_due = and(isReady, eq(messages.priority, priority), lte(run_at, now()))
  const rows = await db
    .select(ADDRESSED)
    .from(messages)
    .where(and(is_due, eq(channel, "email")))
    .orderBy(asc(run_at), asc(id))
    .limit(AT_ONCE)
  const inFlight = inFlightOf(db, "messages")
  return rows.filter((row) => isOf(whose, row) && !inFlight?.has(row.id)).map((row) => row.id)
}

type Addressed = Pick<typeof messages.$inferSelect, keyof typeof ADDRESSED>

function isOf(whose: MessagesOf, row: Addressed): boolean {
  if ("project_id" in whose) return row.project_id === whose.project_id && !row.sandbox
  return row.recipients.every(({ email }) => domainOf(email) === whose.domain)
}

function chunks(ids: string[]): string[][] {
  const parts: string[][] = []
  for (let from = 0; from < ids.length; from += TOGETHER) {
    parts.push(ids.slice(from, from + TOGETHER))
  }
  return parts
}
