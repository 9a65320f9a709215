import { short } from "../lib/text"
import type { Outcome, RecipientOutcome } from "../providers/provider"
import { newRowInserter } from "../store/statements"
import type { Tx } from "../store/store"
import { changeAll, load, loadAll } from "./change"
import { type Fact, isOpen, type Tracked } from "./facts"
import { forgetOldRefusals, LOGIN_REFUSED } from "./login-refusals"
import { BROKEN, EXPIRED, ended, failAll, type Step, stepsOf } from "./steps"
import { attempts, messageRaws, type Status } from "./tables"
import { takeBack } from "./take-back"

export interface Attempt {
  outcome: Outcome
  started_at: string
  duration_ms: number
  attempt: number
  /** The bytes that left, packed, to be kept with the first word about an attempt. */
  keep: Buffer | undefined
}

/** An attempt, and the message that it was made for. */
export interface Attempted {
  message_id: string
  tried: Attempt
}

/**
 * Writes what attempts came to: status, timeline, events and totals together. The attempts are of as
 * many messages.
 */
export const settleAll = (tx: Tx, list: Attempted[]) => record(tx, list, null)

/** As `settleAll`, for an attempt that left somebody waiting until `next_at`. */
export const wait = (tx: Tx, one: Attempted, next_at: string) => record(tx, [one], next_at)

/**
 * An attempt that ended with a refused login: it is recorded, and the message waits. That tells nobody
 * of a deferral, because nobody was asked for the recipient.
 */
export async function keepRefused(tx: Tx, { message_id, tried }: Attempted, reason: string) {
  const message = await load(tx, message_id)
  if (!message) return
  const known = [{ message, tried: { ...tried, outcome: shortened(tried.outcome) } }]
  const rows = known.map((one) => ({ ...attemptRow(one), outcome: LOGIN_REFUSED }))
  await insertAttempts(tx, rows)
  await forgetOldRefusals(tx, message_id, tried.attempt)
  await keepRaws(tx, known)
  await takeBack(tx, message_id, { until: null, reason, attempts: tried.attempt })
}

/** As `settleAll`, for the last attempt there is: who is still to be tried again has failed instead. */
export const settleLast = (tx: Tx, { message_id, tried }: Attempted) => {
  const { outcome } = tried
  const others = outcome.others.map(ended)
  const last = { ...tried, outcome: { ...outcome, ...ended(outcome), others } }
  return settleAll(tx, [{ message_id, tried: last }])
}

/** Nobody tries any more: every recipient still open has failed, for the last reason given. */
export async function settleDead(tx: Tx, message_id: string, reason: string) {
  const message = await load(tx, message_id)
  if (!message) return
  const steps = failAll(message, EXPIRED, { code: "provider_error", message: short(reason) })
  if (steps.length > 0) await changeAll(tx, [{ before: message, steps, next_at: null }])
}

/** Ends a message that waits, for a reason of our own: `cancelled`, `suppressed_recipient` … */
export async function abandon(tx: Tx, message: Tracked, reason: string, text: string) {
  const steps = failAll(message, reason, { code: reason, message: text })
  await changeAll(tx, [{ before: message, steps, next_at: null }])
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
  if (steps.length > 0) await changeAll(tx, [{ before: message, steps, next_at }])
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
  const steps = [{ email, status, reason, facts: [fact] }]
  await changeAll(tx, [{ before: message, steps, next_at: message.next_attempt_at }])
}

/** What belongs to a message that is gone is left out. */
async function record(tx: Tx, list: Attempted[], next_at: string | null) {
  const found = await loadAll(
    tx,
    list.map(({ message_id }) => message_id),
  )
  const known = list.flatMap(({ message_id, tried }) => {
    const message = found.get(message_id)
    return message ? [{ message, tried: { ...tried, outcome: shortened(tried.outcome) } }] : []
  })
  await insertAttempts(tx, known.map(attemptRow))
  await keepRaws(tx, known)
  const changes = known.map(({ message, tried: { outcome } }) => {
    const steps = [outcome, ...outcome.others].flatMap((one) => stepsOf(message, one))
    return { before: { ...message, provider: outcome.provider }, steps, next_at }
  })
  await changeAll(tx, changes)
}

interface Known {
  message: Tracked
  tried: Attempt
}

/** A statement for Postgres is one text in memory, and so are all rows in it. */
const MOST_BYTES = 4 * 1024 * 1024

/** The first ones stay: they are what left first. */
async function keepRaws(tx: Tx, list: Known[]) {
  let rows: { message_id: string; raw: Buffer }[] = []
  let bytes = 0
  for (const { message, tried } of list) {
    if (!tried.keep) continue
    if (bytes + tried.keep.length > MOST_BYTES) {
      await insertRaws(tx, rows)
      rows = []
      bytes = 0
    }
    rows.push({ message_id: message.id, raw: tried.keep })
    bytes += tried.keep.length
  }
  await insertRaws(tx, rows)
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

const attemptRow = ({ message, tried }: Known) => {
  const { outcome, started_at, duration_ms, attempt } = tried
  return {
    message_id: message.id,
    attempt,
    duration_ms,
    provider: outcome.provider,
    started_at,
    outcome: outcome.status,
    ...outcome.reply,
    transcript: outcome.transcript,
  }
}

const insertAttempts = newRowInserter(attempts, "attempt")
const insertRaws = newRowInserter(messageRaws, "message_id")
