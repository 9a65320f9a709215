import { inArray } from "drizzle-orm"
import { millis, millisFrom, now } from "../core/time"
import { emitAll } from "../events/emit"
import { accounts } from "../identity/tables"
import type { WorkColumns } from "../jobs/work-item"
import type { RecipientOutcome } from "../providers/provider"
import { noteTrouble } from "../reputation/evaluate"
import { type CountedMessage, count, hourOf, NONE } from "../reputation/hour-counts"
import { forUpdate, idList, isAmong } from "../store/columns"
import { type Bump, bumpAll } from "../store/counters"
import { prepared, updater } from "../store/statements"
import type { Tx } from "../store/store"
import { moveByDay } from "./day-counts"
import { eventsOf } from "./event-data"
import { dropSealed } from "./sealed-contents"
import {
  AUTH_SOURCE,
  addressOf,
  announce,
  bouncesCount,
  codesOf,
  counterOf,
  countsByDay,
  eventTypeOf,
  factName,
  isOpen,
  knowsFact,
  type Message,
  mayFollow,
  OWN_SOURCE,
  type StatusChange,
  type Tracked,
  tracked,
} from "./status-changes"
import { suppressWhere } from "./suppressed"
import { type ChannelName, messages, type Recipient, type Status } from "./tables"

/** Something that happened to a message: the message as it was loaded, and the new status of its recipients. */
export interface StatusTransition {
  before: Tracked
  steps: Step[]
  /** The provider that the row names, where `before` names the one that was asked just now. */
  asked_before?: string | null
  after?: WorkColumns
  /** Why it waits, where nothing was tried and no recipient changes. */
  waits_for?: string | null
}

/**
 * By their ids. Locked, in one order for all transactions that lock several: a complaint and the end of an attempt
 * may come at the same moment.
 */
export async function loadAll(tx: Tx, ids: string[]): Promise<Map<string, Tracked>> {
  const found = await findMessages(tx, { ids })
  return new Map(found.map((message) => [message.id, message]))
}

export const load = async (tx: Tx, message_id: string) =>
  (await loadAll(tx, [message_id])).get(message_id)

/** Of loaded messages, each named once. A recipient that is further than the step stays so. */
export async function changeAll(
  tx: Tx,
  list: StatusTransition[],
  { are_claimed = false }: { are_claimed?: boolean } = {},
) {
  const changed = list.flatMap(changeOf)
  const update = are_claimed ? updateClaimed : updateWatched
  await update(
    tx,
    changed.map(({ after }) => after),
  )
  await emitAll(
    tx,
    changed.flatMap(({ after, facts }) =>
      facts.flatMap((fact) =>
        fact.was_told ? [] : eventsOf(after, fact, fact.at ?? after.updated_at),
      ),
    ),
  )
  await bumpAll(tx, changed.flatMap(bumpsOf))
  const by_day = changed.filter(({ after }) => countsByDay(after.channel))
  if (by_day.length > 0) await moveByDay(tx, by_day)
  await suppressWhere(tx, changed, are_claimed)
  await countForReputation(tx, changed)
  await dropSealed(tx, changed.filter(isOver))
  for (const one of changed) notifyAll(tx, one)
}

interface Changed extends Omit<StatusTransition, "after"> {
  after: Tracked & Pick<Message, "updated_at">
  facts: StatusChange[]
}

function changeOf(change: StatusTransition): Changed[] {
  const { before, steps, after: work, waits_for } = change
  const moved = new Map(steps.map((step) => [step.address, step]))
  const { channel } = before
  const recipients = before.recipients.map((one) => move(channel, one, moved.get(addressOf(one))))
  const [primary] = recipients
  if (!primary) return []
  const facts = steps.flatMap((step) => step.facts).filter(({ type }) => knowsFact(channel, type))
  const last = facts.at(-1)
  const error = moved.get(addressOf(primary))?.error
  const { status, status_reason } = moved.has(addressOf(primary)) ? primary : before
  const why = waits_for && isOpen(status) ? waits_for : status_reason
  const at = now()
  const after = {
    ...before,
    ...work,
    recipients,
    status,
    status_reason: why,
    error: error === undefined ? before.error : error,
    ...moments(before, primary, at),
    ...(last && { last_event_type: factName(channel, last.type), last_event_at: at }),
    updated_at: at,
  }
  return [{ ...change, after, facts }]
}

function move(channel: ChannelName, recipient: Recipient, step: Step | undefined): Recipient {
  if (!step) return recipient
  if (step.status === recipient.status) return { ...recipient, status_reason: step.reason }
  const back = isOpen(recipient.status) && isOpen(step.status)
  if (!back && !mayFollow(channel, step.status, recipient.status)) return recipient
  return { ...recipient, status: step.status, status_reason: step.reason }
}

function moments(before: Tracked, { status }: Recipient, at: string) {
  const handed = status === "sent" || status === "delivered"
  return {
    sent_at: before.sent_at ?? (handed ? at : null),
    delivered_at: before.delivered_at ?? (status === "delivered" ? at : null),
    bounced_at: before.bounced_at ?? (status === "bounced" ? at : null),
  }
}

/** Totals are kept of what is settled: what is open is the difference, so accepting stays cheap. */
const bumpsOf = ({ before, after }: Changed): Bump[] =>
  before.status === after.status
    ? []
    : [...settledBumps(before, -1), ...settledBumps(after, 1), ...fanOutBumps(before, after.status)]

const settledBumps = ({ project_id: owner, channel, status }: Tracked, by: 1 | -1) =>
  isOpen(status) ? [] : [{ owner, name: counterOf(channel, status), by }]

const FAILURES = new Set<Status>(["failed", "bounced", "undelivered", "expired", "cancelled"])

/** What a change of status is to the counts of the fan-out. */
export function fanOutBumps(
  { fan_out_id: owner, channel, status }: Pick<Tracked, "fan_out_id" | "channel" | "status">,
  next: Status,
): Bump[] {
  const by = Number(FAILURES.has(next)) - Number(FAILURES.has(status))
  return owner === null ? [] : [{ owner, name: `${channel}.failed`, by }]
}

/** Refusals that say nothing of the recipients or of what they were sent (contract 20, section 3). */
const NOT_COUNTED = new Set(["PolicyRejected", "InfrastructureRejected"])

/**
 * Counts what became of recipients for the reputation of their account, in the transaction of the
 * change. Mail of the sandbox and of the instance itself counts nothing.
 */
async function countForReputation(tx: Tx, list: Changed[]): Promise<void> {
  const counted = list.flatMap(countedOf)
  const troubled = counted.filter(({ counts }) => counts.bounced + counts.complained > 0)
  if (troubled.length > 0) {
    await moveBeforeWindows(
      tx,
      troubled.filter(({ is_late }) => is_late),
    )
    noteTrouble(tx, new Set(troubled.map(({ account_id }) => account_id)))
  }
  await count(tx, counted)
}

interface SentMessage extends CountedMessage {
  sent_at_ms: number
  is_late: boolean
}

/**
 * A window that the operator began anew may begin within an hour. What is heard later of mail that was sent
 * before, in that hour, counts for the hour before, which is in no window of the account.
 */
async function moveBeforeWindows(tx: Tx, late: SentMessage[]): Promise<void> {
  if (late.length === 0) return
  const { id, reputation } = accounts
  const ids = [...new Set(late.map(({ account_id }) => account_id))]
  const rows = await tx.select({ id, reputation }).from(accounts).where(inArray(id, ids))
  const starts = new Map(rows.map((row) => [row.id, row.reputation?.window_start]))
  for (const one of late) {
    const start = starts.get(one.account_id)
    if (!start || one.sent_at_ms >= millisFrom(start)) continue
    one.hour = Math.min(one.hour, hourOf(millisFrom(start)) - 1)
  }
}

function countedOf({ before, after, facts }: Changed): SentMessage[] {
  if (!bouncesCount(before.channel) || before.sandbox || before.source === OWN_SOURCE) return []
  const counts = { ...NONE }
  for (const [at, recipient] of after.recipients.entries()) {
    const was = before.recipients[at]
    if (was && was.status !== recipient.status)
      addStep(before.channel, counts, was, recipient, facts)
  }
  if (counts.sent + counts.delivered + counts.bounced + counts.complained === 0) return []
  const { account_id, project_id, sender_domain, tags, template_id } = before
  const sent_at_ms = before.sent_at === null ? millis() : millisFrom(before.sent_at)
  const is_late = before.sent_at !== null
  const hour = hourOf(sent_at_ms)
  const named = { account_id, project_id, sender_domain, tags, template_id }
  return [{ ...named, sent_at_ms, is_late, hour, counts }]
}

/** A recipient counts as sent when a server first took the mail, or refused it for good. */
function addStep(
  channel: Tracked["channel"],
  counts: CountedMessage["counts"],
  was: Recipient,
  { email: address, status }: Recipient,
  facts: StatusChange[],
) {
  const is_first = isOpen(was.status) || was.status === "failed"
  if (status === "bounced" && isExcluded(address, facts)) return
  const is_handed = status !== "failed" && mayFollow(channel, status, "sending")
  if (is_first && is_handed) counts.sent += 1
  if (status === "delivered") counts.delivered += 1
  if (status === "bounced") counts.bounced += 1
  if (status === "complained") counts.complained += 1
}

const isExcluded = (address: string, facts: StatusChange[]): boolean =>
  facts.some(
    (fact) =>
      fact.type === "bounced" &&
      fact.address === address &&
      NOT_COUNTED.has(fact.bounce_subtype ?? ""),
  )

/** Mail of the instance itself and of sign-ins carries tokens, so what is sealed is deleted once no recipient waits. */
const isOver = ({ after: { source, recipients } }: Changed) =>
  (source === OWN_SOURCE || source === AUTH_SOURCE) &&
  !recipients.some(({ status }) => isOpen(status))

/** A message that was sent and delivered in one breath is told both. */
function notifyAll(tx: Tx, { after, steps }: Changed) {
  const [first] = after.recipients
  const of_first = steps.filter(({ address }) => first && address === addressOf(first))
  const facts = of_first.flatMap((step) => step.facts)
  for (const { type } of facts) {
    const status = type === "sent" || type === "queued" ? type : after.status
    announce(tx, { ...after, status }, eventTypeOf(after.channel, type) ?? null)
  }
  if (facts.length === 0) announce(tx, after, null)
}

export interface Step {
  address: string
  status: Status
  reason: string | null
  facts: StatusChange[]
  error?: Message["error"]
}

/** A recipient already settled, or unknown to the message, is left alone. */
export function stepsOf(message: Pick<Message, "recipients">, outcome: RecipientOutcome): Step[] {
  const recipient = message.recipients.find((one) => addressOf(one) === outcome.address)
  if (!recipient || !isOpen(recipient.status)) return []
  const { address, reason } = outcome
  if (outcome.held)
    return [{ address, status: "queued", reason: recipient.status_reason, facts: [] }]
  const status = outcome.status === "retry" ? "queued" : outcome.status
  const why = outcome.status === "retry" ? (reason ?? "deferred") : reason
  return [{ address, status, reason: why, facts: factsOf(recipient, outcome), ...errorOf(outcome) }]
}

function factsOf(recipient: Recipient, outcome: RecipientOutcome): StatusChange[] {
  const { address, reply: detail, bounce_subtype, status } = outcome
  const fact = { address, detail }
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
  if (status === "expired") return [{ ...fact, type: "expired", error: failureOf(outcome) }]
  if (status === "failed") {
    const { is_soft, opted_out } = outcome
    const more = { ...(is_soft && { is_soft }), ...(opted_out && { opted_out }) }
    return [{ ...fact, type: "failed", error: failureOf(outcome), ...more }]
  }
  // Only the first deferral is told.
  const first = recipient.status_reason === null || recipient.status_reason === BROKEN
  return first ? [{ ...fact, type: "soft_bounced", bounce_type: "Transient", bounce_subtype }] : []
}

function errorOf(outcome: RecipientOutcome): { error: Message["error"] } {
  if (outcome.status === "sent" || outcome.status === "delivered") return { error: null }
  return { error: { ...failureOf(outcome), ...codesOf(outcome.reply) } }
}

const failureOf = ({ code, reason, text, status, reply }: RecipientOutcome) => ({
  code: code ?? (status === "bounced" ? "bounced" : "provider_error"),
  message:
    text ??
    (reason === EXPIRED ? reply.response : reason) ??
    "The other side refused the message and gave no reason.",
})

/** Every recipient that waits reaches a status that ends it, and a fact of the same name tells it. */
export const endAll = (message: Pick<Message, "recipients">, status: Status) =>
  message.recipients
    .filter((one) => isOpen(one.status))
    .map(({ email: address }): Step => {
      const facts = [{ type: status, address }]
      return { address, status, reason: null, facts }
    })

export function failAll(
  message: Pick<Message, "recipients" | "error">,
  reason: string,
  error: { code: string; message: string },
) {
  const open = message.recipients.filter(({ status }) => isOpen(status))
  return open.map(({ email: address }): Step => {
    const facts = [{ type: "failed", address, error }]
    const kept = { ...error, smtp_code: message.error?.smtp_code ?? null }
    const enhanced_code = message.error?.enhanced_code ?? null
    return { address, status: "failed", reason, facts, error: { ...kept, enhanced_code } }
  })
}

/** The reason of a message that waits because of us, and was never deferred by a server. */
export const BROKEN = "An internal error stopped the attempt. The message is tried again."

/** The reason of a message whose attempts are used up; the server's last words are its error. */
export const EXPIRED = "expired" as const

const findMessages = prepared({ ids: idList }, (tx: Tx, slot) =>
  forUpdate(
    tx
      .select(tracked)
      .from(messages)
      .where(isAmong(tx, messages.id, slot.ids))
      .orderBy(messages.id),
  ),
)

const COLUMNS = {
  where: ["id"] as "id"[],
  set: [
    "recipients",
    "status",
    "status_reason",
    "provider",
    "sender",
    "state",
    "run_at",
    "attempt",
    "owner",
    "lease_until",
    "error",
    "last_event_type",
    "last_event_at",
    "sent_at",
    "delivered_at",
    "bounced_at",
    "updated_at",
  ] satisfies (keyof Tracked | "updated_at")[],
  clear: [],
}

const updateWatched = updater(messages, COLUMNS)

/** Their claims know what becomes of them (`jobs/in-flight.ts`). */
const updateClaimed = updater(messages, { ...COLUMNS, quiet: true })
