import type { Static } from "@sinclair/typebox"
import { and, asc, desc, eq, gt, inArray, lte, type SQL, sql } from "drizzle-orm"
import { fail, type Problems } from "../core/errors"
import { isPast } from "../core/time"
import { type BulkItems, readItems, shownFailures } from "../http/bulk-items"
import { streamedFile } from "../http/download"
import { readTime } from "../http/page"
import type { Caller } from "../identity/caller"
import { noun } from "../identity/noun"
import { comparable, notOneAddress, parseMailbox } from "../lib/address"
import { readPhone } from "../lib/phone"
import { anywhere } from "../lib/text"
import { forUpdate } from "../store/columns"
import { total } from "../store/counters"
import { idsBetween, timesBetween } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { amongRows, type MailScope, unexpired } from "./look-up"
import * as schemas from "./schemas"
import {
  counterOf,
  type NewSuppression,
  removeRows,
  suppress,
  suppressAll,
  toResponse,
} from "./suppressions"
import {
  type SuppressionChannel,
  type SuppressionOrigin,
  type SuppressionReason,
  type SuppressionRow,
  suppressions,
} from "./tables"

interface Contact {
  channel: SuppressionChannel
  /** In comparable form. */
  address: string
}

const ONE_OF_TWO = "Give either email or phone."

/** Reads `email` or `phone`, of which there is to be one. */
export function readContact(
  { email, phone }: { email?: string | undefined; phone?: string | undefined },
  problems: Problems,
): Contact | undefined {
  if (email !== undefined && phone !== undefined)
    return problems.add("phone", "invalid", ONE_OF_TWO)
  if (phone !== undefined) {
    const address = readPhone(phone, "phone", problems)
    return address === undefined ? undefined : { channel: "sms", address }
  }
  if (email === undefined) return problems.add("email", "required", "The field is required.")
  const mailbox = parseMailbox(email)
  if (mailbox) return { channel: "email", address: comparable(mailbox.email) }
  return problems.add("email", "invalid_email", notOneAddress(email))
}

type SuppressionInput = Omit<NewSuppression, "origin">

/** Reads a new suppression, alone or in a list. */
export function readSuppression(
  given: Static<typeof schemas.NewSuppression>,
  problems: Problems,
): SuppressionInput {
  const contact = readContact(given, problems)
  const { reason = "manual", note = null } = given
  return {
    ...NO_CONTACT,
    ...contact,
    reason,
    note,
    expires_at: readEnd(given.expires_at, problems),
  }
}

/** Stands where a contact could not be read. */
export const NO_CONTACT: Contact = { channel: "email", address: "" }

function readEnd(text: string | null | undefined, problems: Problems): string | null {
  if (text === undefined || text === null) return null
  const end = readTime("expires_at", text, problems)
  if (end !== undefined && isPast(end)) {
    problems.add("expires_at", "invalid", "The time has passed. Give a time in the future.")
  }
  return end ?? null
}

const originOf = ({ kind }: Caller): SuppressionOrigin => (kind === "console" ? "console" : "api")

/** Suppressions are made and removed with their events, by `suppressions.ts`. */
export const suppression = noun({
  name: "suppression",
  table: suppressions,
  missing: () => fail("not_found", "There is no such suppression."),
  counter: counterOf(),
  toResponse,
})

/** Throws 409 where the address is suppressed in the whole project already. */
export async function create(tx: Tx, caller: Caller, given: SuppressionInput) {
  const { project_id } = caller
  const [known] = await ofWholeProject(tx, project_id, given)
  if (known) return isThere(known)
  const added = await suppress(tx, project_id, { ...given, origin: originOf(caller) })
  if (added) return added
  const [faster] = await ofWholeProject(tx, project_id, given)
  return faster ? isThere(faster) : fail("not_found", "There is no such project.")
}

const ofWholeProject = async (db: Reader, project_id: string, { channel, address }: Contact) =>
  (await unexpired(db, project_id, channel, [comparable(address)])).filter(
    ({ scope_type }) => scope_type === "project",
  )

const isThere = ({ id, address }: SuppressionRow): never =>
  fail("conflict", `${address} is suppressed already.`, { reason: "exists", id })

type SuppressionBulk = BulkItems<SuppressionInput>

/** Only the size of the list is checked as a whole; each address keeps its own problems. */
export const readBulk = (body: unknown, problems: Problems): SuppressionBulk =>
  readItems(
    body,
    {
      name: "emails",
      most: schemas.MOST_AT_ONCE,
      schema: schemas.NewSuppression,
      read: readSuppression,
    },
    problems,
  )

/** Suppresses many addresses in the whole project. Those that are there stay, and count as existing. */
export async function addAll(tx: Tx, project_id: string, bulk: SuppressionBulk) {
  const list = bulk.given.map(({ item }) => ({ ...item, origin: "import" as const }))
  const { length: added } = await suppressAll(tx, project_id, list)
  return { added, existing: list.length - added, failed: shownFailures(bulk) }
}

/**
 * Removes every suppression of these email addresses, whatever its scope. What is no address was
 * never suppressed, so it is not found.
 */
export async function removeAll(tx: Tx, caller: Caller, emails: string[]) {
  const { project_id } = caller
  const addresses = new Map(emails.map((email) => [email, addressIn(email)]))
  const wanted = [...new Set(addresses.values())].filter((address) => address !== "")
  const ours = and(
    eq(suppressions.project_id, project_id),
    eq(suppressions.channel, "email"),
    inArray(suppressions.address, wanted),
  )
  const rows = await forUpdate(tx.select().from(suppressions).where(ours).orderBy(suppressions.id))
  await removeRows(tx, project_id, rows, caller)
  const removed = new Set(rows.map(({ address }) => address))
  const not_found = [...addresses].flatMap(([email, address]) =>
    removed.has(address) ? [] : [email],
  )
  return { removed: removed.size, not_found }
}

const addressIn = (email: string): string => {
  const mailbox = parseMailbox(email)
  return mailbox ? comparable(mailbox.email) : ""
}

/** Removes one, and audits that. */
export const remove = (tx: Tx, caller: Caller, row: SuppressionRow): Promise<void> =>
  removeRows(tx, row.project_id, [row], caller)

/** Whether an address gets messages of this kind, and which suppression says no. */
export async function check(
  db: Reader,
  project_id: string,
  { channel, address }: Contact,
  scope: MailScope,
) {
  const found = amongRows(await unexpired(db, project_id, channel, [address]), scope).get(address)
  return { address, suppressed: found !== undefined, suppression: found ? toResponse(found) : null }
}

interface SuppressionFilter {
  reason?: SuppressionReason | undefined
  channel?: SuppressionChannel | undefined
  address?: string | undefined
  origin?: SuppressionOrigin | undefined
  /** A part of the reply. */
  diagnostic?: string | undefined
  created_after?: string | undefined
}

/** Newest first. Totals are counters where at most one filter is given that has one. */
export function list(db: Reader, project_id: string, filter: SuppressionFilter) {
  const { diagnostic, created_after } = filter
  const [indexed, ...others] = conditionsOf(db, project_id, filter)
  const times = { after: created_after }
  const rows = suppression.list(db, project_id, {
    indexed: and(indexed, idsBetween(suppressions.id, times)),
    filter: and(
      ...others,
      diagnostic === undefined ? undefined : says(diagnostic),
      timesBetween(suppressions.created_at, times),
    ),
  })
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  const [only] = given
  if (!only || given.length > 1 || !COUNTED.has(only[0])) return rows
  return { ...rows, total: () => total(db, project_id, counterOf(`${only[0]}.${only[1]}`)) }
}

const COUNTED = new Set(["reason", "channel", "origin"])

/** The database lower-cases both, because one may do so with ASCII only, and replies come in any language. */
const says = (text: string): SQL =>
  sql`lower(${suppressions.diagnostic}) LIKE lower(${anywhere(text)}) ESCAPE '\\'`

/** Each has an index of its own. The one that leaves the fewest comes first. */
function conditionsOf(db: Reader, project_id: string, filter: SuppressionFilter): SQL[] {
  const { reason, channel, address, origin } = filter
  const conditions = [
    address === undefined ? undefined : inArray(suppressions.id, named(db, project_id, address)),
    reason && eq(suppressions.reason, reason),
    origin && eq(suppressions.origin, origin),
    channel && eq(suppressions.channel, channel),
  ]
  return conditions.filter((one) => one !== undefined)
}

const CHANNELS: SuppressionChannel[] = ["email", "sms"]

/** The few rows of an address are found first: a list walked in its order would come to them last. */
const named = (db: Reader, project_id: string, address: string) =>
  db
    .select({ id: suppressions.id })
    .from(suppressions)
    .where(
      and(
        eq(suppressions.project_id, project_id),
        inArray(suppressions.channel, CHANNELS),
        eq(suppressions.address, comparable(address)),
      ),
    )

/** Rows in memory at a time, so that a list of any length needs as little. */
const ROWS_AT_ONCE = 500

const COLUMNS = [
  "id",
  "channel",
  "address",
  "reason",
  "origin",
  "scope_type",
  "scope_key",
  "source_message_id",
  "diagnostic",
  "note",
  "expires_at",
  "created_at",
] as const satisfies (keyof SuppressionRow)[]

/**
 * Every suppression of a project as CSV (RFC 4180), in the order of its making. It is read in pieces as
 * the caller takes it. Changes go on meanwhile: each row that is there from the beginning to the end
 * stands in it once, and none that was made later.
 */
export function exported(db: Reader, project_id: string, signal: AbortSignal): Response {
  return streamedFile(csvOf(db, project_id), signal, {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": 'attachment; filename="suppressions.csv"',
  })
}

async function* csvOf(db: Reader, project_id: string): AsyncGenerator<string, undefined> {
  yield `${COLUMNS.join(",")}\r\n`
  const ours = eq(suppressions.project_id, project_id)
  const newest = db.select({ id: suppressions.id }).from(suppressions).where(ours)
  const [last] = await newest.orderBy(desc(suppressions.id)).limit(1)
  for (let after = ""; last && after < last.id; ) {
    const rows = await db
      .select()
      .from(suppressions)
      .where(and(ours, gt(suppressions.id, after), lte(suppressions.id, last.id)))
      .orderBy(asc(suppressions.id))
      .limit(ROWS_AT_ONCE)
    if (rows.length === 0) return
    yield rows.map(lineOf).join("")
    after = rows.at(-1)?.id ?? last.id
  }
}

const lineOf = (row: SuppressionRow): string =>
  `${COLUMNS.map((name) => quoted(isNumber(row, name) ? row.address : inert(row[name]))).join(",")}\r\n`

/** A phone number begins with +, and to a spreadsheet it is a number. */
const isNumber = ({ channel }: SuppressionRow, name: string): boolean =>
  channel === "sms" && name === "address"

/** What makes a spreadsheet run a cell; an apostrophe of the address itself is marked alike. */
const FORMULA = /^[=+\-@\t\r']/

function inert(value: string | null): string {
  const text = value ?? ""
  return FORMULA.test(text) ? `'${text}` : text
}

const quoted = (text: string): string =>
  /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
