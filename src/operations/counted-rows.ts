import { and, asc, count, eq, gt, lte, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { knowsStatus, settledCounters } from "../messages/status-changes"
import { type ChannelName, messages, type Status } from "../messages/tables"
import { STORED } from "../plans/stored-bytes"
import type { Reader } from "../store/store"
import { columnOf, keyOf, tableLives } from "./table-lives"

/** Rows of one step: some half a millisecond where an index has them. */
const STEP = 2000

/** The rows themselves are read where they are summed. */
const SUMMED_STEP = 500

/** The rows of one owner that a counter stands for, walked by a column that is unique among them. */
interface CountedRows {
  walked: SQLiteColumn
  where: SQL | undefined
  /** What each row adds; absent where it is one. */
  adds?: SQL
}

/** Where counters of an owner are kept: under the id of a project or of an account. */
export type CounterOwner = "project" | "account"

const counted = tableLives.flatMap(({ counts, ...its }) => (counts ? [{ ...its, ...counts }] : []))

const plainOf = (kind: CounterOwner) =>
  counted.filter(({ owner, of_another }) => owner === kind && !of_another).map(({ name }) => name)

/** Counters that every owner of the kind has; without a row they are 0. */
export const PLAIN_COUNTERS: Record<CounterOwner, string[]> = {
  project: [...AUDIENCE_CHANNELS, ...plainOf("project")],
  account: plainOf("account"),
}

/** What a counter counts; undefined for one that counts no rows, such as the invitations of a day. */
export function countedRows(kind: CounterOwner, id: string, name: string): CountedRows | undefined {
  return ofLists(kind, id, name) ?? (kind === "project" ? ofMessages(id, name) : undefined)
}

/** By what the lives of the tables say. */
function ofLists(kind: CounterOwner, id: string, name: string): CountedRows | undefined {
  const [head, filter, ...rest] = name.split(".")
  for (const { table, owner, where, bytes, by, of_another, ...one } of counted) {
    const [named, walked] = [columnOf(table, `${kind}_id`), keyOf(table).at(-1)]
    if (owner !== kind || !named || !walked) continue
    const ours = and(eq(named, id), where)
    if (bytes?.name === name) return { walked, where: ours, adds: bytes.of }
    if (one.name !== head) continue
    if (filter === undefined && !of_another) return { walked, where: ours }
    if (filter === undefined || !by?.includes(filter)) continue
    const columns = columnsOf(table, filter)
    const values = columns.length > 1 ? rest.join(".").split("+") : [rest.join(".")]
    const same = columns.map((column, at) => eq(column, values[at]))
    return { walked, where: and(ours, ...same) }
  }
  return undefined
}

/** The columns by whose values a counter counts. */
const columnsOf = (table: SQLiteTable, by: string): SQLiteColumn[] =>
  by.split("+").flatMap((name) => columnOf(table, name) ?? [])

const STORED_BYTES = "stored_bytes."

function ofMessages(project_id: string, name: string): CountedRows | undefined {
  if (name.startsWith(STORED_BYTES)) {
    const rows = ofMessages(project_id, name.slice(STORED_BYTES.length))
    return rows && { ...rows, adds: sql`coalesce(${messages.stored_bytes}, 0)` }
  }
  const [channel = "", status, ...rest] = name.split(".")
  if (!AUDIENCE_CHANNELS.includes(channel as ChannelName) || rest.length > 0) return undefined
  const ours = and(
    eq(messages.project_id, project_id),
    eq(messages.channel, channel as ChannelName),
  )
  if (status === undefined) return { walked: messages.id, where: ours }
  if (!knowsStatus(channel as ChannelName, status)) return undefined
  return { walked: messages.id, where: and(ours, eq(messages.status, status as Status)) }
}

/** Names of counters that the rows of a project ask for, also where the counter itself is lost. */
export async function namesInRows(db: Reader, project_id: string): Promise<string[]> {
  const names = AUDIENCE_CHANNELS.flatMap(settledCounters)
  names.push(...Object.values(STORED))
  for (const { table, owner, name, by = [] } of counted) {
    const of = columnOf(table, "project_id")
    if (owner !== "project" || !of) continue
    for (const filter of by) {
      const columns = columnsOf(table, filter)
      const values = Object.fromEntries(columns.map((column) => [column.name, column]))
      const found = db.selectDistinct(values).from(table).where(eq(of, project_id))
      for (const row of await found)
        names.push(`${name}.${filter}.${columns.map((column) => row[column.name]).join("+")}`)
    }
  }
  return names
}

/** How many rows there are, or what they add up to, in steps with a pause behind each. */
export async function countInSteps(
  db: Reader,
  { walked, where, adds }: CountedRows,
  pause: () => Promise<void>,
): Promise<number> {
  const step = adds ? SUMMED_STEP : STEP
  let counted = 0
  for await (const { rows, is_full } of rangesOf(db, walked, { where, step, pause })) {
    if (is_full && !adds) counted += step
    else {
      const n = adds ? sql`sum(${adds})` : count()
      const [row] = await db.select({ n }).from(walked.table).where(rows)
      counted += Number(row?.n ?? 0)
    }
  }
  return counted
}

interface Walk {
  where: SQL | undefined
  /** Rows of one range. */
  step: number
  pause: () => Promise<void>
  /** Rows behind it only. */
  first?: string
}

/**
 * Conditions that together give the rows in question, each a range of them in the order of a column that is unique among
 * them, with a pause behind each. A range that is not full is the last one.
 */
export async function* rangesOf(
  db: Reader,
  walked: SQLiteColumn,
  { where, step, pause, first }: Walk,
): AsyncGenerator<{ rows: SQL | undefined; is_full: boolean }> {
  for (let after: unknown = first; ; ) {
    const rest = after === undefined ? where : and(where, gt(walked, after))
    const ahead = db.select({ last: walked }).from(walked.table).where(rest).orderBy(asc(walked))
    const [edge] = await ahead.limit(1).offset(step - 1)
    if (!edge) return yield { rows: rest, is_full: false }
    yield { rows: and(rest, lte(walked, edge.last)), is_full: true }
    after = edge.last
    await pause()
  }
}
