import { and, eq } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { prepare, type SendRules } from "../emails/prepare"
import { emitAll, type NewEvent, type Recorded, record } from "../events/emit"
import { projectCaller } from "../identity/caller"
import { accept, entryOf, type MessageEntry } from "../messages/accept"
import type { Store, Tx } from "../store/store"
import { deliveryOf, plan } from "../webhooks/route-events"
import { webhooks } from "../webhooks/tables"
import { forwardOf, wasForwarded } from "./forward"
import { ownAddress } from "./inbound-reply"
import { routeFor } from "./inbound-route"
import { wholeContent } from "./raw-mail"
import type { InboundContent, InboundRow, StoredElsewhere } from "./tables"

export interface RouteParts {
  store: Store
  rules: SendRules
  /** Of the attachments of sent mail. */
  blobs: Blobs
  inbound_blobs: Blobs
}

/** What happens with a mail. `route_id` is null where no route matches. */
export type Decision =
  | { action: "tell"; route_id: string | null }
  | { action: "tell_one"; route_id: string; webhook_id: string }
  | { action: "forward"; route_id: string; entry: MessageEntry }
  | { action: "drop"; route_id: string | null }

/** What the routes of the project say about a mail to one of its receiving domains. */
export async function decide(
  parts: RouteParts,
  row: InboundRow,
  content: InboundContent | StoredElsewhere,
): Promise<Decision> {
  const route = await routeFor(parts.store.read, row.project_id, row.to_email)
  if (!route) return { action: "tell", route_id: null }
  const { id: route_id, action, target } = route
  if (action === "drop") return { action, route_id }
  if (action === "webhook") {
    return target === null
      ? { action: "tell", route_id }
      : { action: "tell_one", route_id, webhook_id: target }
  }
  const entry = target === null ? undefined : await forwarded(parts, row, content, target)
  return entry ? { action, route_id, entry } : { action: "tell", route_id }
}

/** The mail as it is passed on; undefined, with the reason in the log, where it cannot be. */
async function forwarded(
  { store, rules, blobs, inbound_blobs }: RouteParts,
  row: InboundRow,
  content: InboundContent | StoredElsewhere,
  target: string,
): Promise<MessageEntry | undefined> {
  const stays = (reason: string) => {
    log.warn("a mail was not forwarded", { inbound_id: row.id, to: target, reason })
    return undefined
  }
  if (wasForwarded(row)) return stays("It was forwarded from this address before.")
  const caller = await projectCaller(store.read, row.project_id)
  if (!caller) return stays("The account does not send.")
  try {
    const from = await ownAddress(store.read, row)
    const to = { email: target, name: null }
    const bodies = await wholeContent(inbound_blobs, content)
    const email = await forwardOf(row, bodies, { read: store.read, inbound_blobs }, { to, from })
    const sender = {
      caller,
      source: "inbound_reply" as const,
      batch_id: null,
      idempotency_key: null,
    }
    const message = await prepare(email, { ...sender, thread_id: row.thread_id }, rules, blobs)
    return entryOf(message, caller)
  } catch (error) {
    if (error instanceof ApiError) return stays(error.message)
    throw error
  }
}

/**
 * Carries the decision out, in the transaction that makes the mail processed. A forward that the
 * quota refuses becomes an ordinary event. Answers with the event, if there is one.
 */
export async function carryOut(
  tx: Tx,
  decision: Decision,
  event: NewEvent,
): Promise<Recorded | undefined> {
  if (decision.action === "drop") return undefined
  if (decision.action === "tell_one") return notifyOne(tx, decision.webhook_id, event)
  if (decision.action === "forward") {
    const [answer] = await accept(tx, [decision.entry])
    if (!(answer instanceof ApiError)) return (await record(tx, [event]))[0]
    const { route_id } = decision
    log.warn("a mail was not forwarded", { route_id, reason: answer.message })
  }
  return (await emitAll(tx, [event]))[0]
}

/** The endpoint of a route is told whatever it subscribes to. Where it is gone, no endpoint is. */
async function notifyOne(tx: Tx, webhook_id: string, event: NewEvent) {
  const [recorded] = await record(tx, [event])
  const { id, project_id } = webhooks
  const ours = and(eq(id, webhook_id), eq(project_id, event.project_id))
  const [endpoint] = await tx.select().from(webhooks).where(ours)
  if (recorded && endpoint) await plan(tx, [deliveryOf(endpoint, recorded, "event")])
  return recorded
}
