import { millis, millisFrom } from "../core/time"
import { type CountedEmail, count, hourOf, NONE } from "../reputation/hour-counts"
import { noteTrouble } from "../reputation/reputation-watch"
import type { Tx } from "../store/store"
import { type Fact, isOpen, OWN_SOURCE, outranks, type Tracked } from "./facts"
import type { Recipient } from "./tables"

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
  await count(tx, counted)
  const troubled = counted.filter(({ counts }) => counts.bounced + counts.complained > 0)
  noteTrouble(tx, new Set(troubled.map(({ account_id }) => account_id)))
}

function countedOf({ before, after, facts }: ChangedMessage): CountedEmail[] {
  if (before.channel !== "email" || before.sandbox || before.source === OWN_SOURCE) return []
  const counts = { ...NONE }
  for (const [at, recipient] of after.recipients.entries()) {
    const was = before.recipients[at]
    if (was && was.status !== recipient.status) addStep(counts, was, recipient, facts)
  }
  if (counts.sent + counts.delivered + counts.bounced + counts.complained === 0) return []
  const { account_id, project_id, sender_domain, tags, template_id } = before
  const sent_at = before.sent_at === null ? millis() : millisFrom(before.sent_at)
  return [
    { account_id, project_id, sender_domain, tags, template_id, hour: hourOf(sent_at), counts },
  ]
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
  const is_handed = status !== "failed" && outranks(status, "sending")
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
