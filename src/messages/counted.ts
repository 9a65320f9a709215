import { inArray } from "drizzle-orm"
import { millis, millisFrom } from "../core/time"
import { accounts } from "../identity/tables"
import { type CountedEmail, count, hourOf, NONE } from "../reputation/hour-counts"
import { noteTrouble } from "../reputation/reputation-watch"
import type { Tx } from "../store/store"
import { type Fact, isOpen, OWN_SOURCE, type Tracked } from "./facts"
import type { Recipient } from "./tables"
import { mayFollow } from "./transitions"

/** A message before and after a change, and what was told of it. */
interface ChangedMessage {
  before: Tracked
  after: Tracked
  facts: Fact[]
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

interface SentEmail extends CountedEmail {
  sent_at_ms: number
  /** It was sent before this change. */
  is_late: boolean
}

/**
 * A window that the operator began anew may begin within an hour. What is heard later of mail that was sent
 * before, in that hour, counts for the hour before, which is in no window of the account.
 */
async function moveBeforeWindows(tx: Tx, late: SentEmail[]): Promise<void> {
  if (late.length === 0) return
  const { id, reputation } = accounts
  const ids = [...new Set(late.map(({ account_id }) => account_id))]
  const rows = await tx.select({ id, reputation }).from(accounts).where(inArray(id, ids))
  const starts = new Map(rows.map((row) => [row.id, row.reputation?.window_start]))
  for (const email of late) {
    const start = starts.get(email.account_id)
    if (!start || email.sent_at_ms >= millisFrom(start)) continue
    email.hour = Math.min(email.hour, hourOf(millisFrom(start)) - 1)
  }
}

function countedOf({ before, after, facts }: ChangedMessage): SentEmail[] {
  if (before.channel !== "email" || before.sandbox || before.source === OWN_SOURCE) return []
  const counts = { ...NONE }
  for (const [at, recipient] of after.recipients.entries()) {
    const was = before.recipients[at]
    if (was && was.status !== recipient.status) addStep(counts, was, recipient, facts)
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
  counts: CountedEmail["counts"],
  was: Recipient,
  { email, status }: Recipient,
  facts: Fact[],
) {
  const is_first = isOpen(was.status) || was.status === "failed"
  if (status === "bounced" && isExcluded(email, facts)) return
  const is_handed = status !== "failed" && mayFollow("email", status, "sending")
  if (is_first && is_handed) counts.sent += 1
  if (status === "delivered") counts.delivered += 1
  if (status === "bounced") counts.bounced += 1
  if (status === "complained") counts.complained += 1
}

const isExcluded = (email: string, facts: Fact[]): boolean =>
  facts.some(
    ({ type, recipient_email, bounce_subtype }) =>
      type === "bounced" && recipient_email === email && NOT_COUNTED.has(bounce_subtype ?? ""),
  )
