import { eq, getTableName, gte, lt, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import type { Settings } from "../core/config"
import { firstIdAt } from "../core/ids"
import { millis } from "../core/time"
import { events } from "../events/tables"
import { fanOuts } from "../fan-out/tables"
import { projects } from "../identity/tables"
import { inboundContents, inboundEmails, inboundRaws } from "../inbound/tables"
import { mailboxMails } from "../mailbox/tables"
import { messageContents, messageRaws, messages } from "../messages/tables"
import type { Reader } from "../store/store"
import { keptBy } from "./retention-sweep"
import {
  columnOf,
  type EndSettings,
  endOf,
  endText,
  isDays,
  isSetting,
  tableLives,
} from "./table-lives"

const DAY_MS = 86_400_000

/** Projects that are listed; the others are one line. */
const MOST_PROJECTS = 50

export interface TableSize {
  table: string
  rows: number
  /** With its indexes. */
  bytes: number
  /** How long its rows are kept, for people. */
  kept: string
}

export interface ProjectSize {
  /** Null for what belongs to no project, and for the other projects together. */
  project_id: string | null
  name: string
  rows: number
  bytes: number
}

export interface DatabaseStats {
  bytes: number
  /** Of the SQLite file: what new rows use before it grows. 0 on Postgres. */
  free_bytes: number
  /** The mean of the last seven days. */
  grows_by_a_day: number
  /** What retention frees within 1, 7 and 30 days, if nothing is changed. */
  frees: { within_days: number; bytes: number }[]
  /** The largest one first. */
  tables: TableSize[]
  /** Shares of the tables, by the number and length of their rows. The largest one first. */
  projects: ProjectSize[]
}

type KeepingSettings = EndSettings & Pick<Settings, "retention.deliveries" | "retention.events">

/**
 * How large each table and project is, and what retention frees when. It reads every page of an SQLite
 * file, so it takes seconds for each gigabyte. What open work keeps beyond its time counts as freed.
 */
export async function databaseStats(
  db: Reader,
  settings: KeepingSettings,
  onTable: (name: string) => void = () => {},
): Promise<DatabaseStats> {
  const sizes = db.isAlone ? await sizesOfFile(db) : await sizesOfPostgres(db)
  const owners = await db
    .select({ id: projects.id, name: projects.name, settings: projects.settings })
    .from(projects)
  const shares = new Map<string | null, ProjectSize>()
  const nameOf = new Map(owners.map(({ id, name }) => [id, name]))
  const sums: Sums = { grows: 0, frees: HORIZONS.map(() => 0) }
  const tables: TableSize[] = []
  const usual = keptBy({}, settings)
  for (const { table } of tableLives) {
    const name = getTableName(table)
    onTable(name)
    const bytes = sizes.get(name) ?? 0
    const weights = await weightsByEnd(db, table, owners, settings)
    const rows = weights.reduce((sum, one) => sum + one.rows, 0)
    tables.push({ table: name, rows, bytes, kept: endText(table, usual, settings) })
    addShares(shares, sums, bytes, weights, nameOf)
  }
  const { all, free } = await spaceOf(db)
  return {
    bytes: all,
    free_bytes: free,
    grows_by_a_day: Math.round(sums.grows),
    frees: HORIZONS.map((within_days, at) => ({
      within_days,
      bytes: Math.round(sums.frees[at] ?? 0),
    })),
    tables: tables.sort(byBytes),
    projects: largest([...shares.values()].sort(byBytes)),
  }
}

const byBytes = (one: { bytes: number }, other: { bytes: number }) => other.bytes - one.bytes

interface Sums {
  grows: number
  frees: number[]
}

type Owner = Pick<typeof projects.$inferSelect, "id" | "settings">

/** Projects that keep their rows equally long are asked for together. */
async function weightsByEnd(
  db: Reader,
  table: SQLiteTable,
  owners: Owner[],
  settings: KeepingSettings,
): Promise<ProjectWeight[]> {
  const end = endOf(table)
  if (isSetting(end)) return weightsOf(db, table, settings[end] ?? undefined)
  if (!isDays(end)) return weightsOf(db, table, undefined)
  const days = new Map(owners.map((owner) => [owner.id, keptBy(owner.settings, settings)[end]]))
  const usual = keptBy({}, settings)[end]
  const found: ProjectWeight[] = []
  for (const kept of new Set([usual, ...days.values()])) {
    const all = await weightsOf(db, table, kept * DAY_MS)
    found.push(...all.filter(({ project_id }) => (days.get(project_id ?? "") ?? usual) === kept))
  }
  return found
}

function addShares(
  shares: Map<string | null, ProjectSize>,
  sums: Sums,
  bytes: number,
  weights: ProjectWeight[],
  nameOf: Map<string, string>,
) {
  const all = weights.reduce((sum, { weight }) => sum + weight, 0)
  if (all === 0) return
  const shareOf = (weight: number) => (bytes * weight) / all
  for (const { project_id, rows, weight, recent, due } of weights) {
    const name = project_id === null ? undefined : nameOf.get(project_id)
    const key = name === undefined ? null : project_id
    const share = shares.get(key) ?? { project_id: key, name: name ?? INSTANCE, rows: 0, bytes: 0 }
    shares.set(key, {
      ...share,
      rows: share.rows + rows,
      bytes: share.bytes + Math.round(shareOf(weight)),
    })
    sums.grows += shareOf(recent)
    due.forEach((weight, at) => {
      sums.frees[at] = (sums.frees[at] ?? 0) + shareOf(weight)
    })
  }
}

const INSTANCE = "(no project)"

function largest(all: ProjectSize[]): ProjectSize[] {
  const rest = all.slice(MOST_PROJECTS)
  if (rest.length === 0) return all
  const sum = (of: (one: ProjectSize) => number) => rest.reduce((total, one) => total + of(one), 0)
  const others = { project_id: null, name: `(${rest.length} others)` }
  const rows = sum((one) => one.rows)
  return [...all.slice(0, MOST_PROJECTS), { ...others, rows, bytes: sum((one) => one.bytes) }]
}

interface NamedSize {
  name: string
  bytes: number | string
}

const asSizes = (rows: NamedSize[]) => new Map(rows.map(({ name, bytes }) => [name, Number(bytes)]))

/** Pages of each table and of its indexes, by the virtual table `dbstat`. */
const sizesOfFile = async (db: Reader) =>
  asSizes(
    await db
      .select({ name: sql<string>`m.tbl_name`, bytes: sql<number>`sum(s.pgsize)` })
      .from(sql`dbstat s JOIN sqlite_master m ON m.name = s.name`)
      .where(sql`s.aggregate = TRUE`)
      .groupBy(sql`m.tbl_name`),
  )

const sizesOfPostgres = async (db: Reader) =>
  asSizes(
    await db
      .select({
        name: sql<string>`c.relname`,
        bytes: sql<string>`pg_total_relation_size(c.oid)::text`,
      })
      .from(sql`pg_class c`)
      .where(sql`c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace`),
  )

/** Bytes of the whole database, and those of them that new rows use before it grows. */
export async function spaceOf(db: Reader): Promise<{ all: number; free: number }> {
  if (!db.isAlone) {
    const size = { all: sql<string>`pg_database_size(current_database())::text` }
    const [row] = await db.select(size).from(sql`(SELECT 1) AS one`)
    return { all: Number(row?.all), free: 0 }
  }
  const [row] = await db
    .select({
      pages: sql<number>`p.page_count`,
      free: sql<number>`f.freelist_count`,
      size: sql<number>`s.page_size`,
    })
    .from(sql`pragma_page_count p, pragma_freelist_count f, pragma_page_size s`)
  const { pages = 0, free = 0, size = 0 } = row ?? {}
  return { all: pages * size, free: free * size }
}

const RECENT_DAYS = 7

const HORIZONS = [1, 7, 30] as const

/** Rows of one project in one table. A weight is a number of bytes, or of rows where all are alike. */
interface ProjectWeight {
  /** Null for what belongs to no project. */
  project_id: string | null
  rows: number
  weight: number
  /** Of what was made in the last seven days, a day. */
  recent: number
  /** Of what ends within each of the horizons. */
  due: [number, number, number]
}

/** What says how large a row is, where rows differ by more than a few times. */
const LARGE = new Map<SQLiteTable, SQLiteColumn>([
  [messageContents, messageContents.content],
  [messageRaws, messageRaws.raw],
  [mailboxMails, mailboxMails.raw],
  [inboundContents, inboundContents.content],
  [inboundRaws, inboundRaws.raw],
])

/** By which column a row names what it belongs to, and that table. An id also says how old it is. */
const PARENTS: [name: string, parent: SQLiteTable][] = [
  ["message_id", messages],
  ["inbound_id", inboundEmails],
  ["mail_id", mailboxMails],
  ["fan_out_id", fanOuts],
]

/** The id that was made with the row. */
function ageColumn(table: SQLiteTable): SQLiteColumn | undefined {
  const parent = PARENTS.map(([name]) => columnOf(table, name)).find(Boolean)
  const own = columnOf(table, "id")
  return parent && !own ? parent : own?.columnType === "SQLiteCustomColumn" ? own : parent
}

/**
 * The weights of a table by project. `kept_ms` is how long its rows are kept; without it none of them
 * ends by itself.
 */
async function weightsOf(
  db: Reader,
  table: SQLiteTable,
  kept_ms: number | undefined,
): Promise<ProjectWeight[]> {
  const age = ageColumn(table)
  const weight = weightOf(db, table)
  const sumOf = (which: SQL | undefined) =>
    which ? sql<number>`sum(CASE WHEN ${which} THEN ${weight} ELSE 0 END)` : sql<number>`0`
  const isBefore = (at_ms: number) => age && lt(age, idAt(age, at_ms))
  const dueIn = (days: number) =>
    kept_ms === undefined ? undefined : isBefore(millis() + days * DAY_MS - kept_ms)
  const [day, week, month] = HORIZONS
  const own = columnOf(table, "project_id")
  const [name, parent] = PARENTS.find(([column]) => columnOf(table, column)) ?? []
  const theirs = own ?? (parent && columnOf(parent, "project_id"))
  const since = millis() - RECENT_DAYS * DAY_MS
  const query = db
    .select({
      project_id: theirs ? sql<string | null>`${theirs}`.mapWith(theirs) : sql<null>`NULL`,
      rows: sql<number>`count(*)`,
      weight: sql<number>`sum(${weight})`,
      recent: sumOf(age && gte(age, idAt(age, since))),
      day: sumOf(dueIn(day)),
      week: sumOf(dueIn(week)),
      month: sumOf(dueIn(month)),
    })
    .from(table)
  const link = name && columnOf(table, name)
  const id = parent && columnOf(parent, "id")
  const joined = !own && parent && link && id ? query.leftJoin(parent, eq(link, id)) : query
  const rows = await (theirs ? joined.groupBy(theirs) : joined)
  return rows.map((row) => ({
    project_id: row.project_id as string | null,
    rows: Number(row.rows),
    weight: Number(row.weight ?? 0),
    recent: Number(row.recent ?? 0) / RECENT_DAYS,
    due: [Number(row.day ?? 0), Number(row.week ?? 0), Number(row.month ?? 0)],
  }))
}

/** The length of a large value, which neither engine has to read for it. */
function weightOf(db: Reader, table: SQLiteTable): SQL {
  const column = LARGE.get(table)
  if (!column) return sql`1`
  return db.isAlone ? sql`octet_length(${column})` : sql`pg_column_size(${column})`
}

/** Events have their prefix in code only. */
const idAt = (column: SQLiteColumn, at_ms: number): string =>
  `${column === events.id ? "evt_" : ""}${firstIdAt(at_ms)}`
