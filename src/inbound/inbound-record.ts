import type { Static } from "@sinclair/typebox"
import type { InboundEmail, InboundInEvent, InboundSummary } from "./schemas"
import type { InboundContent, InboundRow, ParsedInbound, StoredElsewhere } from "./tables"

/** Of both bodies together, in an event. */
const MAX_EVENT_BODIES = 262_144

/** The InboundEmail record of the contract without its bodies, as lists have it. */
export function listed(row: InboundRow): Static<typeof InboundSummary> {
  const { session, parsed, from_email, from_name } = row
  const { report, truncated = false, ...said } = parsed ?? UNREAD
  return {
    id: row.id,
    project_id: row.project_id,
    rfc_message_id: row.rfc_message_id,
    from: from_email === null ? null : { email: from_email, name: from_name },
    to_email: row.to_email,
    envelope: { from: session.mail_from, to: session.to },
    domain: row.domain,
    subject: row.subject,
    ...said,
    report: (report ?? null) as Record<string, unknown> | null,
    in_reply_to: row.in_reply_to,
    replied_to_message_id: row.replied_to_message_id,
    mailbox_hash: row.mailbox_hash,
    // One that could not be read is a conversation of its own.
    thread_id: row.thread_id ?? (row.status === "failed" ? row.id : null),
    kind: row.kind,
    auto_submitted: row.auto_submitted,
    spf_verdict: row.spf_verdict,
    dkim_verdict: row.dkim_verdict,
    dmarc_verdict: row.dmarc_verdict,
    arc_verdict: row.arc_verdict,
    verified: row.verified,
    status: row.status,
    parse_error: row.parse_error,
    truncated,
    size: row.size,
    created_at: row.created_at,
  }
}

/** Of a mail that is not processed yet, or that could not be read. */
const UNREAD: ParsedInbound = {
  to: [],
  cc: [],
  reply_to: [],
  headers: {},
  references: [],
  attachments: [],
  reply_to_metadata: null,
  spam: { score: 0, flagged: false, rules: [] },
  report: null,
}

const NO_BODIES: InboundContent = { text_body: null, html_body: null, stripped_text: null }

/** The whole record. */
export const whole = (
  row: InboundRow,
  content: InboundContent | undefined,
): Static<typeof InboundEmail> => ({ ...listed(row), ...(content ?? NO_BODIES) })

/** Whether the bodies are too long for an event, and for a row. */
export const isTooLong = ({ text_body, html_body }: InboundContent): boolean =>
  Buffer.byteLength(text_body ?? "") + Buffer.byteLength(html_body ?? "") > MAX_EVENT_BODIES

/** Where an attachment can be fetched without a key, and until when. */
export interface InboundFileUrl {
  url: string
  expires_at: string
}

/**
 * The record as `email.received` has it: bodies up to 256 KiB together, and an address for every
 * attachment. Longer bodies are left out, and `truncated` says so, as it does of lists of addresses.
 */
export function recordInEvent(
  row: InboundRow,
  content: InboundContent | StoredElsewhere,
  urlOf: (attachment_id: string) => InboundFileUrl,
): Static<typeof InboundInEvent> {
  const bodies = "sha256" in content || isTooLong(content) ? undefined : content
  const record = whole(row, bodies)
  const attachments = record.attachments.map((one) => ({ ...one, ...urlOf(one.id) }))
  return { ...record, truncated: record.truncated || bodies === undefined, attachments }
}
