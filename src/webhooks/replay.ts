import { fail } from "../core/errors"
import { now } from "../core/time"
import type { Caller } from "../identity/caller"
import * as longJob from "../long-jobs/long-jobs"
import { enqueue } from "../store/queue"
import type { Tx } from "../store/store"
import type { WebhookRow } from "./record"
import { countOf, webhookResend } from "./resend"
import type { Resend } from "./resend-part"
import * as webhooks from "./webhooks"

/** What is to be sent again: when it was first, and of which types. */
export interface Span {
  event_types: string[]
  since: string | null
  /** Exclusive. */
  until: string | null
}

/** Each delivery of these states gets one more attempt at once; none of them counts for the breaker. */
export async function bulkRetry(
  tx: Tx,
  caller: Caller,
  id: string,
  wish: Span & { status: ("failed" | "exhausted")[] },
): Promise<longJob.Job> {
  const webhook = await webhooks.hold(tx, caller.project_id, id)
  const { status, ...span } = wish
  return start(tx, caller, webhook, "webhook.bulk_retry", { what: "retry", status, ...span })
}

/**
 * Sends events again as if they had just happened: those held for the endpoint, those whose
 * delivery failed, or all that it would take today. Throws 409 unless the endpoint is active.
 */
export async function replay(
  tx: Tx,
  caller: Caller,
  id: string,
  wish: Span & { status: "held" | "failed" | "all" },
): Promise<longJob.Job> {
  const webhook = await webhooks.hold(tx, caller.project_id, id)
  if (webhook.status !== "active") {
    const message = "The endpoint is disabled. Enable it first, and then send its events again."
    fail("conflict", message, { reason: "not_active", id })
  }
  const { status: what, ...span } = wish
  const status = what === "failed" ? (["failed", "exhausted"] as const) : []
  return start(tx, caller, webhook, "webhook.replay", { what, status: [...status], ...span })
}

/** The rest of what an endpoint has held, after the first of it left with its activation. */
export async function replayRest(tx: Tx, caller: Caller, webhook: WebhookRow) {
  const everything = { event_types: [], since: null, until: null }
  await start(tx, caller, webhook, "webhook.replay", { what: "held", status: [], ...everything })
}

type Work = Omit<Resend, "job_id" | "project_id" | "webhook_id" | "after" | "until"> &
  Pick<Span, "until">

async function start(tx: Tx, caller: Caller, { id }: WebhookRow, type: string, work: Work) {
  const { project_id } = caller
  // What comes after this moment is not meant, or the job would chase its own attempts.
  const until = work.until !== null && work.until < now() ? work.until : now()
  const whole = { ...work, until, project_id, webhook_id: id, after: null }
  const total = await countOf(tx, whole)
  const job = await longJob.begin(tx, project_id, { type, total })
  await enqueue(tx, webhookResend, { payload: { ...whole, job_id: job.id }, project_id })
  const { what, status, event_types, since } = work
  const after = { what, status, event_types, since, until }
  await webhooks.log(tx, caller, id, type, { after })
  return job
}
