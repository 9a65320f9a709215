import { and, asc, count, eq, gt, lte, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { type ChannelName, messages, type Status } from "../messages/tables"
import { knowsStatus, settledCounters } from "../messages/transitions"
import { STORED } from "../plans/stored-bytes"
import type { Reader } from "../store/store"
import { columnOf, keyOf, tableLives } from "./table-lives"

/** Rows of one step: some half a millisecond where an index has them. */
const STEP = 2000

/** The rows themselves are read where they are summed. */
const SUMMED_STEP = 500

/** The rows of one owner that a counter stands for, walked by a column that is unique among them. */
export interface CountedRows {
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
    const column = filter !== undefined && by?.includes(filter) && columnOf(table, filter)
    if (column) return { walked, where: and(ours, eq(column, rest.join("."))) }
  }
  return undefined
}

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
      const values = db
        .selectDistinct({ value: columnOf(table, filter) as SQLiteColumn })
        .from(table)
      for (const { value } of await values.where(eq(of, project_id)))
        names.push(`${name}.${filter}.${value}`)
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
  const sumOf = async (rows: SQL | undefined) => {
    const n = adds ? sql`sum(${adds})` : count()
    const [row] = await db.select({ n }).from(walked.table).where(rows)
    return Number(row?.n ?? 0)
  }
  let counted = 0
  let after: unknown
  for (;;) {
    const rest = after === undefined ? where : and(where, gt(walked, after))
    const ahead = db.select({ last: walked }).from(walked.table).where(rest)
    const [edge] = await ahead
      .orderBy(asc(walked))
      .limit(1)
      .offset(step - 1)
    if (!edge) return counted + (await sumOf(rest))
    counted += adds ? await sumOf(and(rest, lte(walked, edge.last))) : step
    after = edge.last
    await pause()
  }
}
