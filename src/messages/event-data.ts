import type { NewEvent } from "../events/emit"
import type { Fact, Message } from "./facts"
import type { ChannelName } from "./tables"
import { eventTypeOf } from "./transitions"

/** What events tell of a message. */
type EventSubject = Pick<
  Message,
  "id" | "account_id" | "project_id" | "channel" | "tags" | "metadata" | "subject"
> &
  Partial<NotOfEmail>

/** What only events of other channels than email tell. */
type NotOfEmail = Pick<Message, "provider" | "sender" | "subscriber_id" | "category">

/**
 * The event of a fact, with the data fields of its type; none where no type is registered for it. `at` is
 * the time of it in the message's row.
 */
export function eventsOf(message: EventSubject, fact: Fact, at: string): NewEvent[] {
  const type = eventTypeOf(message.channel, fact.type)
  if (type === undefined) return []
  const { account_id, project_id, id: subject_id, channel } = message
  const data = DATA[channel](message, fact, at)
  return [{ account_id, project_id, subject_id, type, data, detail: fact.detail ?? null }]
}

type DataOf = (message: EventSubject, fact: Fact, at: string) => Record<string, unknown>

/** The fields of contract 30, section 6. */
const DATA: Record<ChannelName, DataOf> = {
  email: ({ id, tags, metadata, subject }, fact, timestamp) => ({
    message_id: id,
    recipient_email: fact.recipient_email,
    timestamp,
    bounce_type: fact.bounce_type ?? null,
    bounce_subtype: fact.bounce_subtype ?? null,
    complaint_feedback_type: fact.complaint_feedback_type ?? null,
    tags,
    metadata,
    subject,
    ...(fact.error && { error: fact.error }),
  }),
  push: ({ id, provider = null, metadata }, fact, timestamp) => ({
    push_message_id: id,
    provider,
    timestamp,
    ...errorOf(fact),
    device_id: fact.recipient_email,
    metadata,
  }),
  sms: ({ id, sender = null, provider = null, metadata }, fact, timestamp) => ({
    sms_message_id: id,
    to: fact.recipient_email,
    from: sender,
    timestamp,
    provider,
    ...errorOf(fact),
    metadata,
  }),
  in_app: ({ id, subscriber_id = null, category = null, metadata }, _, timestamp) => ({
    inbox_message_id: id,
    subscriber_id,
    timestamp,
    category,
    metadata,
  }),
}

const errorOf = ({ error }: Fact) => ({
  error_code: error?.code ?? null,
  error_message: error?.message ?? null,
})
