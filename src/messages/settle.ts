import { eq } from "drizzle-orm"
import { now } from "../core/time"
import { emitAll } from "../events/emit"
import { short } from "../lib/short"
import { bumpAll } from "../store/counters"
import { held } from "../store/locks"
import { newRowInserter, prepared } from "../store/statements"
import type { Tx } from "../store/store"
import type { Outcome, RecipientOutcome } from "./channel"
import { announce, eventOf, type Fact, isOpen, type Message, OWN_SOURCE, outranks } from "./facts"
import { BROKEN, EXPIRED, ended, failAll, type Step, stepsOf } from "./steps"
import { attempts, messageContents, messages, type Recipient, type Status } from "./tables"

export interface Attempt {
  outcome: Outcome
  started_at: string
  duration_ms: number
  attempt: number
  /** What else is written with the first word about the attempt. */
  keep: ((tx: Tx) => Promise<void>) | undefined
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

/** Nobody tries any more: every recipient still open has failed, for the last reason given. */
export async function settleDead(tx: Tx, message_id: string, reason: string) {
  const message = await load(tx, message_id)
  if (!message) return
  const steps = failAll(message, EXPIRED, { code: "provider_error", message: short(reason) })
  if (steps.length > 0) await apply(tx, message, steps)
}

/** Ends a message that waits, for a reason of our own: `cancelled`, `suppressed_recipient` … */
export async function abandon(tx: Tx, message: Message, reason: string, text: string) {
  return apply(tx, message, failAll(message, reason, { code: reason, message: text }))
}

/** The attempt broke on our side before anybody answered: back to the queue, and it says so. */
export async function putBack(tx: Tx, message_id: string, next_at: string) {
  const message = await load(tx, message_id)
  if (!message) return
  const open = message.recipients.filter(({ status }) => isOpen(status))
  const steps = open.map(({ email, status_reason }): Step => {
    const reason = status_reason ?? BROKEN // a deferral that was told already stays
    return { email, status: "queued", reason, facts: [] }
  })
  if (steps.length > 0) await apply(tx, message, steps, next_at)
}

/**
 * What the world says after the fact: a complaint, a late bounce, a delivery report. What is known
 * already is not told again, and who waits for another attempt goes on waiting.
 */
export async function feedback(tx: Tx, message_id: string, fact: Fact & { type: Status }) {
  const message = await load(tx, message_id)
  const known = message?.recipients.find(({ email }) => email === fact.recipient_email)
  if (!message || !known || known.status === fact.type) return
  const reason = short(fact.error?.message ?? known.status_reason)
  const { recipient_email: email, type: status } = fact
  await apply(tx, message, [{ email, status, reason, facts: [fact] }], message.next_attempt_at)
}

async function record(tx: Tx, message_id: string, tried: Attempt, next_at: string | null) {
  const message = await load(tx, message_id)
  if (!message) return
  const outcome = shortened(tried.outcome)
  await insertAttempt(tx, [attemptRow(message_id, { ...tried, outcome })])
  await tried.keep?.(tx)
  const steps = [outcome, ...outcome.others].flatMap((one) => stepsOf(message, one))
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
  // While an attempt runs only the message says "sending": another recipient's news keep that.
  const { status, status_reason } = moved.has(primary.email) ? primary : before
  const after: Message = {
    ...before,
    recipients,
    status,
    status_reason,
    next_attempt_at: recipients.some((one) => isOpen(one.status)) ? next_at : null,
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
  await forget(tx, after)
  tellAll(tx, after, moved.get(primary.email)?.facts ?? [])
  return after
}

/** Mail of the instance itself carries tokens: nothing of it stays once nobody waits for it. */
async function forget(tx: Tx, { id: message_id, source, recipients }: Message) {
  if (source !== OWN_SOURCE || recipients.some(({ status: one }) => isOpen(one))) return
  await tx.delete(messageContents).where(eq(messageContents.message_id, message_id))
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

/** A server may say much; what is kept of it goes into rows, events and the feed. */
const shortened = (outcome: Outcome): Outcome => ({
  ...outcome,
  ...brief(outcome),
  others: outcome.others.map((one) => ({ ...one, ...brief(one) })),
})

const brief = ({ reason, reply }: RecipientOutcome) => ({
  reason: short(reason),
  reply: { ...reply, response: short(reply.response) },
})

const attemptRow = (
  message_id: string,
  { outcome, started_at, duration_ms, attempt }: Attempt,
) => ({
  message_id,
  attempt,
  duration_ms,
  provider: outcome.provider,
  started_at,
  outcome: outcome.status,
  ...outcome.reply,
  transcript: outcome.transcript,
})

/** Locked: a complaint and the end of an attempt may come at the same moment. */
async function load(tx: Tx, id: string): Promise<Message | undefined> {
  const [message] = await findMessage(tx, { id })
  return message
}

const insertAttempt = newRowInserter(attempts, "attempt")

const { id } = messages

const findMessage = prepared({ id }, (tx: Tx, slot) =>
  held(tx.select().from(messages).where(eq(id, slot.id))),
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
