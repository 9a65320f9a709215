import { OVER, PRIORITIES, READY } from "../jobs/work-item"
import { searchable } from "../lib/text"
import type { StoredSize } from "./contents"
import { factName, type Message } from "./status-changes"
import type { MessageRefusal, NewMessage, ReceivedMessage, Stream } from "./tables"

/** The row of a new message. Its fields are named one by one: a spread of half of them costs as much as all the rest. */
export function asMessage(fresh: NewMessage, stored?: StoredSize): Message {
  const { created_at, subject } = fresh
  const scheduled_at = fresh.scheduled_at ?? null
  const message: Message = {
    id: fresh.id,
    account_id: fresh.account_id,
    project_id: fresh.project_id,
    channel: fresh.channel,
    address: fresh.address,
    sender: fresh.sender,
    sender_domain: fresh.sender_domain,
    subject,
    recipients: fresh.recipients,
    units: fresh.units ?? null,
    envelope: fresh.envelope,
    batch_id: fresh.batch_id,
    stream: fresh.stream,
    source: fresh.source,
    tags: fresh.tags,
    metadata: fresh.metadata,
    api_key_id: fresh.api_key_id,
    idempotency_key: fresh.idempotency_key,
    rfc_message_id: fresh.rfc_message_id,
    thread_id: fresh.thread_id,
    sandbox: fresh.sandbox,
    created_at,
    scheduled_at,
    template_id: fresh.template_id ?? null,
    subscriber_id: fresh.subscriber_id ?? null,
    user_id: fresh.user_id ?? null,
    category: fresh.category ?? fresh.envelope?.category ?? null,
    fan_out_id: fresh.fan_out_id ?? null,
    subject_key: subject === null ? null : searchable(subject),
    stored_bytes: stored?.bytes ?? 0,
    status: "queued",
    status_reason: null,
    provider: null,
    priority: PRIORITY_OF[fresh.stream],
    state: READY,
    run_at: scheduled_at ?? created_at,
    attempt: 0,
    owner: null,
    lease_until: null,
    error: null,
    last_event_type: scheduled_at === null ? factName(fresh.channel, "queued") : null,
    last_event_at: scheduled_at === null ? created_at : null,
    sent_at: null,
    delivered_at: null,
    bounced_at: null,
    updated_at: created_at,
  }
  if (fresh.received) return asReceived(message, fresh.received)
  if (fresh.delivered) return asDelivered(message)
  return fresh.refused ? asRefused(message, fresh.refused) : message
}

/** Nothing is done with it any more. */
function asReceived(message: Message, { provider }: ReceivedMessage): Message {
  const status = "received"
  return {
    ...message,
    ...{ status, provider, state: OVER },
    recipients: message.recipients.map((one) => ({ ...one, status })),
    last_event_type: factName(message.channel, status),
  }
}

function asDelivered(message: Message): Message {
  const { created_at } = message
  return {
    ...message,
    ...{ status: "delivered", state: OVER, sent_at: created_at, delivered_at: created_at },
    last_event_type: factName(message.channel, CREATED),
  }
}

/** The fact of a message that is delivered where it is accepted. */
export const CREATED = "created"

function asRefused(message: Message, { reason, text }: MessageRefusal): Message {
  const ended = { status: "failed", status_reason: reason } as const
  return {
    ...message,
    ...ended,
    recipients: message.recipients.map((one) => ({ ...one, ...ended })),
    state: OVER,
    error: { code: reason, message: text, smtp_code: null, enhanced_code: null },
    last_event_type: factName(message.channel, "failed"),
    last_event_at: message.created_at,
  }
}

/** Codes and links first, then what one person waits for, then what goes to many. */
const PRIORITY_OF: Record<Stream, number> = {
  auth: PRIORITIES.urgent,
  transactional: PRIORITIES.normal,
  broadcast: PRIORITIES.bulk,
}
