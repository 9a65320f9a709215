import { eq, getTableName, gte, lt, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import type { Settings } from "../core/config"
import { firstEventIdAt, firstIdAt } from "../core/ids"
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

interface TableSize {
  table: string
  rows: number
  /** With its indexes. */
  bytes: number
  /** How long its rows are kept, for people. */
  kept: string
}

interface ProjectSize {
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

/** The growth is the mean of the last seven days. */
const RECENT_DAYS = 7

/** Numbers of days, for what retention frees within them. */
const HORIZONS = [1, 7, 30] as const

/**
 * How large each table and project is, and what retention frees when. It reads every page of an SQLite
 * file, so it takes seconds for each gigabyte. What open work keeps beyond its time counts as freed.
 */
export async function databaseStats(
  db: Reader,
  settings: KeepingSettings,
  onTable: (name: string) => void = () => {},
): Promise<DatabaseStats> {
  const sizes = await tableSizes(db)
  const owners: Owner[] = await db
    .select({ id: projects.id, name: projects.name, settings: projects.settings })
    .from(projects)
  const nameOf = new Map(owners.map(({ id, name }) => [id, name]))
  const by_project = new Map<string | null, ProjectSize>()
  const tables: TableSize[] = []
  const changes = [0, ...HORIZONS.map(() => 0)]
  const usual = keptBy({}, settings)
  for (const { table } of tableLives) {
    const name = getTableName(table)
    onTable(name)
    const bytes = sizes.get(name) ?? 0
    const weights = await weightsByEnd(db, table, owners, settings)
    const sumOf = (of: (one: ProjectWeight) => number) =>
      weights.reduce((sum, one) => sum + of(one), 0)
    const kept = endText(table, usual, settings)
    tables.push({ table: name, rows: sumOf(({ rows }) => rows), bytes, kept })
    const all = sumOf(({ weight }) => weight)
    if (all === 0) continue
    for (const { project_id: id, rows, weight, changed } of weights) {
      const known = id === null ? undefined : nameOf.get(id)
      const key = known === undefined ? null : id
      const share = by_project.get(key) ?? emptyShare(key, known)
      share.rows += rows
      share.bytes += Math.round((bytes * weight) / all)
      by_project.set(key, share)
      for (const [at, part] of changed.entries())
        changes[at] = (changes[at] ?? 0) + (bytes * part) / all
    }
  }
  const { all, free } = await spaceOf(db)
  const [grows_by_a_day = 0, ...frees] = changes.map(Math.round)
  return {
    ...{ bytes: all, free_bytes: free, grows_by_a_day },
    frees: HORIZONS.map((within_days, at) => ({ within_days, bytes: frees[at] ?? 0 })),
    tables: tables.sort(byBytes),
    projects: largest([...by_project.values()].sort(byBytes)),
  }
}

const emptyShare = (project_id: string | null, name = "(no project)"): ProjectSize => ({
  ...{ project_id, name, rows: 0, bytes: 0 },
})

const byBytes = (one: { bytes: number }, other: { bytes: number }) => other.bytes - one.bytes

function largest(all: ProjectSize[]): ProjectSize[] {
  const rest = all.slice(MOST_PROJECTS)
  if (rest.length === 0) return all
  const others = emptyShare(null, `(${rest.length} others)`)
  for (const { rows, bytes } of rest) {
    others.rows += rows
    others.bytes += bytes
  }
  return [...all.slice(0, MOST_PROJECTS), others]
}

type Owner = Pick<typeof projects.$inferSelect, "id" | "name" | "settings">

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

/** Of each table with its indexes: in an SQLite file by the virtual table `dbstat`. */
async function tableSizes(db: Reader): Promise<Map<string, number>> {
  const of_file = { name: sql<string>`m.tbl_name`, bytes: sql<unknown>`sum(s.pgsize)` }
  const of_server = { name: sql<string>`relname`, bytes: sql<unknown>`pg_total_relation_size(oid)` }
  const rows = db.isAlone
    ? await db
        .select(of_file)
        .from(sql`dbstat s JOIN sqlite_master m ON m.name = s.name`)
        .where(sql`s.aggregate = TRUE`)
        .groupBy(of_file.name)
    : await db
        .select(of_server)
        .from(sql`pg_class`)
        .where(sql`relkind = 'r' AND relnamespace = current_schema()::regnamespace`)
  return new Map(rows.map(({ name, bytes }) => [name, Number(bytes)]))
}

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

/** Rows of one project in one table. A weight is a number of bytes, or of rows where all are alike. */
interface ProjectWeight {
  /** Null for what belongs to no project. */
  project_id: string | null
  rows: number
  weight: number
  /** Of what was made in the last seven days, a day, and of what ends within each of the horizons. */
  changed: number[]
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

/**
 * The weights of a table by project. `kept_ms` is how long its rows are kept; without it none of them
 * ends by itself.
 */
async function weightsOf(
  db: Reader,
  table: SQLiteTable,
  kept_ms: number | undefined,
): Promise<ProjectWeight[]> {
  const [name = "", parent] = PARENTS.find(([column]) => columnOf(table, column)) ?? []
  const link = columnOf(table, name)
  const id = columnOf(table, "id")
  const age = id?.columnType === "SQLiteCustomColumn" ? id : link // made with the row
  const weight = weightOf(db, table)
  const sumOf = (which: SQL | undefined) =>
    which ? sql<number>`sum(CASE WHEN ${which} THEN ${weight} ELSE 0 END)` : sql<number>`0`
  const dueIn = (days: number) => {
    if (kept_ms === undefined || !age) return sumOf(undefined)
    return sumOf(lt(age, idAt(age, millis() + days * DAY_MS - kept_ms)))
  }
  const own = columnOf(table, "project_id")
  const theirs = own ?? (parent && columnOf(parent, "project_id"))
  const [day, week, month] = HORIZONS
  const query = db
    .select({
      project_id: theirs ? sql<string | null>`${theirs}`.mapWith(theirs) : sql<null>`NULL`,
      rows: sql<number>`count(*)`,
      weight: sql<number>`sum(${weight})`,
      recent: sumOf(age && gte(age, idAt(age, millis() - RECENT_DAYS * DAY_MS))),
      ...{ day: dueIn(day), week: dueIn(week), month: dueIn(month) },
    })
    .from(table)
  const key = parent && columnOf(parent, "id")
  const joined = !own && link && key ? query.leftJoin(parent, eq(link, key)) : query
  const rows = await (theirs ? joined.groupBy(theirs) : joined)
  return rows.map(({ project_id, rows, weight, recent, day, week, month }) => ({
    project_id: project_id as string | null,
    rows: Number(rows),
    weight: Number(weight ?? 0),
    changed: [
      Number(recent ?? 0) / RECENT_DAYS,
      ...[day, week, month].map((due) => Number(due ?? 0)),
    ],
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
  column === events.id ? firstEventIdAt(at_ms) : firstIdAt(at_ms)
