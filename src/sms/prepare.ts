import { invalid } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Caller } from "../identity/caller"
import { inspectText, smsSegments } from "../lib/sms-segments"
import { findAudience, isBlocked, type KnownSubscribers } from "../messages/send-fields"
import { refuseSuppressed, suppressionsOf } from "../messages/suppressed"
import type { Envelope, NewMessage } from "../messages/tables"
import type { Reader } from "../store/store"
import type { SuppressionRow } from "../suppressions/tables"
import type { TemplateRendering } from "../templates/rendering"
import { renderText } from "./render-text"
import type { SendText } from "./sms-input"
import { expectedSender, LOG, limitedCountry, requireAllowed, smsRouting } from "./sms-routing"

export interface SmsRules {
  /** Knows the people of each project, its providers, and the numbers that it sends nothing to. */
  read: Reader
  templates: TemplateRendering
}

export interface TextSender {
  caller: Caller
  source: "api"
  batch_id: string | null
  idempotency_key: string | null
  /** Those of the recipients' numbers, where they were asked for several messages at once. */
  suppressions?: SuppressionRow[]
  subscribers?: KnownSubscribers | undefined
}

/** What a message keeps, for reads: its body alone. */
export interface TextContent {
  body: string
}

interface PreparedText {
  message: NewMessage
  /** It is for `log`, as things are now. */
  is_test: boolean
}

/**
 * Everything that may be refused or must wait before the transaction: provider, country, template, segments,
 * suppression (contract 41).
 */
export async function prepare(
  text: SendText,
  sender: TextSender,
  { read, templates }: SmsRules,
): Promise<PreparedText> {
  const { caller, suppressions, subscribers, ...origin } = sender
  const { account_id, project_id, key_id: api_key_id, project_settings } = caller
  const { sandbox } = project_settings
  const { to, category, scheduled_at, tags, metadata } = text
  const audience = await findAudience(read, project_id, text, subscribers)
  const routes = await smsRouting(read, { project_id, sandbox })
  const first = requireAllowed(routes, to)
  const { body: rendered, used } = await renderText(templates, caller, text, audience.subscriber)
  const body = text.smart_encoding ? (inspectText(rendered).gsm7_suggestion ?? rendered) : rendered
  requireShort(body, text.max_segments)
  const of = { project_id, channel: "sms" } as const
  const known = suppressions ?? (await suppressionsOf(read, of, () => [{ email: to }]))
  if (!isBlocked(audience)) refuseSuppressed(known, { email: to }, { category })
  const message = newText({
    ...origin,
    ...{ account_id, project_id, api_key_id, sandbox, to, body, category, scheduled_at },
    ...{ tags, metadata, stream: "transactional" as const },
    from: text.from ?? expectedSender(first, to),
    is_from_given: text.from !== null,
    subscriber_id: audience.subscriber?.id ?? null,
    envelope: { ...(category !== null && { category }), ...(used && { template: used }) },
    template_id: used?.id ?? null,
    country: limitedCountry(routes, to),
  })
  return { message, is_test: first.provider === LOG }
}

function requireShort(body: string, most: number): void {
  const { segments, encoding } = smsSegments(body)
  if (segments <= most) return
  const hint = `The text takes ${segments} segments (${encoding}), at most ${most} are allowed.`
  throw invalid("body", "too_many_segments", hint, { segments, encoding, max_segments: most })
}

type Carried =
  | "account_id"
  | "project_id"
  | "api_key_id"
  | "sandbox"
  | "stream"
  | "source"
  | "subscriber_id"
  | "category"
  | "template_id"
  | "scheduled_at"

interface NewText
  extends Pick<NewMessage, Carried>,
    Partial<Pick<NewMessage, "batch_id" | "idempotency_key" | "tags" | "metadata">>,
    Partial<Pick<NewMessage, "fan_out_id" | "country">> {
  to: string
  from: string | null
  is_from_given?: boolean
  body: string
  envelope: Envelope
}

/** The message as it can be accepted: one row of a text counts its segments. */
export function newText(text: NewText): NewMessage {
  const { to, from, body, is_from_given, envelope } = text
  const { encoding, segments } = smsSegments(body)
  const sms = { encoding, ...(is_from_given && { from_given: true as const }) }
  const content: TextContent = { body }
  return {
    id: newId(),
    account_id: text.account_id,
    project_id: text.project_id,
    channel: "sms",
    address: to,
    sender: from,
    sender_domain: null,
    subject: null,
    recipients: [{ email: to, name: null, kind: "to", status: "queued", status_reason: null }],
    units: segments,
    envelope: { ...envelope, sms },
    batch_id: text.batch_id ?? null,
    stream: text.stream,
    source: text.source,
    tags: text.tags ?? [],
    metadata: text.metadata ?? {},
    api_key_id: text.api_key_id,
    idempotency_key: text.idempotency_key ?? null,
    rfc_message_id: null,
    thread_id: null,
    sandbox: text.sandbox,
    scheduled_at: text.scheduled_at ?? null,
    template_id: text.template_id ?? null,
    subscriber_id: text.subscriber_id ?? null,
    category: text.category ?? null,
    fan_out_id: text.fan_out_id ?? null,
    content,
    country: text.country,
    created_at: now(),
  }
}
