import type { NewEvent } from "../events/emit"
import { eventTypeOf, type Message, type StatusChange } from "./status-changes"
import type { ChannelName } from "./tables"

type EventSubject = Pick<
  Message,
  "id" | "account_id" | "project_id" | "channel" | "tags" | "metadata" | "subject"
> &
  Partial<NotOfEmail>

type NotOfEmail = Pick<
  Message,
  "provider" | "sender" | "units" | "subscriber_id" | "user_id" | "category"
>

/** None where no type is registered for the fact. `at`: its time in the message's row. */
export function eventsOf(message: EventSubject, fact: StatusChange, at: string): NewEvent[] {
  const type = eventTypeOf(message.channel, fact.type)
  if (type === undefined) return []
  const { account_id, project_id, id: subject_id, channel } = message
  const data = DATA[channel](message, fact, at)
  return [{ account_id, project_id, subject_id, type, data, detail: fact.detail ?? null }]
}

type DataOf = (message: EventSubject, fact: StatusChange, at: string) => Record<string, unknown>

/** The fields of contract 30, section 6. */
const DATA: Record<ChannelName, DataOf> = {
  email: ({ id, tags, metadata, subject }, fact, timestamp) => ({
    message_id: id,
    recipient_email: fact.address,
    timestamp,
    bounce_type: fact.bounce_type ?? null,
    bounce_subtype: fact.bounce_subtype ?? null,
    complaint_feedback_type: fact.complaint_feedback_type ?? null,
    tags,
    metadata,
    subject,
    ...(fact.error && { error: fact.error }),
  }),
  push: ({ id, provider = null, user_id = null, metadata }, { address, error }, timestamp) => ({
    push_message_id: id,
    provider,
    timestamp,
    error_code: error?.code ?? null,
    error_message: error?.message ?? null,
    device_id: address,
    user_id,
    metadata,
  }),
  sms: ({ id, sender = null, units, provider = null, metadata }, fact, timestamp) => {
    const { address, received } = fact
    const parties = received ? { to: sender, from: address } : { to: address, from: sender }
    const { body, in_reply_to } = received ?? {}
    return {
      sms_message_id: id,
      ...parties,
      timestamp,
      segments: received?.segments ?? units ?? 1,
      provider,
      ...errorOf(fact),
      metadata,
      ...(received && { body, in_reply_to }),
    }
  },
  in_app: ({ id, subscriber_id = null, category = null, metadata }, { by }, timestamp) => ({
    inbox_message_id: id,
    subscriber_id,
    external_id: by?.external_id ?? null,
    timestamp,
    category,
    metadata,
    ...(by?.action_key !== undefined && { action_key: by.action_key }),
  }),
}

/** The provider's own code says more than ours. */
const errorOf = ({ error, detail }: StatusChange) => ({
  error_code: (error && detail?.provider_code) ?? error?.code ?? null,
  error_message: error?.message ?? null,
})
