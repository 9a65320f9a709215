import { and, asc, desc, eq, gt, lte } from "drizzle-orm"
import { streamedFile } from "../http/download"
import type { Reader } from "../store/store"
import { type SuppressionRow, suppressions } from "./tables"

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
