import { and, eq, lte } from "drizzle-orm"
import { now } from "../core/time"
import { events } from "../events/tables"
import { DEAD, HELD, LEASED, OVER, READY, type Settled, type WorkColumns } from "../jobs/work-item"
import { keepReceipts } from "../providers/callbacks"
import type { Outcome, RecipientOutcome } from "../providers/provider"
import { short } from "../store/columns"
import { newRowInserter } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import {
  BROKEN,
  changeAll,
  EXPIRED,
  endAll,
  failAll,
  load,
  loadAll,
  type StatusTransition,
  type Step,
  stepsOf,
} from "./change"
import {
  addressIn,
  addressOf,
  codesOf,
  eventTypeOf,
  isNews,
  isOpen,
  isScheduled,
  knowsStatus,
  type Message,
  mayFollow,
  type StatusChange,
  type Tracked,
  tellsScheduled,
} from "./status-changes"
import { suppressWhere } from "./suppressed"
import { attempts, messageRaws, type Status } from "./tables"

export const LOGIN_REFUSED = "login_refused"

/** Refused logins of one message; there is one a minute until the login is mended. */
const MOST_REFUSALS = 60

export interface DeliveryAttempt {
  outcome: Outcome
  started_at: string
  duration_ms: number
  attempt: number
  /** What makes the bytes that left again, to be kept with the first word about an attempt. */
  keep: Buffer | undefined
}

/** What came of one claim of a message; `end` is missing where nothing was tried. */
export type SettledMessage = Omit<Settled<Message, DeliveryAttempt>, "row"> & {
  row: Message | Pick<Message, "id" | "attempt">
}

/**
 * Writes what came of claims: status, timeline, events, totals and work columns together, of as many
 * messages. What belongs to a message that is gone is left out.
 */
export async function settle(tx: Tx, list: SettledMessage[]) {
  const found = await subjectsOf(tx, list)
  const known = list.flatMap((one): Known[] => {
    const message = found.get(one.row.id)
    return message
      ? [{ ...one, message, tried: one.end && shortened(lasting(one.end, one.after)) }]
      : []
  })
  await insertAttempts(tx, known.flatMap(attemptRow))
  await insertRaws(tx, known.flatMap(rawRow)) // the first ones stay: they are what left first
  const receipts = known.flatMap(receiptsOf)
  if (receipts.length > 0) await keepReceipts(tx, receipts)
  await changeAll(tx, known.map(changeOf), { are_claimed: true })
  for (const one of known) {
    if (isRefused(one)) await forgetOldRefusals(tx, one.message.id, one.after.attempt)
  }
}

/** By id. What was claimed and is unchanged need not be read again. */
async function subjectsOf(tx: Tx, list: SettledMessage[]): Promise<Map<string, Tracked>> {
  const current = list.flatMap(({ row, is_current }) =>
    is_current && "recipients" in row ? [row] : [],
  )
  const found = new Map<string, Tracked>(current.map((row) => [row.id, row]))
  const unknown = list.flatMap(({ row }) => (found.has(row.id) ? [] : [row.id]))
  if (unknown.length === 0) return found
  return new Map([...found, ...(await loadAll(tx, unknown))])
}

/** One message probed for all: the attempt is recorded, and no event is emitted. */
const isRefused = ({ tried }: Known) => tried?.outcome.login_refused !== undefined

function changeOf(one: Known): StatusTransition {
  const change = changeByResult(one)
  const { message, tried } = one
  if (!isScheduled(message)) return change
  return { ...change, steps: [...releaseSteps(message, tried?.started_at), ...change.steps] }
}

/** A scheduled message is released by its first claim, whatever came of it: now it is queued. */
function releaseSteps({ channel, recipients }: Tracked, at = now()): Step[] {
  const was_told = tellsScheduled(channel) && { was_told: true as const }
  return recipients.map(({ email: address, status, status_reason: reason }) => {
    const fact = { type: "queued", address, at, ...was_told }
    return { address, status, reason, facts: [fact] }
  })
}

function changeByResult(one: Known): StatusTransition {
  const { message, tried, after, reason } = one
  if (!tried) return { before: message, ...untried(one) }
  const { outcome } = tried
  if (isRefused(one)) return { before: message, steps: [], after, waits_for: short(reason) }
  const { sender = message.sender } = outcome
  const provider = outcome.provider ?? message.provider
  const before = { ...message, provider, sender }
  const all = [outcome, ...outcome.others]
  const steps = all.flatMap((each) => stepsOf(message, each))
  const { unheard_at: run_at } = outcome
  const is_sent = steps.some(({ status }) => status === "sent") // and not acknowledged meanwhile
  const waking = run_at !== undefined && is_sent && { state: READY, run_at }
  return { before, asked_before: message.provider, steps, after: { ...after, ...waking } }
}

/** Whether work that waits is a message that left, of which nobody has heard since. */
export const isUnheard = ({ status, recipients }: Pick<Message, "status" | "recipients">) =>
  status === "sent" && !recipients.some((one) => isOpen(one.status))

/** Expires a message that nobody acknowledged in time. */
export async function expireUnheard(tx: Tx, message_id: string): Promise<void> {
  const message = await load(tx, message_id)
  if (message?.status !== "sent") return
  const error = { code: EXPIRED, message: UNHEARD }
  const steps = message.recipients.map(({ email: address }): Step => {
    const facts = [{ type: EXPIRED, address, error }]
    const why = { ...error, smtp_code: null, enhanced_code: null }
    return { address, status: EXPIRED, reason: null, facts, error: why }
  })
  await changeAll(tx, [endedBy(message, steps)])
}

const UNHEARD = "No device acknowledged the message in its time to live."

/**
 * The recipient's device has it, from this provider. A message that ended another way stays as it is. A device may be
 * faster than what tells of the attempt, or that may be lost: then the message was sent, too, and is tried no more.
 * Returns whether that was news.
 */
export async function acknowledge(tx: Tx, message_id: string, provider: string): Promise<boolean> {
  const message = await load(tx, message_id)
  if (!message || !mayFollow(message.channel, "delivered", message.status)) return false
  const types = isOpen(message.status) ? ["sent", "delivered"] : ["delivered"]
  const steps = message.recipients.map(({ email: address }): Step => {
    const facts = types.map((type) => ({ type, address }))
    return { address, status: "delivered", reason: null, facts, error: null }
  })
  const { after, ...change } = endedBy(
    { ...message, provider: message.provider ?? provider },
    steps,
  )
  // An attempt that runs ends its own claim.
  const work = message.state !== LEASED && after && { after }
  await changeAll(tx, [{ ...change, asked_before: message.provider, ...work }])
  return true
}

/** The last attempt there is: each recipient that was to be tried again has failed instead. */
function lasting(tried: DeliveryAttempt, { state }: WorkColumns): DeliveryAttempt {
  if (state !== DEAD) return tried
  const { outcome } = tried
  return { ...tried, outcome: { ...outcome, ...ended(outcome), others: outcome.others.map(ended) } }
}

function ended(outcome: RecipientOutcome): RecipientOutcome {
  if (outcome.status !== "retry") return outcome
  const { reply, code } = outcome
  const response = reply.response ?? outcome.reason // a dead line has no reply
  const last = { ...reply, response }
  const why = code === null ? { reason: EXPIRED, code: "provider_error" } : { reason: code, code }
  return {
    ...outcome,
    ...why,
    status: "failed",
    reply: last,
    ...(code !== null && { text: response ?? code }),
  }
}

/** Nothing was tried: it was deferred, our own fault stopped it, or no recipient was left. */
function untried({ message, after, reason, row }: Known): Omit<StatusTransition, "before"> {
  if (after.state === OVER) return { steps: [], after }
  if (after.state === DEAD) {
    const error = { code: "provider_error", message: short(reason) ?? "" }
    return { steps: failAll(message, EXPIRED, error), after }
  }
  const is_deferred = after.state === HELD || after.attempt < row.attempt
  if (is_deferred) return { steps: [], after, waits_for: short(reason) }
  const open = message.recipients.filter(({ status }) => isOpen(status))
  const steps = open.map(({ email: address, status_reason }): Step => {
    const why = status_reason ?? BROKEN // a deferral that was told already stays
    return { address, status: "queued", reason: why, facts: [] }
  })
  return { steps, after }
}

async function forgetOldRefusals(tx: Tx, message_id: string, latest: number) {
  if (latest <= MOST_REFUSALS) return
  const old = lte(attempts.attempt, latest - MOST_REFUSALS)
  const ours = and(eq(attempts.message_id, message_id), eq(attempts.outcome, LOGIN_REFUSED), old)
  await tx.delete(attempts).where(ours)
}

export const cancel = (tx: Tx, message: Tracked, text: string): Promise<void> =>
  stopAll(tx, [message], { status: CANCELLED, text })

/** The reason of a message that was cancelled where its channel has no status for it. */
export const CANCELLED = "cancelled"

/** Why messages that wait are not sent any more, and what that says to people. */
export interface MessageStop {
  status: string
  text: string
}

/** Ends messages that wait, where they still do. Channels without the status fail them with it as the reason. */
export async function stopAll(tx: Tx, list: Tracked[], { status, text }: MessageStop) {
  const waiting = list.filter(({ recipients }) => recipients.some((one) => isOpen(one.status)))
  await changeAll(
    tx,
    waiting.map((message) =>
      knowsStatus(message.channel, status)
        ? endedBy(message, endAll(message, status))
        : endedBy(message, failAll(message, status, { code: status, message: text })),
    ),
  )
}

function endedBy(message: Tracked, steps: Step[]): StatusTransition {
  const { run_at, attempt } = message
  const after: WorkColumns = { state: OVER, run_at, attempt, owner: null, lease_until: null }
  return { before: message, steps, after }
}

/** Something that is found out after a message left. A deferral on its further way changes no status. */
export type LateFact = StatusChange & { type: Status | "soft_bounced" }

/**
 * What the world says after the fact: a complaint, a late bounce, a delivery report. What is known
 * already is not told again, and a recipient that waits for another attempt goes on waiting. That a recipient
 * wants no more counts in any status, and what was unconfirmed is settled.
 */
export async function feedback(tx: Tx, message_id: string, fact: LateFact) {
  const message = await load(tx, message_id)
  const known = message?.recipients.find((one) => addressOf(one) === fact.address)
  if (!message || !known) return
  const { address, type, was_told } = fact
  const status = type === "soft_bounced" ? known.status : type
  const is_news =
    !was_told && (type === "soft_bounced" || isNews(message.channel, type, known.status))
  const is_good = status === "sent" || status === "delivered"
  const settles = is_good && status === known.status && known.status_reason !== null
  if (is_news || settles) {
    const reason = short(fact.error?.message ?? (is_good ? null : known.status_reason))
    const steps = [{ address, status, reason, facts: is_news ? [fact] : [], ...errorIn(fact) }]
    return changeAll(tx, [{ before: message, steps }])
  }
  if (fact.opted_out && !was_told)
    await suppressWhere(tx, [{ after: message, facts: [fact] }], false)
}

const errorIn = ({ error, detail }: StatusChange): Pick<Step, "error"> =>
  error ? { error: { ...error, ...codesOf(detail ?? {}) } } : {}

/** Whether an event of the message has told this fact before, however its status changed since. */
export async function wasTold(
  db: Reader,
  { id, channel }: Pick<Message, "id" | "channel">,
  { type, address }: StatusChange,
): Promise<boolean> {
  const event_type = eventTypeOf(channel, type)
  if (event_type === undefined) return false
  const same = and(eq(events.subject_id, id), eq(events.type, event_type))
  const rows = await db.select({ data: events.data }).from(events).where(same)
  return rows.some(({ data }) => addressIn(channel, data) === address)
}

interface Known extends SettledMessage {
  message: Tracked
  tried: DeliveryAttempt | undefined
}

/** A server may say much; what is kept of it goes into rows, events and the feed. */
function shortened(tried: DeliveryAttempt): DeliveryAttempt {
  const { outcome } = tried
  const others = outcome.others.map((one) => ({ ...one, ...brief(one) }))
  return { ...tried, outcome: { ...outcome, ...brief(outcome), others } }
}

const brief = ({ reason, reply }: RecipientOutcome) => ({
  reason: short(reason),
  reply: { ...reply, response: short(reply.response) },
})

function attemptRow(one: Known) {
  const { message, tried } = one
  if (!tried) return []
  const { outcome, started_at, duration_ms, attempt } = tried
  const { provider } = outcome
  if (provider === null) return []
  return [
    {
      message_id: message.id,
      attempt,
      duration_ms,
      provider,
      started_at,
      outcome: isRefused(one) ? LOGIN_REFUSED : outcome.status,
      ...outcome.reply,
      transcript: outcome.transcript,
    },
  ]
}

const rawRow = ({ message, tried }: Known) =>
  tried?.keep ? [{ message_id: message.id, raw: tried.keep }] : []

/** The providers' ids, written with the outcome: a report finds both or neither. */
function receiptsOf({ message: { id: message_id, project_id }, tried }: Known) {
  if (!tried) return []
  const { outcome } = tried
  return [outcome, ...outcome.others].flatMap(({ config_id, provider_message_id }) =>
    config_id === undefined || provider_message_id === undefined
      ? []
      : [{ config_id, provider_message_id, project_id, message_id }],
  )
}

const insertAttempts = newRowInserter(attempts, "attempt")
const insertRaws = newRowInserter(messageRaws, "message_id")
