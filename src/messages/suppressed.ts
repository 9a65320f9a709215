import { type NumberChoice, planNumberChoices } from "../consents/number-choice"
import { fail } from "../core/errors"
import { millis, millisFrom } from "../core/time"
import { DeferredError } from "../jobs/work-item"
import { comparable, domainOf, MAILBOX_DOMAIN } from "../lib/address"
import { blameOf, isLasting } from "../lib/refusal"
import { NO_REPLY, type RecipientOutcome } from "../providers/provider"
import type { Reader, Tx } from "../store/store"
import {
  amongRows,
  hasAddressesToSuppress,
  hasSuppressions,
  type MailScope,
  type Suppressed,
  suppressedAmong,
  unexpired,
} from "../suppressions/look-up"
import { noteSoftFailures, repeatedly, type SoftFailure } from "../suppressions/soft-failures"
import { type NewSuppression, suppressAll } from "../suppressions/suppressions"
import type { SuppressionRow } from "../suppressions/tables"
import { decidedAtSend, QUIET_HOURS, refusalOf } from "./decided"
import {
  AUTH_SOURCE,
  addressOf,
  bouncesCount,
  isOpen,
  type Message,
  OWN_SOURCE,
  type StatusChange,
  type Tracked,
} from "./status-changes"
import type { Addressed, LeftOut, NewMessage, Recipient } from "./tables"

/** The code of the refusal, and the reason of a recipient that was found suppressed later. */
const SUPPRESSED = "suppressed_recipient"

type SendingChannel = Pick<NewMessage, "project_id" | "channel">

const NONE: SuppressionRow[] = []
const NOBODY: Suppressed = new Map()

/** What is suppressed of these addresses; nothing is asked for a project that suppresses none. */
export function suppressionsOf(
  db: Reader,
  of: SendingChannel,
  recipients: () => Addressed[],
): SuppressionRow[] | Promise<SuppressionRow[]> {
  if (!hasAddressesToSuppress(of.channel)) return NONE
  const has_some = hasSuppressions(db, of.project_id, { recent: true })
  return has_some === false ? NONE : findSuppressions(db, of, has_some, recipients)
}

async function findSuppressions(
  db: Reader,
  { project_id, channel }: SendingChannel,
  has_some: boolean | Promise<boolean>,
  recipients: () => Addressed[],
): Promise<SuppressionRow[]> {
  if (!(await has_some) || !hasAddressesToSuppress(channel)) return NONE
  const addresses = recipients().map((one) => comparable(addressOf(one)))
  return unexpired(db, project_id, channel, addresses)
}

/**
 * Which of the suppressions count for a mail of this kind to this recipient. Throws 422
 * `suppressed_recipient` where the recipient in `to` is among them; copies are only left out.
 */
export function refuseSuppressed(
  rows: SuppressionRow[],
  { email: address }: Addressed,
  scope: MailScope,
): Suppressed {
  if (rows.length === 0) return NOBODY
  const suppressed = amongRows(rows, scope)
  const row = suppressed.get(comparable(address))
  if (row) throwSuppressed(row)
  return suppressed
}

/**
 * For messages of one mail, each to one recipient: throws 422 where none of them would leave. Those that
 * are suppressed beside others are accepted, and fail before they leave.
 */
export async function refuseAllSuppressed(
  db: Reader,
  of: SendingChannel,
  recipients: Addressed[],
  scope: MailScope,
): Promise<void> {
  const rows = await suppressionsOf(db, of, () => recipients)
  const suppressed = rows.length > 0 ? amongRows(rows, scope) : NOBODY
  const [first] = suppressed.values()
  if (first && recipients.every((one) => suppressed.has(comparable(addressOf(one))))) {
    throwSuppressed(first)
  }
}

/** 422 `suppressed_recipient`, with its details (contract 01). */
export function throwSuppressed(row: SuppressionRow): never {
  const { address, reason, scope_type: type, scope_key, created_at: suppressed_at } = row
  const scope = { type, key: scope_key === "" ? null : scope_key }
  return fail(SUPPRESSED, textOf(row), { address, reason, scope, suppressed_at })
}

/** Without copies to suppressed addresses. Throws 422 where the recipient in `to` is suppressed. */
export async function withoutSuppressed(db: Reader, message: NewMessage): Promise<NewMessage> {
  const [to] = message.recipients
  const rows = await suppressionsOf(db, message, () => message.recipients)
  return to ? leavingOut(message, refuseSuppressed(rows, to, scopeOf(message))) : message
}

/** The message without the copies to suppressed addresses, which its record lists. */
export function leavingOut(message: NewMessage, suppressed: Suppressed): NewMessage {
  if (suppressed.size === 0 || !message.envelope) return message
  const recipients: Recipient[] = []
  const left_out: LeftOut[] = []
  for (const recipient of message.recipients) {
    const row = suppressed.get(comparable(addressOf(recipient)))
    if (!row) recipients.push(recipient)
    else {
      const { status: _, status_reason: __, ...named } = recipient
      left_out.push({ ...named, text: textOf(row) })
    }
  }
  if (left_out.length === 0) return message
  return { ...message, recipients, envelope: { ...message.envelope, left_out } }
}

function textOf(row: SuppressionRow): string {
  const { address, reason, scope_type, scope_key, created_at, expires_at, id } = row
  const until = expires_at === null ? "" : `, until ${expires_at.slice(0, 10)}`
  const what =
    scope_type === "project"
      ? `${address} is suppressed since ${created_at.slice(0, 10)} (${reason}${until}).`
      : `${address} gets no mail of the ${[scope_type, scope_key].join(" ").trim()} (${reason}${until}).`
  const [local, domain] = [address.split("@", 1)[0] ?? "", domainOf(address)]
  const more =
    domain === MAILBOX_DOMAIN && reason !== "manual"
      ? ` For another try use a tag, as in ${local.split("+", 1)[0]}+2@${MAILBOX_DOMAIN}.`
      : ""
  return `${what}${more} DELETE /v1/suppressions/${id} ends that.`
}

const scopeOf = ({ envelope, stream }: Pick<Message, "envelope" | "stream">): MailScope => ({
  category: envelope?.category,
  topic: envelope?.topic,
  broadcast: stream === "broadcast" && envelope?.topic === undefined,
})

/**
 * The open recipients that were suppressed since the message was accepted, as outcomes. Where the
 * recipient in `to` is among them, nothing leaves: then every open recipient is. Always asks what is
 * true now.
 */
export async function suppressedMeanwhile(
  db: Reader,
  message: Message,
): Promise<RecipientOutcome[]> {
  if (message.source === OWN_SOURCE) return []
  const open = message.recipients.filter(({ status }) => isOpen(status))
  const addresses = open.map((one) => comparable(addressOf(one)))
  const suppressed = await suppressedAmong(db, message, addresses, scopeOf(message))
  if (suppressed.size === 0) return []
  const rowOf = (one: Addressed) => suppressed.get(comparable(addressOf(one)))
  const to = open.find(({ kind }) => kind === "to")
  const whole = to && rowOf(to)
  return open.flatMap((one): RecipientOutcome[] => {
    const row = rowOf(one) ?? whole
    return row ? [outcomeFor(addressOf(one), row)] : []
  })
}

const outcomeFor = (address: string, row: SuppressionRow): RecipientOutcome => ({
  address,
  status: "failed",
  reason: SUPPRESSED,
  code: SUPPRESSED,
  text: textOf(row),
  bounce_subtype: null,
  reply: NO_REPLY,
})

/** The row of suppressions: the channel asks these itself, and tells which one it is. */
const SUPPRESSED_ROW = 2

/**
 * Why a message that was accepted may not leave now: its subscriber chose otherwise meanwhile, then it
 * fails. Undefined where nothing stands in the way. Rejects with DeferredError in quiet hours. A plain
 * message asks nothing.
 */
export async function audienceObstacle(
  db: Reader,
  message: Message,
): Promise<RecipientOutcome[] | undefined> {
  const decision = await decidedAtSend(db, message)
  if (!decision || decision.row === SUPPRESSED_ROW) return undefined
  const { is_allowed, deferred_until } = decision
  if (deferred_until) {
    throw new DeferredError(QUIET_HOURS, (millisFrom(deferred_until) - millis()) / 1000)
  }
  if (is_allowed) return undefined
  const { reason, text } = refusalOf(decision)
  return forOpen(message, { status: "failed", code: reason, reason, text })
}

/** The same for every open recipient, without a word of a server. */
export const forOpen = (
  { recipients }: Pick<Message, "recipients">,
  outcome: Pick<RecipientOutcome, "status" | "code" | "reason" | "text">,
): RecipientOutcome[] =>
  recipients
    .filter(({ status }) => isOpen(status))
    .map((one) => ({ ...outcome, address: addressOf(one), bounce_subtype: null, reply: NO_REPLY }))

interface ChangedMessage {
  after: Tracked
  facts: StatusChange[]
}

/**
 * Suppresses the addresses that can get no more mail, in the transaction that learns it (contract 20,
 * section 5): after a permanent bounce that is about the recipient (where it names nothing, after the second),
 * after a complaint, and for a while after several messages that were given up. Deliveries that succeed cost nothing here.
 * `are_attempts`: the facts are answers to attempts, and no reports that came later.
 */
export async function suppressWhere(
  tx: Tx,
  changed: ChangedMessage[],
  are_attempts: boolean,
): Promise<void> {
  const lessons = new Map<string, Lesson>()
  for (const { after, facts } of changed) {
    for (const fact of facts) {
      if (!BAD.has(fact.type) || (are_attempts && isSimulated(after, fact))) continue
      learn(lessons, after, fact)
    }
  }
  if (lessons.size === 0) return
  for (const project_id of [...lessons.keys()].sort()) {
    const { lasting, general, soft, opted_out } = lessons.get(project_id) ?? NOTHING
    const addresses = general.map(({ address }) => address)
    const again = addresses.length > 0 ? await repeatedly(tx, project_id, addresses) : undefined
    const second = general.filter(({ address }) => again?.has(address))
    await suppressAll(tx, project_id, [...lasting, ...second])
    await noteSoftFailures(tx, project_id, soft)
    await planNumberChoices(tx, opted_out)
  }
}

interface Lesson {
  lasting: NewSuppression[]
  /** Refusals that name nothing. */
  general: NewSuppression[]
  soft: SoftFailure[]
  /** What the provider heard from them. */
  opted_out: NumberChoice[]
}

const NOTHING: Lesson = { lasting: [], general: [], soft: [], opted_out: [] }

const BAD = new Set(["bounced", "complained", "failed", "undelivered"])

function learn(lessons: Map<string, Lesson>, message: ChangedMessage["after"], fact: StatusChange) {
  const { id, account_id, project_id, channel, source } = message
  if (!hasAddressesToSuppress(channel) || source === OWN_SOURCE) return
  const meaning = fact.opted_out ? "unsubscribe" : bouncesCount(channel) && meaningOf(fact)
  if (!meaning) return
  const lesson = lessons.get(project_id) ?? structuredClone(NOTHING)
  lessons.set(project_id, lesson)
  const address = comparable(fact.address)
  const diagnostic = fact.detail?.response ?? null
  // A code was given up after minutes: that says little of the address.
  if (meaning === "soft" && source === AUTH_SOURCE) return
  if (meaning === "soft") return void lesson.soft.push({ address, message_id: id, diagnostic })
  const is_general = meaning === "general"
  const reason = meaning === "complaint" || meaning === "unsubscribe" ? meaning : "bounce"
  const given = { channel, address, reason, origin: "event", source_message_id: id } as const
  lesson[is_general ? "general" : "lasting"].push({ ...given, diagnostic })
  if (!fact.opted_out) return
  const proof = `the answer of the provider to message ${id}`
  const choice = { account_id, project_id, number: address, is_wanted: false, proof }
  lesson.opted_out.push({ ...choice, reason: "provider" })
}

/** What the embedded mailbox answers for an address elsewhere is no word of that address. */
const isSimulated = ({ provider }: ChangedMessage["after"], { address }: StatusChange): boolean =>
  provider === "mailbox" && domainOf(address) !== MAILBOX_DOMAIN

function meaningOf(fact: StatusChange): "bounce" | "general" | "complaint" | "soft" | undefined {
  if (fact.type === "complained") {
    return fact.complaint_feedback_type === "not-spam" ? undefined : "complaint"
  }
  if (fact.type === "failed") return fact.is_soft ? "soft" : undefined
  if (blameOf(fact.bounce_subtype ?? "") !== "recipient") return undefined
  if (isTemporary(fact)) return "soft"
  return isLasting(fact.bounce_subtype ?? "") ? "bounce" : "general"
}

/** A bounce of a mail that was deferred until it was given up, by a relay or a provider. */
function isTemporary({ bounce_type, detail }: StatusChange): boolean {
  if (bounce_type === "Transient") return true
  const code = detail?.smtp_code ?? null
  return code === null ? detail?.enhanced_code?.startsWith("4.") === true : code < 500
}
