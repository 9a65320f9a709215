import { and, eq, inArray } from "drizzle-orm"
import { linkOfLocalPart } from "../consents/unsubscribe-links"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { ownerOfDomain } from "../domains/receiving"
import type { NewEvent } from "../events/emit"
import type { JobHandler, JobResult } from "../jobs/jobs"
import { ageSeconds } from "../jobs/work-rows"
import { comparable, INBOX_DOMAIN } from "../lib/address"
import type { FeedbackReport } from "../lib/arf"
import type { Dsn } from "../lib/dsn"
import { bounceSubtype, type DsnRecipient } from "../lib/dsn-recipient"
import type { LateFact } from "../messages/settle"
import { isOpen, type Message } from "../messages/status-changes"
import { idList, isAmong } from "../store/columns"
import { bumpAll } from "../store/counters"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { inboundTarget } from "./addresses"
import { arrivedMailsOf } from "./arrived-mail"
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
import { totalsOf } from "./inbound-retention"
import type { ReadMail } from "./parse-inbound-task"
import { finishAll, isPlain, type ProcessedMail } from "./processed-mail"
import { type MailReaderParts, readStoredMail, type StoredMail } from "./read-mail"
import { type Decision, decide, type RouteParts } from "./route-action"
import { type InboundKind, type InboundRow, inboundEmails, type ParsedInbound } from "./tables"

export interface ProcessParts extends RouteParts, MailReaderParts {
  secrets: Secrets
  link_base: () => string
}

/** A report may be faster than the word that our own attempt has ended. */
const PATIENCE_SECONDS = 600

const UNSETTLED = "The message that the report is about is not settled yet."

/**
 * Reads a mail that came in and makes it known, for each of its recipients in one transaction: the
 * processed row, its event, and what a report changes. It may run twice: what is processed stays.
 */
export const processInbound = (
  parts: ProcessParts,
): JobHandler<{ ids: string[] }, ProcessedMail> => ({
  async run({ ids }, job) {
    const { read } = parts.store
    const { rows, raw } = arrivedMailsOf(read).remove(ids) ?? { rows: await waiting(read, ids) }
    const [first] = rows
    if (!first) return {}
    const stored = await readStoredMail(parts, first, raw)
    const is_patient = ageSeconds(job) < PATIENCE_SECONDS
    let later = false
    let last: ProcessedMail | undefined
    for (const row of rows) {
      const change = await planned(parts, row, stored)
      if (is_patient && change.is_unsettled) later = true
      else {
        if (last) await finishNow(parts, last)
        last = change
      }
    }
    // The last one is written together with the end of the job.
    if (!later) return last ? endWith(parts, last) : {}
    if (last) await finishNow(parts, last)
    return { retry: UNSETTLED }
  },
  settle: (tx, list) => finishAll(tx, parts.secrets, list),
  async onDead(tx, { ids }, reason) {
    log.error("a mail that came in was given up", { inbound_ids: ids, reason })
    const open = and(inArray(inboundEmails.id, ids), eq(inboundEmails.status, "received"))
    const { project_id, size, stored_bytes } = inboundEmails
    const rows = await tx
      .update(inboundEmails)
      .set({ status: "failed" })
      .where(open)
      .returning({ project_id, size, stored_bytes })
    await bumpAll(tx, totalsOf(rows.filter((row) => row.project_id)))
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

/** Of so many bytes: what waits for its commit is in memory, and the next mail begins meanwhile. */
const SMALL_BYTES = 16 * 1024

function endWith(parts: ProcessParts, change: ProcessedMail): JobResult<ProcessedMail> {
  if (!isPlain(change)) return { done: (tx) => finishAll(tx, parts.secrets, [change]) }
  return { end: change, frees_slot: change.row.size <= SMALL_BYTES }
}

const finishNow = ({ store, secrets }: ProcessParts, change: ProcessedMail) =>
  store.tx((tx) => finishAll(tx, secrets, [change]))

async function planned(
  parts: ProcessParts,
  row: InboundRow,
  stored: StoredMail,
): Promise<ProcessedMail> {
  const { read } = parts.store
  const { mail } = stored
  const own = row.project_id ? row : await ownerOfReport({ read, secrets: parts.secrets }, mail)
  if (!own) throw new Error("this instance has no project that could get the mail")
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
    : { action: isSuccess(about, mail) ? "drop" : "tell", route_id: null }
  const event = eventOf(parts, after, mail)
  const is_unsettled = facts.length > 0 && (about?.recipients.some(isWaiting) ?? false)
  const decided = { ...after, route_id: decision.route_id }
  const followed = await linkOfLocalPart(read, row.to_email.split("@", 1)[0] ?? "")
  const link = followed?.project_id === project_id ? followed : undefined
  const is_usual = row.project_id === project_id && row.kind === after.kind
  const found_out = { decision, event, about: message, facts, link, is_unsettled }
  return { row: decided, is_usual, stored, ...found_out }
}

/** We asked for it, once for each mail: email.delivered says it, and nobody wants it as received mail, too. */
const isSuccess = (about: SeenMessage | undefined, { kind }: ReadMail): boolean =>
  about !== undefined &&
  kind.kind === "bounce" &&
  kind.dsn.recipients.every(({ action }) => action !== "failed" && action !== "delayed")

const isWaiting = ({ status }: SeenMessage["recipients"][number]) => isOpen(status)

/** Routes are for the addresses of receiving domains, not for those with a MAC or of the instance. */
async function isRouted({ store, secrets }: ProcessParts, row: InboundRow): Promise<boolean> {
  if (!row.project_id) return false
  const parts = { read: store.read, secrets, hosts: [], own_domain: INBOX_DOMAIN }
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
    ...(mail.truncated && { truncated: true }),
  }
  return {
    ...row,
    verified: verdicts.verified,
    spf_verdict: verdicts.spf,
    dkim_verdict: verdicts.dkim,
    dmarc_verdict: verdicts.dmarc,
    arc_verdict: verdicts.arc,
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
    fileUrl(parts.secrets, parts.link_base(), { inbound_id: row.id, file })
  const { id, account_id, project_id, to_email: recipient_email, created_at: timestamp } = row
  const inbound = recordInEvent(row, content, urlOf)
  const data = { message_id: id, recipient_email, timestamp, inbound }
  return { account_id, project_id, subject_id: id, type: "email.received", data }
}

type Reported = Pick<Message, "recipients">

/** What a delivery status notification says of the recipients of a message (contract 22, section 3). */
const factsOfDsn = (message: Reported, { recipients }: Dsn): LateFact[] =>
  recipients.flatMap((one): LateFact[] => {
    const address = meant(message, [one.email, one.final_email])
    const fact = address && factOf(one, address)
    return fact ? [fact] : []
  })

/** The recipient of ours that a report means. The only one there is may have had its mail forwarded. */
function meant({ recipients }: Reported, named: (string | null)[]): string | undefined {
  const known = new Map(recipients.map(({ email }) => [comparable(email), email]))
  for (const email of named) {
    const found = email === null ? undefined : known.get(comparable(email))
    if (found !== undefined) return found
  }
  return recipients.length === 1 ? recipients[0]?.email : undefined
}

function factOf(one: DsnRecipient, address: string): LateFact | undefined {
  const detail = detailOf(one)
  if (one.action === "delivered") return { type: "delivered", address, detail }
  const bounce_subtype = bounceSubtype(one)
  if (one.action === "delayed") {
    const bounce_type = "Transient"
    return { type: "soft_bounced", address, bounce_type, bounce_subtype, detail }
  }
  if (one.action !== "failed") return undefined // relayed and expanded settle nothing
  const message = one.diagnostic ?? one.status ?? "The report gives no reason."
  const error = { code: "bounced", message }
  return {
    ...{ type: "bounced", address, bounce_type: "Permanent", bounce_subtype },
    ...{ detail, error },
  }
}

function detailOf({ status, diagnostic, remote_mta }: DsnRecipient) {
  const [, code] = /^([245]\d\d)(?![\d.])/.exec(diagnostic ?? "") ?? []
  return {
    smtp_code: code === undefined ? null : Number(code),
    enhanced_code: status,
    mx: remote_mta,
    tls: null,
    response: diagnostic,
  }
}

/** What a complaint says. Most providers hide the address that complained: then it is the `to` recipient. */
function factsOfComplaint(message: Reported, arf: FeedbackReport): LateFact[] {
  const known = arf.original_recipients.map((email) => meant(message, [email]))
  const [first] = message.recipients
  const emails = known.filter((email) => email !== undefined)
  const all = emails.length > 0 ? emails : first ? [first.email] : []
  return [...new Set(all)].map((address) => ({
    type: "complained",
    address,
    complaint_feedback_type: arf.feedback_type,
  }))
}

interface ReportOwner {
  account_id: string
  project_id: string
}

/**
 * The project of a mail to an address of the instance: that of the message which a complaint returns,
 * or the one that verified the domain of a report. All other mail is the operator's: it goes to the
 * oldest project. Undefined where there is no project at all.
 */
async function ownerOfReport(
  { read, secrets }: { read: Reader; secrets: Secrets },
  { kind, returned }: Pick<ReadMail, "kind" | "returned">,
): Promise<ReportOwner | undefined> {
  if (kind.kind === "complaint") {
    const id = provenIn(secrets, returned ?? {}, kind.arf.original_mail_from)
    const message = id === undefined ? undefined : await messageById(read, id)
    if (message) return message
  }
  const domain = reportedDomain(kind)
  const owner = domain ? await ownerOfDomain(read, domain.toLowerCase()) : undefined
  if (owner) return owner
  const [first] = await firstProject(read)
  return first
}

function reportedDomain(kind: ReadMail["kind"]): string | null {
  if (kind.kind === "tls_report") return kind.report.policies[0]?.policy_domain ?? null
  return kind.kind === "dmarc_report" && "domain" in kind.report ? kind.report.domain : null
}
