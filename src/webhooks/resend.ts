import { and, eq, gt, inArray, isNull, lt, type SQL, sql } from "drizzle-orm"
import { now } from "../core/time"
import { events } from "../events/tables"
import * as longJob from "../long-jobs/long-jobs"
import type { Handler } from "../store/job-handler"
import { enqueue, type Job, PRIORITIES } from "../store/queue"
import type { Reader, Tx } from "../store/store"
import { ringPlanned } from "./bell"
import { createdSince, oneMore } from "./deliveries"
import { countEvents, replayEvents } from "./from-events"
import { release } from "./hold"
import { notInHand } from "./in-hand"
import { ours, type WebhookRow } from "./record"
import type { Part, Resend } from "./resend-part"
import { deliveries, webhooks } from "./tables"

/** Deliveries of one transaction: others are to get their turn between. */
const AT_ONCE = 200

/** Each part is a job of its own, which the one before enqueues as it ends: none runs twice. */
export const webhookResend: Job<Resend> = {
  name: "webhooks.resend",
  schedule: (attempt, age) => (age > 86_400 ? undefined : Math.min(5 * attempt, 300)),
}

export const resend: Handler<Resend> = {
  run: async (payload) => ({ done: (tx) => step(tx, payload) }),
  onDead: async (tx, { project_id, job_id }, message) => {
    await longJob.finish(tx, project_id, job_id, { error: { code: "internal_error", message } })
  },
}

async function step(tx: Tx, payload: Resend): Promise<void> {
  const { project_id, webhook_id, job_id, what } = payload
  const end = (ending: longJob.Ending) => longJob.finish(tx, project_id, job_id, ending)
  const [webhook] = await tx.select().from(webhooks).where(ours(project_id, webhook_id))
  if (!webhook)
    return end({ error: { code: "webhook_not_found", message: "The endpoint was deleted." } })
  if (what !== "retry" && webhook.status !== "active") {
    return end({
      error: { code: "conflict", message: "The endpoint was disabled while the job was running." },
    })
  }
  if (!(await longJob.progress(tx, project_id, job_id))) return
  const { done, failed = 0, after } = await part(tx, webhook, payload)
  if (done + failed > 0) await longJob.progress(tx, project_id, job_id, { done, failed })
  if (after === null) {
    await tellTotal(tx, payload)
    return end({})
  }
  const next = { payload: { ...payload, after }, project_id, priority: PRIORITIES.bulk }
  await enqueue(tx, webhookResend, next)
}

/** What was counted beforehand is less by what nobody wanted, or somebody else took. */
async function tellTotal(tx: Tx, { project_id, job_id }: Resend): Promise<void> {
  const { progress } = await longJob.find(tx, project_id, job_id)
  await longJob.progress(tx, project_id, job_id, { total: progress.done + progress.failed })
}

async function part(tx: Tx, webhook: WebhookRow, payload: Resend): Promise<Part> {
  const { what, since, until, event_types } = payload
  if (what === "all") return replayEvents(tx, webhook, payload, AT_ONCE)
  if (what !== "held") return again(tx, payload)
  const span = {
    until,
    ...(since !== null && { since }),
    ...(event_types.length && { event_types }),
  }
  const done = await release(tx, webhook, span, AT_ONCE)
  return { done, after: done < AT_ONCE ? null : "" }
}

/** The next deliveries of these states, each for one more attempt. */
async function again(tx: Tx, payload: Resend): Promise<Part> {
  const { after, what } = payload
  const { id, event_id, body } = deliveries
  const next = and(wanted(payload), after === null ? undefined : gt(id, after))
  const rows = await tx
    .select({
      id,
      has_body: sql<number>`CASE WHEN ${body} IS NULL THEN 0 ELSE 1 END`,
      event: events.id,
    })
    .from(deliveries)
    .leftJoin(events, eq(events.id, event_id))
    .where(next)
    .orderBy(id)
    .limit(AT_ONCE)
  const sendable = rows.filter(({ has_body, event }) => Number(has_body) === 1 || event !== null)
  const ids = sendable.map((row) => row.id)
  const changes = {
    status: "pending" as const,
    trigger: what === "retry" ? ("manual" as const) : ("replay" as const),
    by_hand: what === "retry",
    next_attempt_at: now(),
    completed_at: null,
    max_attempts: oneMore,
  }
  // One that was begun or changed by others meanwhile is left to them.
  const still = and(inArray(id, ids), isNull(deliveries.owner), inStates(payload), notInHand())
  const changed =
    ids.length === 0 ? [] : await tx.update(deliveries).set(changes).where(still).returning({ id })
  if (changed.length > 0) tx.afterCommit(ringPlanned)
  const last = rows.at(-1)
  return {
    done: changed.length,
    failed: rows.length - changed.length,
    after: rows.length < AT_ONCE || !last ? null : last.id,
  }
}

const inStates = ({ status }: Resend) => inArray(deliveries.status, status)

function wanted(payload: Omit<Resend, "job_id">): SQL | undefined {
  const { project_id, webhook_id, since, until, event_types, what, status } = payload
  return and(
    eq(deliveries.project_id, project_id),
    eq(deliveries.webhook_id, webhook_id),
    what === "held" ? sql`${deliveries.status} = 'held'` : inArray(deliveries.status, status),
    since === null ? undefined : createdSince(since),
    lt(deliveries.created_at, until),
    event_types.length === 0 ? undefined : inArray(deliveries.event_type, event_types),
  )
}

/** How much there is to do, as far as it is known before it is done. */
export async function countOf(db: Reader, payload: Omit<Resend, "job_id">): Promise<number> {
  if (payload.what === "all") return countEvents(db, payload)
  const [row] = await db
    .select({ n: sql<number>`count(*)` })
    .from(deliveries)
    .where(wanted(payload))
  return Number(row?.n ?? 0)
}
