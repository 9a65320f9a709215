import type { Static } from "@sinclair/typebox"
import type { Event } from "../events/feed"
import type { MessageView } from "../messages/live-status"
import { isScheduled } from "../messages/status-changes"
import type { LeftOut } from "../messages/tables"
import { NO_REPLY } from "../providers/provider"
import { type HitSummary, NO_HITS } from "../tracking/tracking"
import { named } from "./compose-email"
import type { EmailContent } from "./filed-content"
import type { EmailEvents, ListedEmail } from "./schemas"

/** The Email record as lists show it: everything but bodies, headers and timeline. */
export function listed(message: MessageView, hits: HitSummary = NO_HITS) {
  const { account_id: _, channel: __, address: ___, sender: ____, ...row } = message
  const { sender_domain: _____, subject_key: ______, envelope, ...rest } = row
  const { last_event_type: _last, last_event_at: _at, template_id: _______, ...shown } = rest
  const { fan_out_id: ________, stored_bytes: _________, ...fields } = shown
  const { last_clicked_at: _clicked, ...counted } = hits
  const [to] = message.recipients
  return {
    ...fields,
    ...certain(message),
    to: { email: to?.email ?? "", name: to?.name ?? null },
    cc: named(message.recipients, "cc"),
    bcc: named(message.recipients, "bcc"),
    recipients: [
      ...message.recipients.map(({ name: _, ...recipient }) => recipient),
      ...(envelope?.left_out ?? []).map(leftOut),
    ],
    reply_to: envelope?.reply_to ?? [],
    attachments: (envelope?.attachments ?? []).map(({ content_id: _, ...file }) => file),
    track_opens: envelope?.track?.opens ?? false,
    track_clicks: envelope?.track?.clicks ?? false,
    ...counted,
    last_event: lastEvent(message, hits),
    queued_at: queuedAt(message),
    category: envelope?.category ?? null,
    template: envelope?.template ?? null,
  }
}

/** How a copy that was left out stands in the record. */
const leftOut = ({ email, kind }: LeftOut) => ({
  email,
  kind,
  status: "failed" as const,
  status_reason: "suppressed_recipient",
})

/** Hits never touch the row of the message, so the last one of a person is compared here. */
function lastEvent({ last_event_type, last_event_at }: MessageView, hits: HitSummary) {
  const events = [
    { type: last_event_type, timestamp: last_event_at },
    { type: "email.opened", timestamp: hits.last_opened_at },
    { type: "email.clicked", timestamp: hits.last_clicked_at },
  ]
  let last: { type: string; timestamp: string } | null = null
  for (const { type, timestamp } of events) {
    if (type && timestamp && (!last || timestamp >= last.timestamp)) last = { type, timestamp }
  }
  return last
}

type Certain = Pick<Static<typeof ListedEmail>, "rfc_message_id" | "subject" | "source" | "from">

/** What every email has, though a message of another channel may not. */
const certain = ({ rfc_message_id, subject, source, envelope }: MessageView) =>
  ({ rfc_message_id, subject, source, from: envelope?.from ?? null }) as Certain

/** When the email was released to be sent; null before that, and for one that was cancelled before it. */
function queuedAt(message: MessageView): string | null {
  const { scheduled_at, created_at, updated_at, status } = message
  if (scheduled_at === null) return created_at
  const was_cancelled = status === "failed" && updated_at < scheduled_at
  return isScheduled(message) || was_cancelled ? null : scheduled_at
}

/** The whole record, with bodies and timeline. Bodies are null once they are no longer kept. */
export const whole = (
  message: MessageView,
  content: EmailContent | undefined,
  story: Event[],
  hits: HitSummary | undefined,
) => ({
  ...listed(message, hits),
  html: content?.html ?? null,
  text: content?.text ?? null,
  headers: content?.headers ?? {},
  timeline: story.map(timelineEntry),
})

function timelineEntry({ type, created_at, data, detail }: Event) {
  const { recipient_email = null, timestamp = created_at } = data as Partial<EventEntry>
  return { type, timestamp, recipient_email, detail: detail ?? null }
}

type EventEntry = Static<typeof EmailEvents>["events"][number]

/** One entry of EmailEvents; `type` is the webhook type. */
export function eventEntry({ id, type, created_at, data, detail }: Event) {
  const known = data as Partial<EventEntry>
  return {
    id,
    type,
    timestamp: known.timestamp ?? created_at,
    recipient_email: known.recipient_email ?? null,
    bounce_type: known.bounce_type ?? null,
    bounce_subtype: known.bounce_subtype ?? null,
    complaint_feedback_type: known.complaint_feedback_type ?? null,
    url: known.url ?? null,
    user_agent: known.user_agent ?? null,
    actor: known.actor ?? null,
    detail: detail ?? NO_REPLY,
  }
}
