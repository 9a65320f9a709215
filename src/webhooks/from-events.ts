import { and, asc, eq, gte, inArray, lt, type SQL, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom, now } from "../core/time"
import { events } from "../events/tables"
import { engine } from "../store/columns"
import type { Reader, Tx } from "../store/store"
import { ringPlanned } from "./bell"
import type { WebhookRow } from "./record"
import type { Part, Resend } from "./resend-part"
import { deliveryOf, plan, wants } from "./route-events"
import { deliveries } from "./tables"

type Span = Pick<Resend, "project_id" | "event_types" | "since" | "until">

/** An id is made a little before or after the row's time is read. */
const SKEW_MILLISECONDS = 60_000

/**
 * Plans the next events that the endpoint would take today: also those from before it was there.
 * One that is still on its way is left alone; what was held is let go; all others go out anew.
 */
export async function replayEvents(
  tx: Tx,
  webhook: WebhookRow,
  payload: Span & Pick<Resend, "after">,
  limit: number,
): Promise<Part> {
  const next = and(within(payload), behind(payload.after))
  const rows = tx.select().from(events).where(next)
  const some = await rows.orderBy(asc(events.position), asc(events.id)).limit(limit)
  const wanted = some.filter((event) => wants(webhook, event) && !isTest(event))
  const known = await statesOf(tx, webhook, wanted)
  const fresh = wanted.filter(({ id }) => !known.open.has(id) && !known.held.has(id))
  await plan(
    tx,
    fresh.map((event) => deliveryOf(webhook, event, "replay")),
  )
  const released = await releaseOf(tx, webhook, [...known.held])
  const last = some.at(-1)
  const after = some.length < limit || !last ? null : `${last.position} ${last.id}`
  return { done: fresh.length + released, after }
}

/** The test of an endpoint concerns no other, nor that one again. */
const isTest = ({ type, data, subject_id }: typeof events.$inferSelect) =>
  type === "webhook.test" || (data.simulated === true && subject_id !== null)

async function statesOf(tx: Tx, webhook: WebhookRow, wanted: { id: string }[]) {
  const ids = wanted.map(({ id }) => id)
  const { event_id, status, webhook_id } = deliveries
  const theirs = and(eq(webhook_id, webhook.id), inArray(event_id, ids))
  const rows =
    ids.length === 0 ? [] : await tx.select({ event_id, status }).from(deliveries).where(theirs)
  const having = (...states: string[]) =>
    new Set(rows.filter((row) => states.includes(row.status)).map((row) => row.event_id))
  return { open: having("pending", "failed"), held: having("held") }
}

async function releaseOf(tx: Tx, webhook: WebhookRow, event_ids: string[]): Promise<number> {
  if (event_ids.length === 0) return 0
  const theirs = and(
    eq(deliveries.webhook_id, webhook.id),
    inArray(deliveries.event_id, event_ids),
    eq(deliveries.status, "held"),
  )
  const changes = { status: "pending" as const, trigger: "replay" as const, next_attempt_at: now() }
  const rows = await tx
    .update(deliveries)
    .set(changes)
    .where(theirs)
    .returning({ id: deliveries.id })
  tx.afterCommit(ringPlanned)
  return rows.length
}

/** Of the types; what the endpoint's own filter leaves out is still counted. */
export async function countEvents(db: Reader, span: Span): Promise<number> {
  const [row] = await db.select({ n: sql<number>`count(*)` }).from(events).where(within(span))
  return Number(row?.n ?? 0)
}

function within({ project_id, event_types, since, until }: Span): SQL | undefined {
  return and(
    eq(events.project_id, project_id),
    event_types.length === 0 ? undefined : inArray(events.type, event_types),
    since === null ? undefined : gte(events.created_at, since),
    lt(events.created_at, until),
    // On SQLite ids are the order of the index: what is older is never looked at.
    since === null || engine === "postgres" ? undefined : fromId(since),
  )
}

const fromId = (since: string) =>
  and(
    eq(events.position, 0),
    gte(events.id, `evt_${firstIdAt(millisFrom(since) - SKEW_MILLISECONDS)}`),
  )

function behind(after: string | null): SQL | undefined {
  if (after === null) return undefined
  const [position = "0", id = ""] = after.split(" ")
  return sql`(${events.position}, ${events.id}) > (${sql.param(Number(position), events.position)}, ${id})`
}
