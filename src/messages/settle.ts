import { eq } from "drizzle-orm"
import { millis, millisFrom, now } from "../core/time"
import { emitAll } from "../events/emit"
import { bumpAll } from "../store/counters"
import { newRowInserter, prepared } from "../store/statements"
import type { Tx } from "../store/store"
import type { Outcome, RecipientOutcome } from "./channel"
import { announce, eventOf, type Fact, isOpen, type Message, outranks } from "./facts"
import { attempts, messages, type Recipient, type Status } from "./tables"

export interface Attempt {
  outcome: Outcome
  started_at: string
  attempt: number
}

/** The next status of one recipient, what to remember with it, and what to tell. */
interface Step {
  email: string
  status: Status
  reason: string | null
  facts: Fact[]
  error?: Message["error"]
}

/** Writes what an attempt came to: status, timeline, events and totals together. */
export const settle = (tx: Tx, message_id: string, tried: Attempt) =>
  record(tx, message_id, tried, null)

/** As `settle`, for an attempt that left somebody waiting until `next_at`. */
export const wait = (tx: Tx, message_id: string, tried: Attempt, next_at: string) =>
  record(tx, message_id, tried, next_at)

/** As `settle`, for the last attempt there is: who is still to be tried again has failed instead. */
export const settleLast = (tx: Tx, message_id: string, tried: Attempt) => {
  const { outcome } = tried
  const others = outcome.others.map(ended)
  return settle(tx, message_id, { ...tried, outcome: { ...outcome, ...ended(outcome), others } })
}

function ended(outcome: RecipientOutcome): RecipientOutcome {
  if (outcome.status !== "retry") return outcome
  const { reply, reason } = outcome
  const last = { ...reply, response: reply.response ?? reason } // a dead line has no reply
  return { ...outcome, status: "failed", reason: EXPIRED, code: "provider_error", reply: last }
}

/** The reason of a message whose attempts are used up; the server's last words are its error. */
const EXPIRED = "expired"

/** Nobody tries any more: every recipient still open has failed, for the last reason given. */
export async function settleDead(tx: Tx, message_id: string, reason: string) {
  const message = await load(tx, message_id)
  if (!message) return
  const steps = failAll(message, EXPIRED, { code: "provider_error", message: reason })
  if (steps.length > 0) await apply(tx, message, steps)
}

/** Ends a message that waits, for a reason of our own: `cancelled`, `suppressed_recipient` … */
export async function abandon(tx: Tx, message: Message, reason: string, text: string) {
  return apply(tx, message, failAll(message, reason, { code: reason, message: text }))
}

/** What the world says after the fact: a complaint, a late bounce, a delivery report. */
export async function feedback(tx: Tx, message_id: string, fact: Fact & { type: Status }) {
  const message = await load(tx, message_id)
  const known = message?.recipients.find(({ email }) => email === fact.recipient_email)
  if (!message || !known) return
  const reason = fact.error?.message ?? known.status_reason
  const { recipient_email: email, type: status } = fact
  await apply(tx, message, [{ email, status, reason, facts: [fact] }])
}

async function record(tx: Tx, message_id: string, tried: Attempt, next_at: string | null) {
  const message = await load(tx, message_id)
  if (!message) return
  const { outcome } = tried
  await insertAttempt(tx, [attemptRow(message_id, tried)])
  const steps = [outcome, ...outcome.others].flatMap((one) => stepOf(message, one))
  await apply(tx, { ...message, provider: outcome.provider }, steps, next_at)
}

/** Status, events, totals. A recipient who is further than the step says stays where he is. */
async function apply(tx: Tx, before: Message, steps: Step[], next_at: string | null = null) {
  const moved = new Map(steps.map((step) => [step.email, step]))
  const recipients = before.recipients.map((recipient) =>
    move(recipient, moved.get(recipient.email)),
  )
  const [primary] = recipients
  if (!primary) return before

  const facts = steps.flatMap((step) => step.facts)
  const last = facts.at(-1)
  const error = moved.get(primary.email)?.error
  const after: Message = {
    ...before,
    recipients,
    status: primary.status,
    status_reason: primary.status_reason,
    next_attempt_at: next_at,
    error: error === undefined ? before.error : error,
    ...moments(before, primary),
    ...(last && { last_event_type: `${before.channel}.${last.type}`, last_event_at: now() }),
    updated_at: now(),
  }
  await update(tx, after)
  await emitAll(
    tx,
    facts.map((fact) => eventOf(after, fact)),
  )
  await count(tx, before, after)
  tellAll(tx, after, moved.get(primary.email)?.facts ?? [])
  return after
}

/** A message that was sent and delivered in one breath is told both. */
function tellAll(tx: Tx, after: Message, facts: Fact[]) {
  for (const { type } of facts) {
    const status = type === "sent" ? "sent" : after.status
    announce(tx, { ...after, status }, `${after.channel}.${type}`)
  }
  if (facts.length === 0) announce(tx, after, null)
}

function move(recipient: Recipient, step: Step | undefined): Recipient {
  if (!step) return recipient
  const back = isOpen(recipient.status) && isOpen(step.status)
  if (!back && !outranks(step.status, recipient.status)) return recipient
  return { ...recipient, status: step.status, status_reason: step.reason }
}

function moments(before: Message, { status }: Recipient) {
  const at = now()
  const handed = status === "sent" || status === "delivered"
  return {
    sent_at: before.sent_at ?? (handed ? at : null),
    delivered_at: before.delivered_at ?? (status === "delivered" ? at : null),
    bounced_at: before.bounced_at ?? (status === "bounced" ? at : null),
  }
}

/** Totals are kept of what is settled: what is open is the difference, so accepting stays cheap. */
async function count(tx: Tx, before: Message, after: Message) {
  if (before.status === after.status) return
  const changes = new Map<string, number>()
  if (!isOpen(before.status)) changes.set(`${before.channel}.${before.status}`, -1)
  if (!isOpen(after.status)) changes.set(`${after.channel}.${after.status}`, 1)
  await bumpAll(tx, after.project_id, changes)
}

/** A recipient already settled, or unknown to the message, is left alone. */
function stepOf(message: Message, outcome: RecipientOutcome): Step[] {
  const recipient = message.recipients.find(({ email }) => email === outcome.email)
  if (!recipient || !isOpen(recipient.status)) return []
  const { email, reason } = outcome
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
  const first = recipient.status_reason === null // only the first deferral is told
  return first ? [{ ...fact, type: "soft_bounced", bounce_type: "Transient", bounce_subtype }] : []
}

function errorOf(outcome: RecipientOutcome): { error: Message["error"] } {
  if (outcome.status === "sent" || outcome.status === "delivered") return { error: null }
  const { smtp_code, enhanced_code } = outcome.reply
  return { error: { ...failureOf(outcome), smtp_code, enhanced_code } }
}

const failureOf = ({ code, reason, status, reply }: RecipientOutcome) => ({
  code: code ?? (status === "bounced" ? "bounced" : "provider_error"),
  message: (reason === EXPIRED ? reply.response : reason) ?? "Refused without a reason.",
})

function failAll(message: Message, reason: string, error: { code: string; message: string }) {
  const open = message.recipients.filter(({ status }) => isOpen(status))
  return open.map(({ email }): Step => {
    const facts = [{ type: "failed", recipient_email: email, error }]
    const kept = { ...error, smtp_code: message.error?.smtp_code ?? null }
    const enhanced_code = message.error?.enhanced_code ?? null
    return { email, status: "failed", reason, facts, error: { ...kept, enhanced_code } }
  })
}

const attemptRow = (message_id: string, { outcome, started_at, attempt }: Attempt) => ({
  message_id,
  attempt,
  provider: outcome.provider,
  started_at,
  duration_ms: millis() - millisFrom(started_at),
  outcome: outcome.status,
  ...outcome.reply,
  transcript: outcome.transcript,
})

async function load(tx: Tx, id: string): Promise<Message | undefined> {
  const [message] = await findMessage(tx, { id })
  return message
}

const insertAttempt = newRowInserter(attempts, "attempt")

const { id } = messages

const findMessage = prepared({ id }, (tx: Tx, slot) =>
  tx.select().from(messages).where(eq(id, slot.id)),
)

const changing = {
  id,
  recipients: messages.recipients,
  status: messages.status,
  status_reason: messages.status_reason,
  provider: messages.provider,
  next_attempt_at: messages.next_attempt_at,
  error: messages.error,
  last_event_type: messages.last_event_type,
  last_event_at: messages.last_event_at,
  sent_at: messages.sent_at,
  delivered_at: messages.delivered_at,
  bounced_at: messages.bounced_at,
  updated_at: messages.updated_at,
}

const update = prepared(changing, (tx: Tx, { id: message_id, ...change }) =>
  tx.update(messages).set(change).where(eq(id, message_id)),
)
