import { and, eq, inArray, isNull } from "drizzle-orm"
import { unsubscribe } from "../consents/unsubscribe"
import { type FoundLink, linkOfLocalPart } from "../consents/unsubscribe-links"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { emitted, type NewEvent } from "../events/emit"
import type { JobHandler } from "../jobs/jobs"
import { ageSeconds } from "../jobs/work-rows"
import { comparable } from "../lib/address"
import { isOpen } from "../messages/facts"
import { feedback, type LateFact, wasTold } from "../messages/settle"
import { messages } from "../messages/tables"
import { bump } from "../store/counters"
import { held, idList, isAmong } from "../store/dialect"
import { inserter, prepared, updater } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { inboundTarget } from "./addresses"
import {
  type Answered,
  answered,
  messageById,
  provenIn,
  type SeenMessage,
  threadOfAncestor,
} from "./correlate"
import { fileUrl } from "./file-tokens"
import { recordInEvent } from "./inbound-record"
import type { ReadMail } from "./parse-inbound-task"
import { type MailReaderParts, readStoredMail, type StoredMail } from "./read-mail"
import { factsOfComplaint, factsOfDsn } from "./report-facts"
import { ownerOfReport } from "./report-owner"
import { carryOut, type Decision, decide, type RouteParts } from "./route-action"
import {
  INBOUND_COUNTER,
  type InboundKind,
  type InboundRow,
  inboundContents,
  inboundEmails,
  inboundFiles,
  type ParsedInbound,
} from "./tables"

export interface ProcessParts extends RouteParts, MailReaderParts {
  secrets: Secrets
  base_url: () => string
}

/** A report may be faster than the word that our own attempt has ended. */
const PATIENCE_SECONDS = 600

const UNSETTLED = "The message that the report is about is not settled yet."

/**
 * Reads a mail that came in and makes it known, for each of its recipients in one transaction: the
 * processed row, its event, and what a report changes. It may run twice: what is processed stays.
 */
export const processInbound = (parts: ProcessParts): JobHandler<{ ids: string[] }> => ({
  async run({ ids }, job) {
    const rows = await waiting(parts.store.read, ids)
    const [first] = rows
    if (!first) return {}
    const stored = await readStoredMail(parts, first)
    const is_patient = ageSeconds(job) < PATIENCE_SECONDS
    let later = false
    let last: ((tx: Tx) => Promise<void>) | undefined
    for (const row of rows) {
      const change = await planned(parts, row, stored)
      if (is_patient && change.is_unsettled) later = true
      else {
        if (last) await parts.store.tx(last)
        last = (tx) => finish(tx, parts.secrets, change)
      }
    }
    // The last one is written together with the end of the job.
    if (!later) return last ? { done: last } : {}
    if (last) await parts.store.tx(last)
    return { retry: UNSETTLED }
  },
  async onDead(tx, { ids }, reason) {
    log.error("a mail that came in was given up", { inbound_ids: ids, reason })
    const open = and(inArray(inboundEmails.id, ids), eq(inboundEmails.status, "received"))
    const { id, project_id } = inboundEmails
    const rows = await tx
      .update(inboundEmails)
      .set({ status: "failed" })
      .where(open)
      .returning({ id, project_id })
    for (const row of rows) if (row.project_id) await bump(tx, row.project_id, INBOUND_COUNTER, 1)
  },
})

async function waiting(read: Reader, ids: string[]): Promise<InboundRow[]> {
  const rows = await findRows(read, { ids })
  return rows.filter(({ status }) => status === "received")
}

const findRows = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select()
    .from(inboundEmails)
    .where(isAmong(db, inboundEmails.id, slot.ids))
    .orderBy(inboundEmails.id),
)

/** All that is written of one recipient's mail. */
interface Change {
  row: InboundRow
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

async function planned(parts: ProcessParts, row: InboundRow, stored: StoredMail): Promise<Change> {
  const { read } = parts.store
  const { mail } = stored
  const own = row.project_id ? row : await ownerOfReport({ read, secrets: parts.secrets }, mail)
  if (!own) throw new Error("there is no project that mail to this instance could go to")
  const { account_id, project_id } = own
  const mine = { ...row, account_id, project_id }
  const tools = { read, secrets: parts.secrets }
  const found = await answered(tools, mine, mail)
  const { about, facts } = await reported(parts, mine, mail, found)
  const message = about ?? found?.message
  const thread_id =
    message?.thread_id ?? message?.id ?? (await threadOfAncestor(read, project_id, mail)) ?? row.id
  const after = processedRow(mine, stored, { found, message, thread_id })
  const decision: Decision = (await isRouted(parts, row))
    ? await decide(parts, after, mail.content)
    : { action: "tell", route_id: null }
  const event = eventOf(parts, after, mail)
  const is_unsettled = facts.length > 0 && (about?.recipients.some(isWaiting) ?? false)
  const decided = { ...after, route_id: decision.route_id }
  const followed = await linkOfLocalPart(read, row.to_email.split("@", 1)[0] ?? "")
  const link = followed?.project_id === project_id ? followed : undefined
  return { row: decided, stored, decision, event, about: message, facts, link, is_unsettled }
}

const isWaiting = ({ status }: SeenMessage["recipients"][number]) => isOpen(status)

/** Routes are for the addresses of receiving domains, not for those with a MAC or of the instance. */
async function isRouted({ store, secrets }: ProcessParts, row: InboundRow): Promise<boolean> {
  if (!row.project_id) return false
  const parts = { read: store.read, secrets, hosts: [] }
  const target = await inboundTarget(parts, row.to_email)
  return "is" in target && target.is === "receiving"
}

/** The message that a report is about, and what it says. A report without a right MAC says nothing. */
async function reported(
  { store, secrets }: ProcessParts,
  row: InboundRow,
  { kind, returned }: ReadMail,
  found: Answered | undefined,
): Promise<{ about?: SeenMessage; facts: LateFact[] }> {
  if (kind.kind === "bounce" && found?.proof === "b") {
    return { about: found.message, facts: factsOfDsn(found.message, kind.dsn) }
  }
  if (kind.kind === "complaint") {
    const id = provenIn(secrets, returned ?? {}, kind.arf.original_mail_from)
    const named = id === undefined ? undefined : await messageById(store.read, id, row.project_id)
    const about = found?.proof === "b" ? found.message : named
    if (about) return { about, facts: factsOfComplaint(about, kind.arf) }
  }
  if (kind.kind === "bounce" || kind.kind === "complaint") {
    const { id: inbound_id, to_email } = row
    log.info("a report without a valid MAC changes nothing", {
      inbound_id,
      to_email,
      kind: kind.kind,
    })
  }
  return { facts: [] }
}

interface Relations {
  found: Answered | undefined
  message: SeenMessage | undefined
  thread_id: string
}

function processedRow(
  row: InboundRow,
  { mail, verdicts }: StoredMail,
  { found, message, thread_id }: Relations,
): InboundRow {
  const replied_to_message_id = message?.id ?? null
  const parsed: ParsedInbound = {
    to: mail.to,
    cc: mail.cc,
    reply_to: mail.reply_to,
    headers: mail.headers,
    references: mail.references,
    attachments: mail.files,
    // Only the address is a proof: anybody may name a Message-ID.
    reply_to_metadata: found?.proof === "r" ? found.message.metadata : null,
    spam: mail.spam,
    report: reportOf(mail.kind),
  }
  return {
    ...row,
    ...verdicts,
    from_email: mail.from === null ? null : comparable(mail.from.email),
    from_name: mail.from?.name ?? null,
    subject: mail.subject,
    rfc_message_id: mail.rfc_message_id,
    kind: kindOf(mail.kind, replied_to_message_id !== null),
    status: "processed",
    thread_id,
    in_reply_to: mail.in_reply_to,
    replied_to_message_id,
    mailbox_hash: mailboxHash(row),
    auto_submitted: mail.auto_submitted,
    parse_error: mail.parse_error,
    parsed,
  }
}

function kindOf({ kind }: ReadMail["kind"], is_answer: boolean): InboundKind {
  if (kind === "other") return is_answer ? "reply" : "new"
  return kind
}

/** What a report says, without the header of the message that it returns. */
function reportOf(kind: ReadMail["kind"]): unknown {
  if (kind.kind === "bounce") return withoutHeaders(kind.dsn)
  if (kind.kind === "complaint") return withoutHeaders(kind.arf)
  return "report" in kind ? kind.report : null
}

const withoutHeaders = ({ original_headers: _, ...rest }: { original_headers: unknown }) => rest

/** The part of the local part behind its first "+", as the client wrote it. */
function mailboxHash({ session, to_email }: InboundRow): string | null {
  const given = session.to.find((one) => comparable(one) === to_email) ?? to_email
  const local = given.slice(0, given.lastIndexOf("@"))
  const plus = local.indexOf("+")
  return plus === -1 ? null : local.slice(plus + 1)
}

function eventOf(parts: ProcessParts, row: InboundRow, { content }: ReadMail): NewEvent {
  const urlOf = (file: string) =>
    fileUrl(parts.secrets, parts.base_url(), { inbound_id: row.id, file })
  const { id, account_id, project_id, to_email: recipient_email, created_at: timestamp } = row
  const inbound = recordInEvent(row, content, urlOf)
  const data = { message_id: id, recipient_email, timestamp, inbound }
  return { account_id, project_id, subject_id: id, type: "email.received", data }
}

async function finish(tx: Tx, secrets: Secrets, change: Change) {
  const { row, stored, decision, event, about, facts, link } = change
  const [now] = await holdStatus(tx, { id: row.id })
  if (now?.status !== "received") return // processed by a run before, or deleted meanwhile
  await insertContents(tx, [{ inbound_id: row.id, content: stored.mail.content }])
  const files = stored.files.filter((sha256) => sha256 !== row.raw_sha256)
  await insertFiles(
    tx,
    files.map((sha256) => ({ sha256, inbound_id: row.id })),
  )
  const recorded = await carryOut(tx, decision, event)
  if (!recorded) tx.afterCommit(emitted(tx).wakeUp) // a call may wait for a mail without an event
  await updateEmails(tx, [{ ...row, event_id: recorded?.id ?? null }])
  if (about?.thread_id === null) await beginThread(tx, about.id)
  for (const fact of facts) await settleReported(tx, about, fact)
  // Whatever the mail says: the address is the proof, and its body is ignored (contract 22).
  if (link) {
    const way = { source: "one_click" as const, proof: `mail ${row.id}`, ip: null }
    await unsubscribe(tx, secrets, link, link.scope, way)
  }
  // Behind the totals of emails, as in every other transaction that changes both.
  await bump(tx, row.project_id, INBOUND_COUNTER, 1)
}

async function settleReported(tx: Tx, about: SeenMessage | undefined, fact: LateFact) {
  if (about && !(await wasTold(tx, about, fact))) await feedback(tx, about.id, fact)
}

/** The first message of a thread names it from its first answer on. */
const beginThread = (tx: Tx, id: string) =>
  tx
    .update(messages)
    .set({ thread_id: id })
    .where(and(eq(messages.id, id), isNull(messages.thread_id)))

const holdStatus = prepared({ id: inboundEmails.id }, (tx: Tx, slot) =>
  held(
    tx
      .select({ status: inboundEmails.status })
      .from(inboundEmails)
      .where(eq(inboundEmails.id, slot.id)),
  ),
)

const insertContents = inserter(inboundContents)
const insertFiles = inserter(inboundFiles)

const updateEmails = updater(inboundEmails, {
  where: ["id"],
  set: [
    "account_id",
    "project_id",
    "from_email",
    "from_name",
    "subject",
    "rfc_message_id",
    "kind",
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
  ],
  clear: [],
})
