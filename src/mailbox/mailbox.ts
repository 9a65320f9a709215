import type { Static } from "@sinclair/typebox"
import { and, eq, inArray, isNotNull, isNull, lt, notInArray, or, type SQL, sql } from "drizzle-orm"
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core"
import type { Blobs } from "../core/blobs"
import { fail } from "../core/errors"
import { firstIdAt, isUuid } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { millisFrom, now } from "../core/time"
import type { Workers } from "../core/workers"
import type { Page } from "../http/page"
import { comparable } from "../lib/address"
import { partOf, searchable } from "../lib/text"
import { fileIn, type Kept, rowOf } from "../messages/contents"
import { messageFiles, messages } from "../messages/tables"
import { STORED } from "../plans/stored-bytes"
import { bumpAll, total } from "../store/counters"
import {
  type BoundedList,
  boundedList,
  idsBetween,
  type ListWindow,
  timesBetween,
} from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { lookInto } from "./mail-look"
import type { MailFile, ParsedMail } from "./parse-task"
import type { MailboxSummary } from "./schemas"
import { mailboxMails, mailboxRecipients } from "./tables"

const COUNTER = "mailbox_mails"

/** All other writers wait for a transaction, so none is long. */
const CLEARED_AT_ONCE = 500

export type MailboxMail = typeof mailboxMails.$inferSelect

type Derived = "raw" | "subject_key" | "search_key" | "read_at" | "attachments"

export interface NewMailboxMail extends Omit<MailboxMail, Derived> {
  raw: Kept
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

type MailboxMailSummary = Static<typeof MailboxSummary>

/**
 * Written with its recipients and its counter, all in the caller's transaction. `numbers` are those that the recipients
 * stand for: the mail is found by them, too.
 */
export async function keep(tx: Tx, mail: NewMailboxMail, numbers: string[] = []): Promise<void> {
  const { id: mail_id, project_id } = mail
  const subject_key = searchable(mail.subject)
  const raw = rowOf(mail.raw)
  await tx.insert(mailboxMails).values({ ...mail, raw, subject_key, search_key: searchKeyOf(mail) })
  if ("file" in mail.raw)
    await tx.insert(messageFiles).values({ message_id: mail_id, sha256: mail.raw.file })
  const addresses = [...new Set([...mail.recipients.map(comparable), ...numbers])]
  const rows = addresses.map((address) => ({ mail_id, project_id, address }))
  if (rows.length > 0) await tx.insert(mailboxRecipients).values(rows)
  await countMails(tx, project_id, 1, mail.size)
}

const countMails = (tx: Tx, project_id: string, mails: number, bytes: number) =>
  bumpAll(tx, [
    { owner: project_id, name: COUNTER, by: mails },
    { owner: project_id, name: STORED.mailbox, by: bytes },
  ])

/** Newest first. */
export async function list(
  db: Reader,
  project_id: string,
  filter: MailFilter,
  { limit = 25, offset = 0, ...range }: Partial<ListWindow> = {},
): Promise<Page<MailboxMailSummary>> {
  const place = placeOf(db, project_id, filter)
  const asked = { owner: project_id, table: mailboxMails, fields: summary, ...place }
  const found = boundedList<SummaryRow>(db, asked)
  const { rows, end } = await found.list({ limit, offset, ...range })
  const all = isEmpty(filter) ? () => total(db, project_id, COUNTER) : found.total
  const statusOf = await statusesOf(db, project_id, rows)
  return {
    rows: rows.map((mail) => ({ ...summaryOf(mail), status: statusOf(mail) })),
    end,
    total: all,
  }
}

/** Of the emails that these mails came from, now. Null: another program's mail, or the email is gone. */
export async function statusesOf(
  db: Reader,
  project_id: string,
  mails: Pick<MailboxMail, "email_id">[],
) {
  const ids = mails.flatMap(({ email_id }) => email_id ?? [])
  const { id, status } = messages
  const ours = and(eq(messages.project_id, project_id), inArray(id, ids))
  const rows = ids.length > 0 ? await db.select({ id, status }).from(messages).where(ours) : []
  const known = new Map(rows.map((row) => [row.id, row.status]))
  return ({ email_id }: Pick<MailboxMail, "email_id">) => known.get(email_id ?? "") ?? null
}

const isEmpty = (filter: MailFilter) => Object.values(filter).every((value) => value === undefined)

export interface MailboxReading {
  store: Store
  blobs: Blobs
}

/**
 * With its bytes. Throws `not_found`, also where the file that held them is gone: a restored backup may lack it.
 * Looks within the project only.
 */
export async function find(
  { store, blobs }: MailboxReading,
  project_id: string,
  id: string,
): Promise<MailboxMail> {
  const mail = await findRow(store.read, project_id, id)
  const file = fileIn(mail.raw)
  if (!file) return mail
  const raw = (await blobs.get(file)) ?? fail("not_found", GONE)
  return { ...mail, raw: Buffer.from(raw.buffer, raw.byteOffset, raw.length) }
}

/** As `find`, with the bytes as the row has them: those of sealed mail are never a file. */
export async function findRow(db: Reader, project_id: string, id: string): Promise<MailboxMail> {
  const ours = and(eq(mailboxMails.project_id, project_id), eq(mailboxMails.id, id))
  const [mail] = isUuid(id) ? await db.select().from(mailboxMails).where(ours) : []
  return mail ?? noSuchMail(id)
}

/** As `find`, without the bytes. */
export async function requireAllowed(
  db: Reader,
  project_id: string,
  id: string,
): Promise<Omit<MailboxMailSummary, "status">> {
  const ours = and(eq(mailboxMails.project_id, project_id), eq(mailboxMails.id, id))
  const [mail] = isUuid(id) ? await db.select(summary).from(mailboxMails).where(ours) : []
  return mail ? summaryOf(mail) : noSuchMail(id)
}

function summaryOf<Row extends { read_at: string | null }>({ read_at, ...mail }: Row) {
  return { ...mail, read: read_at !== null }
}

const GONE = "The bytes of this mail are not stored any more."

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
  const gone = await tx.delete(mailboxMails).where(ours).returning({ id, size })
  const mails = gone.map((mail) => mail.id)
  await tx.delete(messageFiles).where(inArray(messageFiles.message_id, mails))
  const bytes = gone.reduce((sum, { size }) => sum + size, 0)
  await countMails(tx, project_id, -gone.length, -bytes)
  return gone.length
}

async function clearSome(tx: Tx, project: string, { to }: Pick<MailFilter, "to">) {
  const ours = tx.select({ id }).from(mailboxMails).where(eq(project_id, project))
  const named = (address: string) =>
    tx
      .select({ id: mailboxRecipients.mail_id })
      .from(mailboxRecipients)
      .where(sentTo(project, address))
  const some = to === undefined ? ours.limit(CLEARED_AT_ONCE) : named(to).limit(CLEARED_AT_ONCE)
  const ids = (await some).map((mail) => mail.id)
  return ids.length > 0 ? removeByIds(tx, project, ids) : 0
}

type MailBytes = Pick<MailboxMail, "project_id" | "raw">

/** Headers, bodies and attachments of the raw message, parsed in a worker. */
export const parse = (workers: Workers, mail: MailBytes): Promise<ParsedMail> =>
  lookInto(workers, mail, "parse", (raw) => raw)

const NUMBER = /^\d{1,4}$/

/** One file of a mail by its id; undefined where the mail has no such file. */
export async function attachment(workers: Workers, mail: MailBytes, file_id: string) {
  if (!NUMBER.test(file_id)) return undefined
  const wanted = (raw: Uint8Array) => ({ raw, place: Number(file_id) })
  return lookInto<MailFile | undefined>(workers, mail, "read-attachment", wanted)
}

const { id, project_id, email_id, from_address, to_address, subject, created_at } = mailboxMails
const { read_at, size, attachments, subject_key, search_key } = mailboxMails

const addresses = { from: from_address, to: to_address }
const summary = { id, email_id, ...addresses, subject, read_at, size, attachments, created_at }

type SummaryRow = Omit<MailboxMailSummary, "read" | "status"> & Pick<MailboxMail, "read_at">

type MailPlace = Pick<BoundedList<SummaryRow>, "along" | "filter">

/** The index of one filter. The others ask indexes, too, where they can, since the rows hold the bytes of mails. */
function placeOf(db: Reader, project: string, filter: MailFilter): MailPlace {
  const { to, since, unread, ...others } = filter
  const times = { after: since }
  if (to !== undefined) {
    const { mail_id } = mailboxRecipients
    const where = and(sentTo(project, to), idsBetween(mail_id, times))
    const ours = and(
      eq(project_id, project),
      conditionsOf(db, { ...others, since, unread }, undefined),
    )
    return { along: { rows: mailboxRecipients, id: mail_id, where }, filter: ours }
  }
  const is_unread = unread ? isNull(read_at) : undefined
  const where = and(eq(project_id, project), is_unread, idsBetween(id, times))
  const rest = { ...others, since, unread: unread ? undefined : unread }
  return {
    along: { rows: mailboxMails, id, where },
    filter: isEmpty(rest) ? undefined : (named) => conditionsOf(db, rest, named),
  }
}

const sentTo = (project: string, to: string) =>
  and(eq(mailboxRecipients.project_id, project), eq(mailboxRecipients.address, comparable(to)))

/** With `named`, which bounds the mails, they read indexes alone, and no bytes of mails. */
function conditionsOf(db: Reader, filter: MailFilter, named: SQL | undefined): SQL | undefined {
  const { from, search, since, unread } = filter
  const searches = [
    ...(from === undefined ? [] : [sentBy(comparable(from))]),
    ...(search ? [containing(search)] : []),
  ]
  const mails = (condition: SQL) =>
    db.select({ id }).from(mailboxMails).where(and(named, condition))
  const isRead = () => (named ? notInArray(id, mails(isNull(read_at))) : isNotNull(read_at))
  return and(
    ...searches.map(({ fits, earlier }) => {
      const without = and(isNull(search_key), earlier)
      return named
        ? and(
            inArray(id, mails(sql`(${fits} OR ${search_key} IS NULL)`)),
            or(isNotNull(search_key), earlier),
          )
        : or(fits, without)
    }),
    timesBetween(created_at, { after: since }),
    unread === undefined ? undefined : unread ? isNull(read_at) : isRead(),
  )
}

/** What the search key must be like. Mail of an earlier version has none: `earlier` is asked of that mail only. */
interface KeySearch {
  fits: SQL
  earlier: SQL | undefined
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

const containing = (text: string): KeySearch => {
  const part = partOf(text)
  const earlier = or(...[subject_key, from_address, to_address].map((one) => like(one, part)))
  return { fits: like(search_key, part), earlier }
}

/** The sender is the first line of the key. */
const sentBy = (address: string): KeySearch => {
  const begin = `${partOf(`${address}\n`).slice(1)}`
  return { fits: like(search_key, begin), earlier: eq(from_address, address) }
}

interface OwnMail {
  id: string
  raw: Uint8Array
}

const contextOf = (mail_id: string) => `mailbox_mails:${mail_id}:raw`

/**
 * Mail of the instance itself carries tokens that open accounts: its bytes are sealed at rest. A
 * byte is a character here (ISO 8859-1), since mail is in any charset.
 */
export const sealRaw = (secrets: Secrets, { id, raw }: OwnMail): Buffer =>
  Buffer.from(secrets.seal(Buffer.from(raw).toString("latin1"), contextOf(id)))

/** The bytes as they came. Throws SecretError for another master key or another mail. */
export const openRaw = (secrets: Secrets, { id, raw }: OwnMail): Buffer =>
  Buffer.from(secrets.open(Buffer.from(raw).toString(), contextOf(id)), "latin1")

/** Mails of one transaction. Their bytes are in the rows, so there are few. */
const BATCH = 50

/** Removes up to 50 mails of a project that are older than this moment (ISO 8601). Returns how many. */
export async function purgeMailbox(store: Store, project: string, before: string): Promise<number> {
  const { id, project_id } = mailboxMails
  const old = and(eq(project_id, project), lt(id, firstIdAt(millisFrom(before))))
  const some = store.read.select({ id }).from(mailboxMails).where(old).orderBy(id)
  const ids = (await some.limit(BATCH)).map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => removeByIds(tx, project, ids))
  return ids.length
}
