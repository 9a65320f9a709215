import { inArray } from "drizzle-orm"
import { millis, millisFrom } from "../core/time"
import { accounts } from "../identity/tables"
import { comparable, domainOf } from "../lib/address"
import { MAILBOX_DOMAIN } from "../lib/mailbox-domain"
import { blameOf, isLasting } from "../lib/refusal"
import { type CountedMessage, count, hourOf, NONE } from "../reputation/hour-counts"
import { noteTrouble } from "../reputation/reputation-watch"
import type { Tx } from "../store/store"
import { hasAddressesToSuppress } from "../suppressions/look-up"
import { noteSoftFailures, repeatedly, type SoftFailure } from "../suppressions/soft-failures"
import { type NewSuppression, suppressAll } from "../suppressions/suppressions"
import { isOpen, OWN_SOURCE, type StatusChange, type Tracked } from "./status-changes"
import type { Recipient } from "./tables"
import { bouncesCount, mayFollow } from "./transitions"

interface ChangedMessage {
  before: Tracked
  after: Tracked
  facts: StatusChange[]
}

interface Lesson {
  lasting: NewSuppression[]
  /** Refusals that name nothing. */
  general: NewSuppression[]
  soft: SoftFailure[]
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
    const { lasting, general, soft } = lessons.get(project_id) ?? NOTHING
    const addresses = general.map(({ address }) => address)
    const again = addresses.length > 0 ? await repeatedly(tx, project_id, addresses) : undefined
    const second = general.filter(({ address }) => again?.has(address))
    await suppressAll(tx, project_id, [...lasting, ...second])
    await noteSoftFailures(tx, project_id, soft)
  }
}

const NOTHING: Lesson = { lasting: [], general: [], soft: [] }

const BAD = new Set(["bounced", "complained", "failed"])

function learn(lessons: Map<string, Lesson>, message: ChangedMessage["after"], fact: StatusChange) {
  const { id, project_id, channel, source } = message
  if (!bouncesCount(channel) || !hasAddressesToSuppress(channel)) return
  if (source === OWN_SOURCE) return
  const meaning = meaningOf(fact)
  if (meaning === undefined) return
  const lesson = lessons.get(project_id) ?? { lasting: [], general: [], soft: [] }
  lessons.set(project_id, lesson)
  const address = comparable(fact.address)
  const diagnostic = fact.detail?.response ?? null
  if (meaning === "soft") return void lesson.soft.push({ address, message_id: id, diagnostic })
  const is_general = meaning === "general"
  const reason = meaning === "complaint" ? "complaint" : "bounce"
  const given = { channel, address, reason, origin: "event", source_message_id: id } as const
  lesson[is_general ? "general" : "lasting"].push({ ...given, diagnostic })
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

/** Refusals that say nothing of the recipients or of what they were sent (contract 20, section 3). */
const NOT_COUNTED = new Set(["PolicyRejected", "InfrastructureRejected"])

/**
 * Counts what became of recipients for the reputation of their account, in the transaction of the
 * change. Mail of the sandbox and of the instance itself counts nothing.
 */
export async function countForReputation(tx: Tx, list: ChangedMessage[]): Promise<void> {
  const counted = list.flatMap(countedOf)
  const troubled = counted.filter(({ counts }) => counts.bounced + counts.complained > 0)
  await moveBeforeWindows(
    tx,
    troubled.filter(({ is_late }) => is_late),
  )
  await count(tx, counted)
  noteTrouble(tx, new Set(troubled.map(({ account_id }) => account_id)))
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

function countedOf({ before, after, facts }: ChangedMessage): SentMessage[] {
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
