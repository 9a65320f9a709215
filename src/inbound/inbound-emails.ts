import { and, desc, eq, ne, type SQL } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { fail } from "../core/errors"
import * as feed from "../events/feed"
import type { Caller } from "../identity/caller"
import { noun } from "../identity/noun"
import { extractCode } from "../lib/code-extraction"
import { extractLink } from "../lib/link-extraction"
import { textFromHtml } from "../lib/text-from-html"
import { isAskedId } from "../store/columns"
import { idsBetween, rowById, timesBetween } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { resendEvent } from "../webhooks/resend"
import { type InboundFileUrl, whole } from "./inbound-record"
import { remove as removeRows } from "./inbound-retention"
import { inboundRoute } from "./inbound-route"
import { mailContent, rawMail } from "./raw-mail"
import {
  INBOUND_COUNTER,
  type InboundFile,
  type InboundKind,
  type InboundRow,
  inboundEmails,
} from "./tables"

/** An absent mail and one of another project answer alike: 404. */
const received = noun({
  name: "inbound_email",
  table: inboundEmails,
  missing: () => fail("not_found", "There is no such received mail."),
  counter: INBOUND_COUNTER,
})

export const { find } = received

/** The whole record. */
export async function get(db: Reader, blobs: Blobs, project_id: string, id: string) {
  const row = await find(db, project_id, id)
  return whole(row, await mailContent(db, blobs, id))
}

/** Addresses in the form in which they compare. */
export interface InboundFilter {
  to?: string | undefined
  from?: string | undefined
  kind?: InboundKind | undefined
  thread_id?: string | undefined
  after: string | undefined
  before: string | undefined
}

/** Newest first. */
export function list(db: Reader, project_id: string, filter: InboundFilter) {
  const [indexed, ...others] = conditionsOf(filter)
  return received.list(db, project_id, {
    indexed: and(indexed, idsBetween(inboundEmails.id, filter)),
    filter: and(...others, timesBetween(inboundEmails.created_at, filter)),
  })
}

/** Each has an index of its own. The one that leaves the fewest, as a rule, comes first. */
function conditionsOf({ to, from, kind, thread_id }: InboundFilter): SQL[] {
  const conditions = [
    thread_id === undefined ? undefined : isAskedId(inboundEmails.thread_id, thread_id),
    to === undefined ? undefined : eq(inboundEmails.to_email, to),
    from === undefined ? undefined : eq(inboundEmails.from_email, from),
    kind && eq(inboundEmails.kind, kind),
  ]
  return conditions.filter((one) => one !== undefined)
}

interface Awaited {
  /** In the form in which addresses compare. */
  to: string
  since: string | undefined
  extract: "otp" | "link" | undefined
}

/** The newest mails among which a code is looked for. */
const MOST_SEARCHED = 20

/**
 * The newest mail to an address, as soon as it is processed: each commit of an event of the project
 * wakes the wait. With `extract` it is the newest mail that has such a code or link; when the time is
 * over, the newest one without it. Undefined where no mail came.
 */
export async function wait(
  db: Reader,
  blobs: Blobs,
  project_id: string,
  wanted: Awaited,
  { wait_ms, signal }: { wait_ms: number; signal: AbortSignal },
) {
  let without: InboundRow | undefined
  const look = async () => {
    const rows = await newestTo(db, project_id, wanted)
    without = rows[0]
    if (!wanted.extract) return without && answerOf(db, blobs, without, undefined)
    for (const row of rows) {
      const answer = await answerOf(db, blobs, row, wanted.extract)
      if (answer.extracted !== null) return answer
    }
    return undefined
  }
  const found = await feed.untilFound(db, project_id, { wait_ms, signal, look })
  return found ?? (without && (await answerOf(db, blobs, without, undefined)))
}

function newestTo(db: Reader, project_id: string, { to, since, extract }: Awaited) {
  const wanted = and(
    eq(inboundEmails.project_id, project_id),
    eq(inboundEmails.to_email, to),
    ne(inboundEmails.status, "received"), // not processed yet
    idsBetween(inboundEmails.id, { after: since }),
    timesBetween(inboundEmails.created_at, { after: since }),
  )
  const rows = db.select().from(inboundEmails).where(wanted).orderBy(desc(inboundEmails.id))
  return rows.limit(extract ? MOST_SEARCHED : 1)
}

async function answerOf(db: Reader, blobs: Blobs, row: InboundRow, extract: Awaited["extract"]) {
  const record = whole(row, await mailContent(db, blobs, row.id))
  if (!extract) return { ...record, extracted: null } // megabytes of html take seconds to read
  const { text_body, html_body: html, subject } = record
  const text = text_body ?? (html && textFromHtml(html))
  const texts = { subject, text, html }
  const extracted = extract === "otp" ? extractCode(texts)?.code : extractLink(texts)?.url
  return { ...record, extracted: extracted ?? null }
}

/** The raw message. Throws 404 once it is no longer stored. */
export async function raw(db: Reader, blobs: Blobs, project_id: string, id: string) {
  const row = await find(db, project_id, id)
  const bytes = await rawMail({ read: db, inbound_blobs: blobs }, row)
  return bytes ?? fail("not_found", "The raw message is no longer stored.")
}

/** One attachment of a mail, as it was parsed. Throws 404. */
export async function attachment(
  db: Reader,
  project_id: string,
  id: string,
  attachment_id: string,
): Promise<InboundFile> {
  const { parsed } = await find(db, project_id, id)
  return fileOf(parsed?.attachments, attachment_id)
}

const fileOf = (files: InboundFile[] | undefined, attachment_id: string): InboundFile =>
  files?.find((file) => file.id === attachment_id) ??
  fail("not_found", "There is no such attachment.")

const NO_FILE = "There is no such file, or its address has expired."

/** The file that a token names, with the name and type under which it can be saved; 404 for one that is no longer stored. */
export async function fileNamed(
  read: Reader,
  inbound_blobs: Blobs,
  named: { inbound_id: string; file: string } | undefined,
) {
  const row = named && (await rowById(read, inboundEmails, named.inbound_id))
  if (!row) return fail("not_found", NO_FILE)
  if (named.file === "raw") {
    const bytes = await rawMail({ read, inbound_blobs }, row)
    if (bytes) return { filename: `${row.id}.eml`, content_type: RAW_TYPE, bytes }
  }
  const found = row.parsed?.attachments.find(({ id }) => id === named.file)
  const bytes = found && (await inbound_blobs.get(found.sha256))
  return found && bytes ? { ...found, bytes } : fail("not_found", NO_FILE)
}

const RAW_TYPE = "message/rfc822"

/**
 * Sends the event of a mail again, under its own id and with fresh addresses of its files: to the
 * endpoint of the route that took the mail, otherwise to all that subscribe. Throws 409 where there is
 * no event (yet, or any more).
 */
export async function redeliver(
  tx: Tx,
  project_id: string,
  id: string,
  urlOf: (attachment_id: string) => InboundFileUrl,
) {
  const { event_id, route_id, status } = await find(tx, project_id, id)
  const event = event_id && (await feed.lookup(tx, project_id, event_id))
  if (!event) {
    const reason = event_id ? "expired" : status === "received" ? "not_processed" : "dropped"
    return fail("conflict", REFUSALS[reason], { reason, id })
  }
  const route = route_id ? await inboundRoute.lookup(tx, project_id, route_id) : undefined
  const only = route?.action === "webhook" ? route.target : null
  return { deliveries: await resendEvent(tx, event, { only, data: renewed(event.data, urlOf) }) }
}

/** The data of an event whose addresses have ended by now; undefined where it has none. */
function renewed(
  { inbound, ...data }: Record<string, unknown>,
  urlOf: (attachment_id: string) => InboundFileUrl,
): Record<string, unknown> | undefined {
  const { attachments = [] } = (inbound ?? {}) as { attachments?: { id: string }[] }
  if (attachments.length === 0) return undefined
  const fresh = attachments.map((one) => ({ ...one, ...urlOf(one.id) }))
  return { ...data, inbound: { ...(inbound as object), attachments: fresh } }
}

const REFUSALS = {
  expired: "The event of this mail has expired. There is nothing left to send.",
  not_processed: "The mail is not processed yet. Try again in a few seconds.",
  dropped: "A route dropped this mail, so it has no event.",
}

/** Deletes a mail. Its files go soon after, unless another mail has them, too. */
export async function remove(tx: Tx, caller: Caller, id: string): Promise<void> {
  const row = await find(tx, caller.project_id, id)
  await removeRows(tx, [id])
  const { from_email, to_email, subject } = row
  await received.log(tx, caller, row, "deleted", { before: { from_email, to_email, subject } })
}
