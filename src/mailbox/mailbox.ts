import { and, count, eq, gte, inArray, isNotNull, isNull, or, type SQL, sql } from "drizzle-orm"
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import type { Workers } from "../core/workers"
import type { Page } from "../http/page"
import { comparable } from "../lib/address"
import { partOf, searchable } from "../lib/text"
import { bump, total } from "../store/counters"
import type { ListWindow } from "../store/rows"
import { newestFirst } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { lookInto } from "./mail-look"
import type { MailFile, ParsedMail } from "./parse-task"
import { mailboxMails, mailboxRecipients } from "./tables"

const PARSE_DEADLINE_MS = 10_000
const COUNTER = "mailbox_mails"

/** All other writers wait for a transaction, so none is long. */
const CLEARED_AT_ONCE = 500

export type MailboxMail = typeof mailboxMails.$inferSelect

type Derived = "subject_key" | "search_key" | "read_at" | "attachments"

export interface NewMailboxMail extends Omit<MailboxMail, Derived> {
  /** The number of its files, where it is known. */
  attachments?: number | null
}

export interface MailFilter {
  /** An envelope recipient, exactly. */
  to?: string | undefined
  from?: string | undefined
  /** Part of the subject, the sender or the recipient, in any case. */
  search?: string | undefined
  /** ISO 8601; mail of this moment or later. */
  since?: string | undefined
  /** True: only mail that nobody read; false: only mail that somebody read. */
  unread?: boolean | undefined
}

export interface MailboxMailSummary {
  id: string
  email_id: string | null
  from: string
  to: string
  subject: string
  read: boolean
  /** Bytes. */
  size: number
  /** The number of its files; null where nobody counted them. */
  attachments: number | null
  created_at: string
}

/** Written with its recipients and its counter, all in the caller's transaction. */
export async function keep(tx: Tx, mail: NewMailboxMail): Promise<void> {
  const { id: mail_id, project_id } = mail
  const subject_key = searchable(mail.subject)
  await tx.insert(mailboxMails).values({ ...mail, subject_key, search_key: searchKeyOf(mail) })
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
    rows: rows.map(summaryOf),
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
  return mail ?? noSuchMail(id)
}

/** As `find`, without the bytes. */
export async function demand(
  db: Reader,
  project_id: string,
  id: string,
): Promise<MailboxMailSummary> {
  const ours = and(eq(mailboxMails.project_id, project_id), eq(mailboxMails.id, id))
  const [mail] = isUuid(id) ? await db.select(summary).from(mailboxMails).where(ours) : []
  return mail ? summaryOf(mail) : noSuchMail(id)
}

function summaryOf<Row extends { read_at: string | null }>({ read_at, ...mail }: Row) {
  return { ...mail, read: read_at !== null }
}

const noSuchMail = (id: string): never =>
  fail("not_found", `There is no mail "${id}" in this mailbox.`)

/** Marks a mail as read, or as unread again. Throws `not_found`. */
export async function mark(tx: Tx, project_id: string, id: string, read: boolean): Promise<void> {
  const ours = and(eq(mailboxMails.project_id, project_id), eq(mailboxMails.id, id))
  const change = tx.update(mailboxMails).set({ read_at: read ? now() : null })
  const marked = isUuid(id) ? await change.where(ours).returning({ id: mailboxMails.id }) : []
  if (marked.length === 0) noSuchMail(id)
}

/** Removes one mail. Throws `not_found`. */
export async function remove(tx: Tx, project_id: string, id: string): Promise<void> {
  const count = isUuid(id) ? await removeByIds(tx, project_id, [id]) : 0
  if (count === 0) noSuchMail(id)
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
  const named = and(
    eq(mailboxRecipients.project_id, project_id),
    inArray(mailboxRecipients.mail_id, ids),
  )
  await tx.delete(mailboxRecipients).where(named)
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

type MailBytes = Pick<MailboxMail, "raw">

/** Headers, bodies and attachments of the raw message, parsed in a worker within ten seconds. */
export const parse = (workers: Workers, { raw }: MailBytes): Promise<ParsedMail> =>
  lookInto<ParsedMail>(workers, "parse", new Uint8Array(raw), { deadline_ms: PARSE_DEADLINE_MS })

const NUMBER = /^\d{1,4}$/

/** One file of a mail by its id; undefined where the mail has no such file. */
export async function attachment(workers: Workers, { raw }: MailBytes, file_id: string) {
  if (!NUMBER.test(file_id)) return undefined
  const wanted = { raw: new Uint8Array(raw), place: Number(file_id) }
  const options = { deadline_ms: PARSE_DEADLINE_MS }
  return lookInto<MailFile | undefined>(workers, "read-attachment", wanted, options)
}

const { id, project_id, email_id, from_address, to_address, subject, created_at } = mailboxMails
const { read_at, size, attachments, subject_key, search_key } = mailboxMails

const addresses = { from: from_address, to: to_address }
const summary = { id, email_id, ...addresses, subject, read_at, size, attachments, created_at }

function conditionsOf(db: Reader, project: string, filter: MailFilter): SQL[] {
  const { to, from, search, since, unread } = filter
  const conditions: (SQL | undefined)[] = []
  if (to !== undefined) conditions.push(inArray(id, mailsTo(db, project, to)))
  if (from !== undefined) conditions.push(sentBy(db, project, comparable(from)))
  if (since !== undefined) conditions.push(gte(created_at, since))
  if (unread !== undefined) conditions.push(unread ? isNull(read_at) : isNotNull(read_at))
  if (search) conditions.push(containing(db, project, search))
  return conditions.filter((condition) => condition !== undefined)
}

function mailsTo(db: Reader, project_id: string, to: string) {
  const recipient = mailboxRecipients
  return db
    .select({ mail_id: recipient.mail_id })
    .from(recipient)
    .where(and(eq(recipient.project_id, project_id), eq(recipient.address, comparable(to))))
}

/** In bytes. An index of Postgres takes no row that is longer than 2,704. */
const MOST_SEARCHED = 2000

/** Addresses are kept in lower case. No line of a subject holds a line feed. */
function searchKeyOf(mail: Pick<NewMailboxMail, "subject" | "from_address" | "to_address">) {
  const key = `${mail.from_address}\n${mail.to_address}\n${searchable(mail.subject)}`
  return Buffer.from(key)
    .toString("utf8", 0, MOST_SEARCHED)
    .replace(/\ufffd$/, "")
}

const like = (column: AnySQLiteColumn, pattern: string): SQL =>
  sql`${column} LIKE ${pattern} ESCAPE '\\'`

/**
 * The mails whose search key fits. These queries read an index alone, and no bytes of mails. Mail of an earlier
 * version has no key: `earlier` is asked of that mail only.
 */
function keyed(db: Reader, project: string, pattern: string, earlier: SQL | undefined): SQL {
  const mails = (where: SQL | undefined) => db.select({ id }).from(mailboxMails).where(where)
  const ours = (condition: SQL) => mails(and(eq(project_id, project), condition))
  const fits = ours(like(search_key, pattern)).getSQL()
  const before = mails(and(inArray(id, ours(isNull(search_key))), earlier)).getSQL()
  return sql`${id} IN (${fits} UNION ALL ${before})`
}

const containing = (db: Reader, project: string, text: string): SQL => {
  const part = partOf(text)
  const earlier = or(...[subject_key, from_address, to_address].map((one) => like(one, part)))
  return keyed(db, project, part, earlier)
}

/** The sender is the first line of the key. */
const sentBy = (db: Reader, project: string, address: string): SQL => {
  const begin = `${partOf(`${address}\n`).slice(1)}`
  return keyed(db, project, begin, eq(from_address, address))
}

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
