import { and, eq } from "drizzle-orm"
import { now } from "../core/time"
import { emit } from "../events/emit"
import type { Tx } from "../store/store"
import { holdOpen } from "./hold"
import { type DisabledReason, webhooks } from "./tables"
import { warn } from "./warn"

type Endpoint = Pick<
  typeof webhooks.$inferSelect,
  "id" | "account_id" | "project_id" | "url" | "consecutive_failures"
>

/**
 * Disables an active endpoint: what is open of it is held, the other endpoints hear of it, and
 * unless it was done by hand the project's admins do. Returns false where it is disabled already.
 */
export async function disable(tx: Tx, webhook: Endpoint, reason: DisabledReason): Promise<boolean> {
  const { id, account_id, project_id, url, consecutive_failures } = webhook
  const at = now()
  const rows = await tx
    .update(webhooks)
    .set({ status: "disabled", disabled_reason: reason, disabled_at: at, updated_at: at })
    .where(and(eq(webhooks.id, id), eq(webhooks.status, "active")))
    .returning({ id: webhooks.id })
  if (rows.length === 0) return false
  await holdOpen(tx, webhook)
  const data = { webhook_id: id, url, reason, consecutive_failures, timestamp: at }
  await emit(tx, { account_id, project_id, subject_id: id, type: "webhook.disabled", data })
  if (reason === "circuit_breaker" || reason === "gone") await warn(tx, { ...webhook, reason })
  return true
}

/** Makes the endpoint active with its counter at 0. What is held stays so until it is released. */
export async function activate(tx: Tx, webhook: { id: string }): Promise<void> {
  await tx
    .update(webhooks)
    .set({
      status: "active",
      disabled_reason: null,
      disabled_at: null,
      consecutive_failures: 0,
      updated_at: now(),
    })
    .where(eq(webhooks.id, webhook.id))
}
