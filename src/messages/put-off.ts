import { and, asc, eq, inArray, lte, sql } from "drizzle-orm"
import { now } from "../core/time"
import { PRIORITIES } from "../jobs/queue"
import { jobs } from "../jobs/tables"
import { domainOf } from "../lib/address"
import { short } from "../lib/text"
import type { Reader, Store } from "../store/store"
import { announce } from "./facts"
import { deliverMessage } from "./pipeline"
import { messages, type Status } from "./tables"

/** Due jobs that are looked at in one go, and how many of them get the same time. */
const AT_ONCE = 2_000
const TOGETHER = 100

/** As a literal: a bound value would keep the database from using the partial index. */
const isReady = sql`state = 0`

/** When the next `count` of a domain may come, and why not now. */
export type Turn = (count: number) => { until: string; reason: string }

/** Messages that all go to one domain, or those of a project, except what goes to the sandbox. */
export type WaitingFor = { domain: string } | { project_id: string }

/**
 * Gives what waits for one domain, or for the provider of one project, at the head of the
 * queue its turns, many at a time: taken one by one, a million messages for who is slow would keep all
 * others waiting. It counts as no attempt.
 * Resolves with how many were put off; messages with recipients elsewhere are left alone.
 */
export async function putOff(store: Store, whose: WaitingFor, turn: Turn): Promise<number> {
  let count = 0
  for (const priority of [PRIORITIES.normal, PRIORITIES.bulk]) {
    const ids = await dueFor(store.read, whose, priority)
    const turns = chunks(ids).map((some) => ({ some, ...turn(some.length) }))
    if (turns.length === 0) continue
    await store.tx(async (tx) => {
      for (const { some, until, reason } of turns) {
        const later = { run_at: until, last_error: short(reason) }
        const put = tx
          .update(jobs)
          .set(later)
          .where(and(inArray(jobs.id, some), isReady))
        const moved = (await put.returning({ id: jobs.id })).map(({ id }) => id)
        if (moved.length === 0) continue
        const why = { next_attempt_at: until, status_reason: short(reason), updated_at: now() }
        const change = { ...why, status: "queued" as const }
        // "sending" is what a process left that died: nobody has their jobs now.
        const waiting = and(inArray(messages.id, moved), inArray(messages.status, OPEN))
        const told = tx.update(messages).set(change).where(waiting).returning(ANNOUNCED)
        for (const message of await told) announce(tx, message, null)
      }
    })
    count += ids.length
  }
  return count
}

const OPEN: Status[] = ["queued", "sending"]

const { id, project_id, channel, status, status_reason, recipient } = messages

/** What those who watch are told of; rows have much more. */
const ANNOUNCED = {
  id,
  project_id,
  channel,
  status,
  status_reason,
  recipient,
  next_attempt_at: messages.next_attempt_at,
  created_at: messages.created_at,
}

async function dueFor(db: Reader, whose: WaitingFor, priority: number): Promise<string[]> {
  const due = and(isReady, eq(jobs.priority, priority), lte(jobs.run_at, now()))
  const head = db
    .select({ id: jobs.id, name: jobs.name, run_at: jobs.run_at })
    .from(jobs)
    .where(due)
    .orderBy(asc(jobs.run_at), asc(jobs.id))
    .limit(AT_ONCE)
    .as("head")
  const rows = await db
    .select(NAMED)
    .from(head)
    .innerJoin(messages, eq(messages.id, head.id))
    .where(and(eq(head.name, deliverMessage.name), eq(messages.channel, "email")))
    .orderBy(asc(head.run_at), asc(head.id))
  return rows.filter((row) => isOf(whose, row)).map(({ id }) => id)
}

/** What tells whom a message waits for. */
const NAMED = {
  id,
  project_id,
  sandbox: messages.sandbox,
  recipients: messages.recipients,
}

function isOf(whose: WaitingFor, { project_id, sandbox, recipients }: Named): boolean {
  if ("project_id" in whose) return project_id === whose.project_id && !sandbox
  return recipients.every(({ email }) => domainOf(email) === whose.domain)
}

type Named = Pick<typeof messages.$inferSelect, keyof typeof NAMED>

function chunks(ids: string[]): string[][] {
  const parts: string[][] = []
  for (let from = 0; from < ids.length; from += TOGETHER) {
    parts.push(ids.slice(from, from + TOGETHER))
  }
  return parts
}
