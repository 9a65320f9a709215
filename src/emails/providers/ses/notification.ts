import { bounceSubtype } from "../../../lib/dsn-recipient"
import { stageIn } from "../../../lib/refusal"
import { objectIn } from "../../../lib/text"
import type { ProviderNotice, ProviderReport } from "../../../providers/provider"

interface BouncedRecipient {
  emailAddress?: unknown
  status?: unknown
  diagnosticCode?: unknown
}

interface SesNotification {
  notificationType?: unknown
  eventType?: unknown
  mail?: { messageId?: unknown; destination?: unknown[] }
  bounce?: { bounceType?: unknown; bounceSubType?: unknown; bouncedRecipients?: BouncedRecipient[] }
  complaint?: {
    complaintFeedbackType?: unknown
    complaintSubType?: unknown
    complainedRecipients?: { emailAddress?: unknown }[]
  }
  delivery?: { recipients?: unknown[]; smtpResponse?: unknown }
  reject?: { reason?: unknown }
}

/**
 * Reads the two forms there are, of identities (`notificationType`) and of configuration sets
 * (`eventType`). Undefined for what is none; without notices for what changes nothing here (Send,
 * Open, Click, DeliveryDelay …).
 */
export function readNotification(text: string): ProviderReport | undefined {
  const told: SesNotification | undefined = objectIn(text)
  const id = told?.mail?.messageId
  if (!told || typeof id !== "string" || id === "" || id.length > MOST_ID) return undefined
  const kind = textOf(told.notificationType ?? told.eventType)
  return { provider_message_id: id, notices: READERS[kind]?.(told) ?? [] }
}

const MOST_ID = 200
const MOST_RECIPIENTS = 50

const READERS: Record<string, (told: SesNotification) => ProviderNotice[]> = {
  Bounce: bounces,
  Complaint: complaints,
  Delivery: deliveries,
  Reject: rejections,
}

function bounces({ bounce }: SesNotification): ProviderNotice[] {
  const bounce_type = textOf(bounce?.bounceType) === "Permanent" ? "Permanent" : "Transient"
  const kind = SUBTYPES[textOf(bounce?.bounceSubType)] ?? "General"
  return some(bounce?.bouncedRecipients).map((one) => {
    const said = saidBy(textOf(one?.diagnosticCode), textOf(one?.status))
    const bounce_subtype = kindOf(kind, said)
    const recipient = textOf(one?.emailAddress)
    return { type: "bounced", recipient, bounce_type, bounce_subtype, ...said }
  })
}

/** The server's own words outweigh what SES makes of them, unless they name nothing. */
function kindOf(kind: string, { enhanced_code: status, response }: ReturnType<typeof saidBy>) {
  if (kind === "Suppressed" || response === null) return kind
  const meant = bounceSubtype({ status, diagnostic: response, stage: stageIn(response) })
  return meant === "General" ? kind : meant
}

/** Of those that SES knows; one that it suppressed itself was never tried. */
const SUBTYPES: Record<string, string> = {
  NoEmail: "NoEmail",
  MailboxFull: "MailboxFull",
  MessageTooLarge: "MessageTooLarge",
  ContentRejected: "ContentRejected",
  AttachmentRejected: "AttachmentRejected",
  Suppressed: "Suppressed",
  OnAccountSuppressionList: "Suppressed",
}

function complaints({ complaint }: SesNotification): ProviderNotice[] {
  const complaint_feedback_type = textOf(complaint?.complaintFeedbackType) || "abuse"
  // The recipient complained before: SES took the message, and did not send it.
  const is_old = textOf(complaint?.complaintSubType) === "OnAccountSuppressionList"
  return some(complaint?.complainedRecipients).map((one) => ({
    ...(is_old ? SUPPRESSED : { type: "complained", complaint_feedback_type }),
    recipient: textOf(one?.emailAddress),
    ...NOTHING_SAID,
  }))
}

const SUPPRESSED = {
  type: "bounced",
  bounce_type: "Permanent",
  bounce_subtype: "Suppressed",
} as const

function deliveries({ delivery }: SesNotification): ProviderNotice[] {
  return some(delivery?.recipients).map((one) => ({
    type: "delivered",
    recipient: textOf(one),
    ...saidBy(textOf(delivery?.smtpResponse), ""),
  }))
}

/** SES took it, looked into it and found a virus. */
function rejections({ mail, reject }: SesNotification): ProviderNotice[] {
  return some(mail?.destination).map((one) => ({
    type: "failed",
    recipient: textOf(one),
    ...NOTHING_SAID,
    response: textOf(reject?.reason) || "Rejected by SES.",
  }))
}

const NOTHING_SAID = { smtp_code: null, enhanced_code: null, response: null }

/** `smtp; 550 5.1.1 user unknown`, as RFC 3464 writes it. */
function saidBy(diagnostic: string, status: string) {
  const response = diagnostic.replace(/^smtp;\s*/i, "")
  const code = /^([2-5]\d\d)\b/.exec(response)?.[1]
  const enhanced = /\b([245]\.\d{1,3}\.\d{1,3})\b/.exec(status || response)?.[1]
  return {
    smtp_code: code === undefined ? null : Number(code),
    enhanced_code: enhanced ?? null,
    response: response || null,
  }
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** What should be a list may be anything. */
const some = <One>(list: One[] | undefined): One[] =>
  Array.isArray(list) ? list.slice(0, MOST_RECIPIENTS) : []
