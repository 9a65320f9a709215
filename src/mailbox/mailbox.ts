import { and, count, eq, gte, inArray, or, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import type { Page } from "../http/page"
import { comparable } from "../lib/address"
import { partOf, searchable } from "../lib/text"
import { bump, total } from "../store/counters"
import type { ListWindow } from "../store/rows"
import { newestFirst } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import type { ParsedMail } from "./parse-task"
import { mailboxMails, mailboxRecipients } from "./tables"

const PARSE_DEADLINE_MS = 10_000
const COUNTER = "mailbox_mails"

/** All other writers wait for a transaction, so none is long. */
const CLEARED_AT_ONCE = 500

export type MailboxMail = typeof mailboxMails.$inferSelect

export type NewMailboxMail = Omit<MailboxMail, "subject_key">

export interface MailFilter {
  /** An envelope recipient, exactly. */
  to?: string | undefined
  from?: string | undefined
  /** Part of the subject, the sender or the recipient, in any case. */
  search?: string | undefined
  /** ISO 8601; mail of this moment or later. */
  since?: string | undefined
}

export interface MailboxMailSummary {
  id: string
  email_id: string | null
  from: string
  to: string
  subject: string
  created_at: string
}

/** Written with its recipients and its counter, all in the caller's transaction. */
export async function keep(tx: Tx, mail: NewMailboxMail): Promise<void> {
  const { id: mail_id, project_id } = mail
  await tx.insert(mailboxMails).values({ ...mail, subject_key: searchable(mail.subject) })
  const addresses = [...new Set(mail.recipients.map(comparable))]
  const rows = addresses.map((address) => ({ mail_id, project_id, address }))
  if (rows.length > 0) await tx.insert(mailboxRecipients).values(rows)
  await bump(tx, project_id, COUNTER, 1)
}

/** Newest first. */
export async function list(
  db: Reader,
  project_id: string,
  filter: MailFilter,
  { limit = 25, offset = 0, ...stretch }: Partial<ListWindow> = {},
): Promise<Page<MailboxMailSummary>> {
  const conditions = conditionsOf(db, project_id, filter)
  const where = and(eq(mailboxMails.project_id, project_id), ...conditions)
  const stands = newestFirst(mailboxMails.id, stretch)
  const rows = await db
    .select(summary)
    .from(mailboxMails)
    .where(and(where, stands.where))
    .orderBy(stands.order)
    .limit(limit)
    .offset(offset)
  return {
    rows,
    async total() {
      if (conditions.length === 0) return total(db, project_id, COUNTER)
      const [counted] = await db.select({ value: count() }).from(mailboxMails).where(where)
      return counted?.value ?? 0
    },
  }
}

/** Throws `not_found`; looks within the project only. */
export async function find(db: Reader, project_id: string, id: string): Promise<MailboxMail> {
  const ours = and(eq(mailboxMails.project_id, project_id), eq(mailboxMails.id, id))
  const [mail] = isUuid(id) ? await db.select().from(mailboxMails).where(ours) : []
  return mail ?? fail("not_found", `There is no mail "${id}" in this mailbox.`)
}

/** Removes the mail of one recipient, or all of the project's; 500 a transaction. */
export async function clear(
  store: Store,
  project_id: string,
  filter: Pick<MailFilter, "to">,
): Promise<{ deleted: number }> {
  let deleted = 0
  for (let some = CLEARED_AT_ONCE; some === CLEARED_AT_ONCE; deleted += some) {
    some = await store.tx((tx) => clearSome(tx, project_id, filter))
  }
  return { deleted }
}

/** Removes these mails of the project. Returns how many there were. */
export async function removeByIds(tx: Tx, project_id: string, ids: string[]): Promise<number> {
  const { id } = mailboxMails
  const ours = and(eq(mailboxMails.project_id, project_id), inArray(id, ids))
  await tx.delete(mailboxRecipients).where(inArray(mailboxRecipients.mail_id, ids))
  const deleted = await tx.delete(mailboxMails).where(ours).returning({ id })
  await bump(tx, project_id, COUNTER, -deleted.length)
  return deleted.length
}

async function clearSome(tx: Tx, project_id: string, { to }: Pick<MailFilter, "to">) {
  const wanted = and(
    eq(mailboxMails.project_id, project_id),
    ...conditionsOf(tx, project_id, { to }),
  )
  const some = tx.select({ id: mailboxMails.id }).from(mailboxMails).where(wanted)
  const deleted = await tx
    .delete(mailboxMails)
    .where(inArray(mailboxMails.id, some.limit(CLEARED_AT_ONCE)))
    .returning({ id: mailboxMails.id })
  await bump(tx, project_id, COUNTER, -deleted.length)
  return deleted.length
}

/** Headers, bodies and attachments of the raw message, parsed in a worker within ten seconds. */
export const parse = (workers: Workers, { raw }: Pick<MailboxMail, "raw">): Promise<ParsedMail> =>
  workers.run<ParsedMail>("parse", new Uint8Array(raw), { deadline_ms: PARSE_DEADLINE_MS })

const { id, email_id, from_address, to_address, subject, created_at } = mailboxMails

const summary = { id, email_id, from: from_address, to: to_address, subject, created_at }

function conditionsOf(db: Reader, project_id: string, filter: MailFilter): SQL[] {
  const { to, from, search, since } = filter
  const conditions: (SQL | undefined)[] = []
  if (to !== undefined) conditions.push(inArray(id, mailsTo(db, project_id, to)))
  if (from !== undefined) conditions.push(eq(from_address, comparable(from)))
  if (since !== undefined) conditions.push(gte(created_at, since))
  if (search) conditions.push(or(...SEARCHED.map(contains(search))))
  return conditions.filter((condition) => condition !== undefined)
}

function mailsTo(db: Reader, project_id: string, to: string) {
  const recipient = mailboxRecipients
  return db
    .select({ mail_id: recipient.mail_id })
    .from(recipient)
    .where(and(eq(recipient.project_id, project_id), eq(recipient.address, comparable(to))))
}

/** Addresses are kept in lower case. */
const SEARCHED = [mailboxMails.subject_key, from_address, to_address]

const contains = (text: string) => (column: (typeof SEARCHED)[number]) =>
  sql`${column} LIKE ${partOf(text)} ESCAPE '\\'`

interface Kept {
  id: string
  raw: Uint8Array
}

const contextOf = (mail_id: string) => `mailbox_mails:${mail_id}:raw`

/**
 * Mail of the instance itself carries tokens that open accounts: its bytes are sealed at rest. A
 * byte is a character here (ISO 8859-1), since mail is in any charset.
 */
export const sealRaw = (secrets: Secrets, { id, raw }: Kept): Buffer =>
  Buffer.from(secrets.seal(Buffer.from(raw).toString("latin1"), contextOf(id)))

/** The bytes as they came. Throws SecretError for another master key or another mail. */
export const openRaw = (secrets: Secrets, { id, raw }: Kept): Buffer =>
  Buffer.from(secrets.open(Buffer.from(raw).toString(), contextOf(id)), "latin1")
