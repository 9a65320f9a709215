import { and, eq } from "drizzle-orm"
import { unsubscribe } from "../consents/unsubscribe"
import type { FoundLink } from "../consents/unsubscribe-links"
import type { Secrets } from "../core/secrets"
import { emitAll, emitted, type NewEvent, type Recorded } from "../events/emit"
import { feedback, type LateFact, wasTold } from "../messages/settle"
import { forUpdate, idList, isAmong } from "../store/columns"
import { bumpAll } from "../store/counters"
import { inserter, prepared, updater } from "../store/statements"
import type { Tx } from "../store/store"
import type { SeenMessage } from "./correlate"
import { totalsOf } from "./inbound-retention"
import type { StoredMail } from "./read-mail"
import { carryOut, type Decision } from "./route-action"
import { type InboundRow, inboundContents, inboundEmails, inboundFiles } from "./tables"

export interface ProcessedMail {
  row: InboundRow
  /** Its project and its kind are those of its arrival. */
  is_usual: boolean
  stored: StoredMail
  decision: Decision
  event: NewEvent
  about: SeenMessage | undefined
  facts: LateFact[]
  /** The link that the mail follows by its address. */
  link: FoundLink | undefined
  /** Its message is still on the way, so that a report on it would come too early. */
  is_unsettled: boolean
}

/** Whether it may be made known together with others: it changes no row that somebody else may hold. */
export const isPlain = ({ decision, facts, link }: ProcessedMail) =>
  decision.action === "tell" && facts.length === 0 && !link

/** Makes mails known in one transaction, but for those that are, or that were deleted meanwhile. */
export async function finishAll(tx: Tx, secrets: Secrets, list: ProcessedMail[]): Promise<void> {
  const waiting = await waitingForUpdate(tx, { ids: list.map(({ row }) => row.id) })
  const ids = new Set(waiting.map(({ id }) => id))
  const changes = list.filter(({ row }) => ids.delete(row.id))
  if (changes.length === 0) return
  await insertContents(
    tx,
    changes.map(({ row, stored }) => ({ inbound_id: row.id, content: stored.mail.content })),
  )
  await insertFiles(tx, changes.flatMap(filesOf))
  const told = await notifyAll(tx, changes)
  await updateRows(
    tx,
    changes.map((change, at) => ({ ...change, event_id: told[at]?.id ?? null })),
  )
  for (const { row, about, facts, link } of changes) {
    for (const fact of facts) await settleReported(tx, about, fact)
    // Whatever the mail says: the address is the proof, and its body is ignored (contract 22).
    if (!link) continue
    const way = { source: "one_click" as const, proof: `mail ${row.id}`, ip: null }
    await unsubscribe(tx, secrets, link, link.scope, way)
  }
  // Behind the totals of emails, as in every other transaction that changes both.
  await bumpAll(tx, totalsOf(changes.map(({ row }) => row)))
}

const filesOf = ({ row, stored }: ProcessedMail) =>
  stored.files
    .filter((sha256) => sha256 !== row.raw_sha256)
    .map((sha256) => ({ sha256, inbound_id: row.id }))

async function notifyAll(tx: Tx, changes: ProcessedMail[]): Promise<(Recorded | undefined)[]> {
  if (changes.every(({ decision }) => decision.action === "tell")) {
    return emitAll(
      tx,
      changes.map(({ event }) => event),
    )
  }
  const told: (Recorded | undefined)[] = []
  for (const { decision, event } of changes) told.push(await carryOut(tx, decision, event))
  if (told.includes(undefined)) tx.afterCommit(emitted(tx).wakeUp) // a call may wait for a mail without an event
  return told
}

/** An indexed column that is set costs its entry anew, so of a usual mail those are not set that stay. */
async function updateRows(tx: Tx, list: (ProcessedMail & { event_id: string | null })[]) {
  const [usual, others] = [list.filter((one) => one.is_usual), list.filter((one) => !one.is_usual)]
  await updateUsual(tx, usual.map(rowOf))
  await updateOthers(tx, others.map(rowOf))
}

const rowOf = ({ row, event_id }: { row: InboundRow; event_id: string | null }) => ({
  ...row,
  event_id,
})

async function settleReported(tx: Tx, about: SeenMessage | undefined, fact: LateFact) {
  if (about && !(await wasTold(tx, about, fact))) await feedback(tx, about.id, fact)
}

const waitingForUpdate = prepared({ ids: idList }, (tx: Tx, slot) =>
  forUpdate(
    tx
      .select({ id: inboundEmails.id })
      .from(inboundEmails)
      .where(and(isAmong(tx, inboundEmails.id, slot.ids), eq(inboundEmails.status, "received")))
      .orderBy(inboundEmails.id),
  ),
)

const insertContents = inserter(inboundContents)
const insertFiles = inserter(inboundFiles)

const READ_COLUMNS = [
  "from_email",
  "from_name",
  "subject",
  "rfc_message_id",
  "status",
  "thread_id",
  "in_reply_to",
  "replied_to_message_id",
  "mailbox_hash",
  "auto_submitted",
  "verified",
  "spf_verdict",
  "dkim_verdict",
  "dmarc_verdict",
  "arc_verdict",
  "parse_error",
  "parsed",
  "route_id",
  "event_id",
] as const

const updateUsual = updater(inboundEmails, { where: ["id"], set: [...READ_COLUMNS], clear: [] })

const updateOthers = updater(inboundEmails, {
  where: ["id"],
  set: ["account_id", "project_id", "kind", ...READ_COLUMNS],
  clear: [],
})
