import { now } from "../core/time"
import type { Caller } from "../identity/caller"
import type { Tx } from "../store/store"
import { activate, disable } from "./breaker"
import { exhaustAll, release } from "./hold"
import { type Changes, refuseOtherStatus } from "./input"
import { ours, type Webhook, type WebhookRow } from "./record"
import { replayRest } from "./replay"
import { webhooks as table } from "./tables"
import * as webhooks from "./webhooks"

/** Held deliveries that leave in the transaction that activates; a job sends the others. */
const AT_ONCE = 200

/** By hand, and undone by hand: `paused` for a while, `manual` for good. */
export type ByHand = "manual" | "paused"

/** Active, with its counter at 0; with `held` everything that waited for it leaves at once. */
export async function enable(
  tx: Tx,
  caller: Caller,
  id: string,
  replay: "held" | "none",
): Promise<Webhook> {
  const before = await webhooks.hold(tx, caller.project_id, id)
  await activateLogged(tx, caller, before)
  if (replay === "held") {
    const released = await release(tx, before, {}, AT_ONCE)
    if (released === AT_ONCE) await replayRest(tx, caller, before)
  }
  return webhooks.get(tx, caller.project_id, id)
}

async function activateLogged(tx: Tx, caller: Caller, before: WebhookRow) {
  await activate(tx, before)
  if (before.status === "active") return
  const { status, disabled_reason } = before
  const change = { before: { status, disabled_reason }, after: { status: "active" } }
  await webhooks.log(tx, caller, before.id, "webhook.enabled", change)
}

/** What is open of it, and what comes, is held. Of one that is disabled only the reason changes. */
export async function disableByHand(
  tx: Tx,
  caller: Caller,
  id: string,
  reason: ByHand,
): Promise<Webhook> {
  await disableLogged(tx, caller, await webhooks.hold(tx, caller.project_id, id), reason)
  return webhooks.get(tx, caller.project_id, id)
}

async function disableLogged(tx: Tx, caller: Caller, before: WebhookRow, reason: ByHand) {
  const { id, status, disabled_reason } = before
  if (disabled_reason === reason) return
  if (!(await disable(tx, before, reason))) {
    const changes = { disabled_reason: reason, updated_at: now() }
    await tx.update(table).set(changes).where(ours(before.project_id, id))
  }
  const change = {
    before: { status, disabled_reason },
    after: { status: "disabled", disabled_reason: reason },
  }
  await webhooks.log(tx, caller, id, reason === "paused" ? "webhook.paused" : DISABLED, change)
}

const DISABLED = "webhook.disabled"

/** What the owner says anew, and with `enabled` whether it works: false pauses, true activates. */
export async function patch(
  tx: Tx,
  writing: webhooks.EndpointWriting,
  caller: Caller,
  id: string,
  wanted: Changes,
) {
  const before = await webhooks.hold(tx, caller.project_id, id)
  refuseOtherStatus(wanted.status, before.status)
  const after = await webhooks.change(tx, writing, caller, before, wanted)
  const { enabled } = wanted
  if (enabled === true) await activateLogged(tx, caller, after)
  if (enabled === false && after.status === "active") {
    await disableLogged(tx, caller, after, "paused")
  }
  return webhooks.getWarned(tx, caller.project_id, id)
}

/** The endpoint is gone at once, and what was open of it ends `exhausted`. */
export async function remove(tx: Tx, caller: Caller, id: string): Promise<void> {
  const row = await webhooks.hold(tx, caller.project_id, id)
  await webhooks.remove(tx, caller, row)
  await exhaustAll(tx, row)
}
