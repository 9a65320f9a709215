import type { RecipientOutcome } from "../providers/provider"
import { type Fact, isOpen, type Message } from "./facts"
import type { Recipient, Status } from "./tables"

/** The next status of one recipient, what to remember with it, and what to tell. */
export interface Step {
  email: string
  status: Status
  reason: string | null
  facts: Fact[]
  error?: Message["error"]
}

/** A recipient already settled, or unknown to the message, is left alone. */
export function stepsOf(message: Pick<Message, "recipients">, outcome: RecipientOutcome): Step[] {
  const recipient = message.recipients.find(({ email }) => email === outcome.email)
  if (!recipient || !isOpen(recipient.status)) return []
  const { email, reason } = outcome
  if (outcome.held) return [{ email, status: "queued", reason: recipient.status_reason, facts: [] }]
  const status = outcome.status === "retry" ? "queued" : outcome.status
  const why = outcome.status === "retry" ? (reason ?? "deferred") : reason
  return [{ email, status, reason: why, facts: factsOf(recipient, outcome), ...errorOf(outcome) }]
}

function factsOf(recipient: Recipient, outcome: RecipientOutcome): Fact[] {
  const { email: recipient_email, reply: detail, bounce_subtype, status } = outcome
  const fact = { recipient_email, detail }
  if (status === "sent") return [{ ...fact, type: "sent" }]
  if (status === "delivered") {
    return [
      { ...fact, type: "sent" },
      { ...fact, type: "delivered" },
    ]
  }
  if (status === "bounced") {
    return [{ ...fact, type: "bounced", bounce_type: "Permanent", bounce_subtype }]
  }
  if (status === "failed") return [{ ...fact, type: "failed", error: failureOf(outcome) }]
  // Only the first deferral is told.
  const first = recipient.status_reason === null || recipient.status_reason === BROKEN
  return first ? [{ ...fact, type: "soft_bounced", bounce_type: "Transient", bounce_subtype }] : []
}

function errorOf(outcome: RecipientOutcome): { error: Message["error"] } {
  if (outcome.status === "sent" || outcome.status === "delivered") return { error: null }
  const { smtp_code, enhanced_code } = outcome.reply
  return { error: { ...failureOf(outcome), smtp_code, enhanced_code } }
}

const failureOf = ({ code, reason, status, reply }: RecipientOutcome) => ({
  code: code ?? (status === "bounced" ? "bounced" : "provider_error"),
  message:
    (reason === EXPIRED ? reply.response : reason) ??
    "The other side refused the message and gave no reason.",
})

export function failAll(
  message: Pick<Message, "recipients" | "error">,
  reason: string,
  error: { code: string; message: string },
) {
  const open = message.recipients.filter(({ status }) => isOpen(status))
  return open.map(({ email }): Step => {
    const facts = [{ type: "failed", recipient_email: email, error }]
    const kept = { ...error, smtp_code: message.error?.smtp_code ?? null }
    const enhanced_code = message.error?.enhanced_code ?? null
    return { email, status: "failed", reason, facts, error: { ...kept, enhanced_code } }
  })
}

export function ended(outcome: RecipientOutcome): RecipientOutcome {
  if (outcome.status !== "retry") return outcome
  const { reply, reason } = outcome
  const last = { ...reply, response: reply.response ?? reason } // a dead line has no reply
  return { ...outcome, status: "failed", reason: EXPIRED, code: "provider_error", reply: last }
}

/** The reason of a message that waits because of us, and was never deferred by anybody. */
export const BROKEN = "An internal error stopped the attempt. The message is tried again."

/** The reason of a message whose attempts are used up; the server's last words are its error. */
export const EXPIRED = "expired"
