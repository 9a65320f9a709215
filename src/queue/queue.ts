import { and, asc, eq, inArray, type SQL, sql } from "drizzle-orm"
import { millis, millisFrom, now } from "../core/time"
import { countHeld, pauseReason, providerHold, underHold } from "../jobs/holds"
import { pausedQueues } from "../jobs/tables"
import { HELD, RESTORE_HOLD, RESTORE_REASON } from "../jobs/work-item"
import { isLeased, isReady } from "../jobs/work-rows"
import { isScheduled, type Message, nextAttemptAt, wantedSince } from "../messages/facts"
import { messageRows } from "../messages/pipeline"
import { isClaimed } from "../messages/standing"
import { messages } from "../messages/tables"
import { refusalFor, waitingReason } from "../providers/routing"
import { heldIn, holdName, isComplaintHold } from "../reputation/complaint-holds"
import type { Reader } from "../store/store"
import { deliveryRows, isHeldByEndpoint, isInFlight, WEBHOOKS } from "../webhooks/delivery-rows"
import { deliveries, webhooks } from "../webhooks/tables"

/** Rows of each kind that are looked at one by one; of a longer queue the rest is only counted. */
const MOST_ROWS = 2000

type State = "waiting" | "retrying" | "running" | "held"

/** One piece of open work. */
interface Work {
  state: State
  reason: string | null
  since: string
  next_attempt_at: string | null
  /** The end of its lease; null while it is not claimed. */
  lease_until: string | null
  /** Whose mail server it is for; none for what is no mail, or is scheduled for later. */
  domain?: string
}

interface StateLine {
  queue: string
  state: State
  reason: string | null
  count: number
  oldest_seconds: number
  next_attempt_at: string | null
  /** The first lease to run out; after it another worker takes the work up. */
  lease_until: string | null
}

interface DomainLine {
  domain: string
  waiting: number
  running: number
  /** Until when nothing goes there, because every piece was put off. */
  paused_until: string | null
  reason: string | null
}

/** A project's open work: by queue, state and reason, and of its mail by the recipient's domain. */
export async function openWork(db: Reader, project_id: string) {
  const [email, hooks] = [await openEmail(db, project_id), await openDeliveries(db, project_id)]
  const by_state = [...byState("email", email), ...byState("webhooks", hooks)]
  return { by_state, by_domain: byDomain(email.flatMap(({ rows }) => rows)) }
}

/** The oldest rows of a queue, and how many more of the same kind there are. */
interface Found {
  rows: Work[]
  more: number
  state: State
  /** All of them wait for the same, also those that were only counted. */
  is_one?: true
}

async function openEmail(db: Reader, project_id: string): Promise<Found[]> {
  const ours = and(
    eq(messages.project_id, project_id),
    eq(messages.status, "queued"),
    eq(messages.channel, "email"),
  )
  const look = (which: SQL | undefined) =>
    db.select(WAITING_MAIL).from(messages).where(which).orderBy(asc(messages.id)).limit(MOST_ROWS)
  const running = await look(and(ours, isClaimed(db)))
  const others = await look(and(ours, sql`NOT (${isClaimed(db)})`))
  const counted =
    others.length < MOST_ROWS ? 0 : (await countOf(db, messages, ours)) - running.length
  const held = [
    await heldEmail(db, project_id, others),
    await heldByComplaints(db, project_id, others),
    await heldAfterRestore(db, project_id, others),
  ]
  const left = new Set(held.flatMap(({ mails }) => mails))
  const waiting = others.filter((row) => !left.has(row))
  const more = held.reduce((rest, one) => rest - one.more, counted - others.length)
  return [
    { state: "running", more: 0, rows: running.map((row) => emailWork(row, "running")) },
    {
      state: "waiting",
      more: counted === 0 ? 0 : Math.max(0, more),
      rows: waiting.map((row) => emailWork(row, "waiting")),
    },
    ...held.map(({ more, work }): Found => ({ state: "held", more, rows: work, is_one: true })),
  ]
}

const { id, status, status_reason, created_at, recipient, recipients } = messages
const { state, run_at, attempt, owner, lease_until } = messages
const { scheduled_at, last_event_type } = messages

const WAITING_MAIL = {
  ...{ id, status, status_reason, created_at, recipient, recipients },
  ...{ state, run_at, attempt, owner, lease_until },
  ...{ scheduled_at, last_event_type },
}

type WaitingMail = Pick<Message, keyof typeof WAITING_MAIL>

/** What waits for a provider that refuses our login, with what it waits for. */
async function heldEmail(db: Reader, project_id: string, rows: WaitingMail[]) {
  const refusal = await refusalFor(db, "email_provider", project_id)
  if (!refusal) return { mails: [], work: [], more: 0 }
  const by = providerHold(project_id)
  const mails = rows.filter((row) => row.state === HELD && row.owner === by)
  const wait = { reason: waitingReason(refusal), next_attempt_at: refusal.next_probe_at }
  const work = mails.map((row) => ({ ...emailWork(row, "held"), ...wait }))
  const more = Math.max(0, (await countHeld(db, messageRows, by)) - mails.length)
  return { mails, work, more }
}

/** Mail that waits for the time that its sender chose holds nothing up, so no domain counts it. */
const SCHEDULED = "scheduled for a later time"

/** What waits because people complained about its tag or template. */
async function heldByComplaints(db: Reader, project_id: string, rows: WaitingMail[]) {
  const mails = rows.filter((row) => row.state === HELD && isComplaintHold(row.owner))
  const work = mails.map((row) => emailWork(row, "held"))
  if (mails.length === 0 || rows.length < MOST_ROWS) return { mails, work, more: 0 }
  let all = 0
  for (const { id } of await heldIn(db, project_id)) {
    all += await countHeld(db, messageRows, holdName(id))
  }
  return { mails, work, more: Math.max(0, all - mails.length) }
}

/** What was open in a restored copy, until an operator resumes or drops it. */
async function heldAfterRestore(db: Reader, project_id: string, rows: WaitingMail[]) {
  const mails = rows.filter((row) => row.state === HELD && row.owner === RESTORE_HOLD)
  const work = mails.map((row) => ({ ...emailWork(row, "held"), reason: RESTORE_REASON }))
  if (mails.length === 0 || rows.length < MOST_ROWS) return { mails, work, more: 0 }
  const ours = and(eq(messages.project_id, project_id), eq(messages.channel, "email"))
  const all = await countOf(db, messages, and(ours, underHold(messageRows, RESTORE_HOLD)))
  return { mails, work, more: Math.max(0, all - mails.length) }
}

function emailWork(row: WaitingMail, state: State): Work {
  const work = dueWork(row, state)
  if (state !== "waiting" || !isScheduled(row) || row.run_at <= now()) return work
  const { domain: _, ...timed } = work
  return { ...timed, reason: row.status_reason ?? SCHEDULED }
}

const dueWork = (row: WaitingMail, state: State): Work => ({
  state: state === "waiting" && row.status_reason !== null ? "retrying" : state,
  reason: row.status_reason,
  since: wantedSince(row),
  next_attempt_at: state === "running" ? null : nextAttemptAt(row),
  lease_until: state === "running" ? row.lease_until : null,
  domain: row.recipient.slice(row.recipient.lastIndexOf("@") + 1),
})

/** What is looked at; what is attempted by this process is among the rows that are ready. */
const OPEN: { state: State; which: SQL | undefined; is_restored?: true }[] = [
  { state: "waiting", which: isReady },
  { state: "running", which: isLeased },
  { state: "held", which: isHeldByEndpoint },
  { state: "held", which: underHold(deliveryRows, RESTORE_HOLD), is_restored: true },
]

async function openDeliveries(db: Reader, project_id: string): Promise<Found[]> {
  const endpoints = await db
    .select({ id: webhooks.id, reason: webhooks.disabled_reason })
    .from(webhooks)
    .where(eq(webhooks.project_id, project_id))
  if (endpoints.length === 0) return []
  const pause = await pauseOf(db, WEBHOOKS)
  const reasons = new Map(endpoints.map(({ id, reason }) => [id, reason]))
  const { id, webhook_id, state: work_state, status, last_error, created_at } = deliveries
  const { run_at, lease_until } = deliveries
  const found: Found[] = []
  for (const { state, which, is_restored } of OPEN) {
    const ours = and(inArray(webhook_id, [...reasons.keys()]), which)
    const rows = await db
      .select({
        id,
        webhook_id,
        state: work_state,
        status,
        last_error,
        created_at,
        run_at,
        lease_until,
      })
      .from(deliveries)
      .where(ours)
      .limit(MOST_ROWS)
    const more = rows.length < MOST_ROWS ? 0 : (await countOf(db, deliveries, ours)) - rows.length
    const work = rows.map((row) => {
      const running = isInFlight(db, row)
      const why = is_restored ? RESTORE_REASON : (reasons.get(row.webhook_id) ?? null)
      const one = deliveryWork(row, running, why)
      return pause !== null && state === "waiting" && !running ? { ...one, reason: pause } : one
    })
    found.push({ state, more, rows: work, ...(is_restored && { is_one: is_restored }) })
  }
  return found
}

/** Why nothing of the queue begins, if an operator paused it. */
async function pauseOf(db: Reader, queue: string): Promise<string | null> {
  const rows = db.select({ queue: pausedQueues.queue }).from(pausedQueues)
  const [paused] = await rows.where(eq(pausedQueues.queue, queue))
  return paused ? pauseReason(queue) : null
}

type DeliveryRow = Pick<
  typeof deliveries.$inferSelect,
  "status" | "last_error" | "created_at" | "run_at" | "lease_until"
>

function deliveryWork(
  { status, last_error, created_at: since, run_at, lease_until }: DeliveryRow,
  running: boolean,
  held_reason: string | null,
): Work {
  if (running) return { since, next_attempt_at: null, lease_until, state: "running", reason: null }
  const work = { since, lease_until: null }
  if (status === "held") {
    return { ...work, next_attempt_at: null, state: "held", reason: held_reason }
  }
  const state = status === "failed" ? "retrying" : "waiting"
  return { ...work, next_attempt_at: run_at, state, reason: last_error }
}

async function countOf(
  db: Reader,
  table: typeof messages | typeof deliveries,
  wanted: ReturnType<typeof and>,
): Promise<number> {
  const [row] = await db.select({ n: sql<number>`count(*)` }).from(table).where(wanted)
  return Number(row?.n ?? 0)
}

function byState(queue: string, found: Found[]): StateLine[] {
  const lines = new Map<string, StateLine>()
  const add = (work: Work, count: number) => {
    const { state, reason, since, next_attempt_at, lease_until } = work
    const name = `${state} ${reason}`
    const oldest_seconds = Math.max(0, Math.floor((millis() - millisFrom(since)) / 1000))
    const known = lines.get(name) ?? blank(queue, state, reason)
    known.count += count
    known.oldest_seconds = Math.max(known.oldest_seconds, oldest_seconds)
    known.next_attempt_at = earlier(known.next_attempt_at, next_attempt_at)
    known.lease_until = earlier(known.lease_until, lease_until)
    lines.set(name, known)
  }
  for (const { rows, more, state, is_one } of found) {
    for (const row of rows) add(row, 1)
    const last = rows.at(-1)
    if (more === 0 || !last) continue
    add(is_one ? last : { ...last, state, reason: null, next_attempt_at: null }, more)
  }
  return [...lines.values()].sort((a, b) => b.oldest_seconds - a.oldest_seconds)
}

const blank = (queue: string, state: State, reason: string | null): StateLine => ({
  queue,
  state,
  reason,
  count: 0,
  oldest_seconds: 0,
  next_attempt_at: null,
  lease_until: null,
})

function byDomain(work: Work[]): DomainLine[] {
  const domains = new Map<string, Work[]>()
  for (const one of work) {
    const { domain } = one
    if (domain === undefined) continue
    const list = domains.get(domain) ?? []
    list.push(one)
    domains.set(domain, list)
  }
  const lines = [...domains].map(([domain, list]) => lineOf(domain, list))
  return lines.sort((a, b) => b.waiting + b.running - a.waiting - a.running)
}

function lineOf(domain: string, list: Work[]): DomainLine {
  const waiting = list.filter(({ state }) => state !== "running")
  const put_off = waiting.filter(({ next_attempt_at }) => (next_attempt_at ?? "") > now())
  const paused = waiting.length > 0 && put_off.length === waiting.length
  const first = put_off.map(({ next_attempt_at }) => next_attempt_at).reduce(earlier, null)
  return {
    domain,
    waiting: waiting.length,
    running: list.length - waiting.length,
    paused_until: paused ? first : null,
    reason: waiting.findLast(({ reason }) => reason !== null)?.reason ?? null,
  }
}

const earlier = (a: string | null, b: string | null): string | null =>
  a === null || b === null ? (a ?? b) : a < b ? a : b
