import { and, eq } from "drizzle-orm"
import { now } from "../core/time"
import { emit } from "../events/emit"
import type { Caller } from "../identity/caller"
import type { SystemMail } from "../identity/system-mail"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { noticeSchedule } from "../jobs/work-item"
import type { Store, Tx } from "../store/store"
import { mailAdmins } from "../tenancy/members"
import { forgetDeleted } from "./endpoint-counts"
import { type EndpointChanges, refuseOtherStatus } from "./endpoint-input"
import { exhaustAll, holdOpen, releaseHeld } from "./held"
import { replayRest } from "./resend"
import { type DisabledReason, webhooks as table, type WebhookRow } from "./tables"
import * as webhooks from "./webhooks"

/** Held deliveries that are released in the transaction that activates. A job releases the others. */
const RELEASED_AT_ONCE = 200

/**
 * Disables an active endpoint: its open deliveries are held, and the project's other endpoints get
 * an event. Unless it was done by hand, the project's admins get a mail. Returns false where the
 * endpoint is disabled already.
 */
export async function disable(
  tx: Tx,
  webhook: FailingEndpoint,
  reason: DisabledReason,
): Promise<boolean> {
  const { id, account_id, project_id, url, consecutive_failures } = webhook
  const at = now()
  const rows = await tx
    .update(table)
    .set({ status: "disabled", disabled_reason: reason, disabled_at: at, updated_at: at })
    .where(and(eq(table.id, id), eq(table.status, "active")))
    .returning({ id: table.id })
  if (rows.length === 0) return false
  await holdOpen(tx, webhook)
  const data = { webhook_id: id, url, reason, consecutive_failures, timestamp: at }
  await emit(tx, { account_id, project_id, subject_id: id, type: "webhook.disabled", data })
  if (reason === "circuit_breaker" || reason === "gone") await warn(tx, webhook, reason)
  return true
}

/** Makes the endpoint active with its counter at 0. What is held stays so until it is released. */
export async function activate(tx: Tx, webhook: { id: string }): Promise<void> {
  await tx
    .update(table)
    .set({
      status: "active",
      disabled_reason: null,
      disabled_at: null,
      consecutive_failures: 0,
      updated_at: now(),
    })
    .where(eq(table.id, webhook.id))
}

/** Disabled by hand, and enabled by hand only: `paused` for a while, `manual` for good. */
export type ManualReason = "manual" | "paused"

/** Makes the endpoint active, with its counter at 0. With `held`, its held deliveries leave at once. */
export async function enable(
  tx: Tx,
  caller: Caller,
  id: string,
  replay: "held" | "none",
): Promise<webhooks.WebhookRecord> {
  const before = await webhooks.forUpdate(tx, caller.project_id, id)
  await activateLogged(tx, caller, before)
  if (replay === "held") {
    const released = await releaseHeld(tx, before, undefined, RELEASED_AT_ONCE)
    if (released === RELEASED_AT_ONCE) await replayRest(tx, caller, before)
  }
  return webhooks.get(tx, caller.project_id, id)
}

async function activateLogged(tx: Tx, caller: Caller, before: WebhookRow) {
  await activate(tx, before)
  if (before.status === "active") return
  const { status, disabled_reason } = before
  const change = { before: { status, disabled_reason }, after: { status: "active" } }
  await webhooks.log(tx, caller, before, "enabled", change)
}

/** Holds open and new deliveries. Of an endpoint that is disabled already, only the reason changes. */
export async function disableByHand(
  tx: Tx,
  caller: Caller,
  id: string,
  reason: ManualReason,
): Promise<webhooks.WebhookRecord> {
  await disableLogged(tx, caller, await webhooks.forUpdate(tx, caller.project_id, id), reason)
  return webhooks.get(tx, caller.project_id, id)
}

async function disableLogged(tx: Tx, caller: Caller, before: WebhookRow, reason: ManualReason) {
  const { status, disabled_reason } = before
  if (disabled_reason === reason) return
  if (!(await disable(tx, before, reason))) {
    const changes = { disabled_reason: reason, updated_at: now() }
    await tx.update(table).set(changes).where(eq(table.id, before.id))
  }
  const change = {
    before: { status, disabled_reason },
    after: { status: "disabled", disabled_reason: reason },
  }
  const verb = reason === "paused" ? "paused" : "disabled"
  await webhooks.log(tx, caller, before, verb, change)
}

/** Changes the fields of an endpoint. `enabled: false` pauses it, `true` activates it. */
export async function patch(
  tx: Tx,
  context: webhooks.EndpointContext,
  caller: Caller,
  id: string,
  changes: EndpointChanges,
) {
  const before = await webhooks.forUpdate(tx, caller.project_id, id)
  refuseOtherStatus(changes.status, before.status)
  const after = await webhooks.change(tx, context, caller, before, changes)
  const { enabled } = changes
  if (enabled === true) await activateLogged(tx, caller, after)
  if (enabled === false && after.status === "active") {
    await disableLogged(tx, caller, after, "paused")
  }
  return webhooks.getWarned(tx, caller.project_id, id)
}

/** Deletes the endpoint. Its open deliveries end `exhausted`. */
export async function remove(tx: Tx, caller: Caller, id: string): Promise<void> {
  const row = await webhooks.forUpdate(tx, caller.project_id, id)
  await webhooks.remove(tx, caller, row)
  await exhaustAll(tx, row)
  await forgetDeleted(tx, id)
}

/** Failures in a row at which the admins get a mail while the endpoint is still active. */
export const WARN_AT: readonly number[] = [5, 8]

interface WebhookFailure {
  webhook_id: string
  account_id: string
  project_id: string
  url: string
  failures: number
  /** Null while the endpoint is active. */
  reason: "circuit_breaker" | "gone" | null
}

export const webhookWarning: JobKind<WebhookFailure> = {
  name: "webhook.warning",
  schedule: noticeSchedule,
}

type FailingEndpoint = Pick<
  WebhookRow,
  "id" | "account_id" | "project_id" | "url" | "consecutive_failures"
>

/** Enqueues the mails, in the transaction that counts the failure. */
export async function warn(
  tx: Tx,
  failing: FailingEndpoint,
  reason: WebhookFailure["reason"],
): Promise<void> {
  const { id, account_id, project_id, url, consecutive_failures: failures } = failing
  const payload = { webhook_id: id, account_id, project_id, url, failures, reason }
  await enqueue(tx, webhookWarning, { payload, project_id })
}

/** Mails every admin of the project that an endpoint fails, or was disabled for its failures. */
export const notifyAdmins = (store: Store, mail: SystemMail): JobHandler<WebhookFailure> => ({
  run: async (warning) => {
    const kind = "webhook_warning"
    await store.tx((tx) =>
      mailAdmins(tx, mail, warning, (project) => ({ kind, ...text(project, warning) })),
    )
    return {}
  },
})

function text(project: string, { url, failures, reason, webhook_id }: WebhookFailure) {
  if (reason === null) {
    return {
      subject: `${project}: a webhook fails`,
      text:
        `${url} (webhook ${webhook_id}) failed ${failures} times in a row.\n\n` +
        "If it continues to fail, Belfry disables the endpoint and holds its events.\n",
    }
  }
  const why = reason === "gone" ? "it answered 410 Gone" : `it failed ${failures} times in a row`
  return {
    subject: `${project}: a webhook was disabled`,
    text:
      `${url} (webhook ${webhook_id}) was disabled: ${why}.\n\n` +
      "Belfry holds its events for 7 days. Enable the endpoint and send the held events:\n" +
      `belfry webhooks enable ${webhook_id} --replay\n`,
  }
}
