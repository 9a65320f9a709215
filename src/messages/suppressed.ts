import { fail } from "../core/errors"
import { millis, millisFrom } from "../core/time"
import { DeferredError } from "../jobs/work-item"
import { comparable, domainOf } from "../lib/address"
import { MAILBOX_DOMAIN } from "../lib/mailbox-domain"
import { NO_REPLY, type RecipientOutcome } from "../providers/provider"
import type { Reader } from "../store/store"
import {
  amongRows,
  hasAddressesToSuppress,
  hasSuppressions,
  type MailScope,
  type Suppressed,
  suppressedAmong,
  unexpired,
} from "../suppressions/look-up"
import type { SuppressionRow } from "../suppressions/tables"
import { decidedAtSend, QUIET_HOURS, refusalOf } from "./decided"
import type { NewMessage } from "./pipeline"
import { addressOf, isOpen, type Message, OWN_SOURCE } from "./status-changes"
import type { Addressed, LeftOut, Recipient } from "./tables"

/** The code of the refusal, and the reason of a recipient that was found suppressed later. */
const SUPPRESSED = "suppressed_recipient"

type SendingChannel = Pick<NewMessage, "project_id" | "channel">

const NONE: SuppressionRow[] = []
const NOBODY: Suppressed = new Map()

/** What is suppressed of these addresses; nothing is asked for a project that suppresses none. */
export async function suppressionsOf(
  db: Reader,
  { project_id, channel }: SendingChannel,
  recipients: () => Addressed[],
): Promise<SuppressionRow[]> {
  if (!hasAddressesToSuppress(channel)) return NONE
  if (!(await hasSuppressions(db, project_id, { recent: true }))) return NONE
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
