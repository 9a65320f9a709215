import { and, asc, count, eq, getTableName, gt, isNull, lt, sql } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { type Blobs, FOLDERS } from "../core/blobs"
import { codeOf } from "../core/faults"
import { millis, nextTurn } from "../core/time"
import { accounts, projects } from "../identity/tables"
import { inboundFiles } from "../inbound/tables"
import { messageFiles } from "../messages/tables"
import { INSTANCE } from "../providers/tables"
import { inPages } from "../store/in-steps"
import type { Reader } from "../store/store"
import { type FileTable, unnamedIn } from "./file-sweep"
import { brokenIn, INVARIANTS, type InvariantName, lookedAt } from "./invariants"
import { columnOf, indexFrom, keyOf, tableLives } from "./table-lives"

/** One check and what it found. */
export interface DatabaseFinding {
  check: string
  /** `warn`: it costs space and harms nothing. `skip`: it could not be made, or has no meaning here. */
  outcome: "pass" | "warn" | "fail" | "skip"
  found: number
  detail: string
  /** The first few places, by ids and names of files. */
  examples: string[]
}

interface CheckedDatabase {
  /** One moment of a sound database. */
  db: Reader
  blobs: Blobs
  inbound_blobs: Blobs
  /** What is looked at now, for people. */
  onProgress: (text: string) => void
}

/** What a check says where it found nothing, and where it found something. */
interface CheckTexts {
  right: string
  wrong: string
  outcome?: "warn"
}

const FILES = 200
const NAMED = 10

/**
 * Every check but that of the file itself, in the order in which one explains the next. What is found is
 * yielded as soon as its check ends.
 */
export async function* checkDatabase(parts: CheckedDatabase): AsyncGenerator<DatabaseFinding> {
  const { db } = parts
  if (db.isAlone) yield finding("references", REFERENCES, await missingReferences(parts))
  // The invariants are looked at by project and account, so rows without one come before.
  yield finding("owners", OWNERS, await withoutOwners(parts))
  const broken = await brokenInvariants(parts)
  for (const name of Object.keys(INVARIANTS) as InvariantName[]) {
    const text = `${INVARIANTS[name]}.${LEFT_OUT[name] ?? ""}`
    yield finding(name, { right: text, wrong: text }, broken[name])
  }
  for (const [name, table] of [
    ["blobs", messageFiles],
    ["inbound_blobs", inboundFiles],
  ] as const) {
    const files = { ...parts, blobs: parts[name], table }
    yield finding(`${name}_missing`, MISSING, await missingFiles(files))
    yield finding(`${name}_unnamed`, UNNAMED, await unnamedFiles(files))
  }
}

/**
 * What SQLite says of its file, as a finding; undefined on Postgres. Nothing that is read of a damaged
 * file can be trusted, so this comes before every other check.
 */
export function integrityOf(faults: string[] | undefined): DatabaseFinding {
  if (faults) return finding("integrity", INTEGRITY, new Places(faults))
  const detail = "Postgres checks its own files. `pg_amcheck` looks at every page."
  return { check: "integrity", outcome: "skip", found: 0, detail, examples: [] }
}

const INTEGRITY = {
  right: "Every page and every index is sound.",
  wrong: "The file is damaged. Stop the server, and put back the newest verified backup.",
}

const REFERENCES = {
  right: "Every row refers to one that is there.",
  wrong: "Rows refer to others that are missing.",
}

const OWNERS = {
  right: "Every row has its project, and every project its account.",
  wrong:
    "Rows belong to a project or account that is missing: nobody can read them, and retention does not " +
    "remove them. A backup from before still has it.",
}

/** What the rule would ask for, and nobody can tell from the rows. */
const LEFT_OUT: Partial<Record<InvariantName, string>> = {
  I4: " Left out: endpoints with a filter, and events before the last change of an endpoint.",
}

const MISSING = {
  right: "Every file that a row names is there.",
  wrong: "Rows name files that are missing. Put them back from a backup.",
}

const UNNAMED: CheckTexts = {
  right: "Every file is named by a row, or is younger than an hour.",
  wrong: "No row names these files. The running server removes them within hours.",
  outcome: "warn",
}

/** How many places there are, and the first few: all of them may be millions. */
class Places {
  count = 0
  readonly examples: string[] = []

  constructor(places: string[] = []) {
    for (const place of places) this.add(place)
  }

  add(place: string, rows = 1) {
    this.count += rows
    if (this.examples.length < NAMED) this.examples.push(place)
  }
}

function finding(
  check: string,
  { right, wrong, outcome }: CheckTexts,
  { count: found, examples }: Places,
): DatabaseFinding {
  if (found === 0) return { check, outcome: "pass", found, detail: right, examples }
  return { check, outcome: outcome ?? "fail", found, detail: wrong, examples }
}

/** On Postgres the database itself refuses a row that refers to none. */
async function missingReferences({ db, onProgress }: CheckedDatabase): Promise<Places> {
  onProgress("rows that refer to others")
  const table = sql<string>`"table"`
  const all = db.select({ table, rows: count() }).from(sql`pragma_foreign_key_check`)
  const places = new Places()
  for (const row of await all.groupBy(table)) places.add(row.table, row.rows)
  return places
}

async function withoutOwners({ db, onProgress }: CheckedDatabase): Promise<Places> {
  onProgress("rows without a project or account")
  const places = new Places()
  for await (const { table, owner, owner_id, rows } of rowsWithoutOwner(db))
    places.add(`${table}: ${rows} rows of the ${owner} ${owner_id}`, rows)
  return places
}

const OF_ALL: Record<string, string> = { deliveries: "webhook deliveries", inboxes: "inboxes" }

async function brokenInvariants({ db, onProgress }: CheckedDatabase) {
  const found = { I1: new Places(), I4: new Places(), I5: new Places() }
  const look = { db, pause: nextTurn, since: null, overdue_before: null, is_thorough: true }
  const looked = { project: 0, account: 0, deliveries: 0, inboxes: 0 }
  for await (const part of lookedAt(db)) {
    looked[part.kind] += 1
    onProgress(OF_ALL[part.kind] ?? `invariants of ${part.kind} ${looked[part.kind]}`)
    for await (const { name, owner_id, id, what } of brokenIn(look, part))
      found[name].add(`${id ?? owner_id}: ${what}`)
  }
  return found
}

/** A folder with files, and the table whose rows name them. */
interface NamedFiles extends Pick<CheckedDatabase, "db" | "blobs" | "onProgress"> {
  table: FileTable
}

/** Rows that name a file that is missing. */
async function missingFiles({ db, blobs, table, onProgress }: NamedFiles): Promise<Places> {
  const { sha256 } = table
  const missing = new Places()
  let looked = 0
  const next = (after: string) => {
    const named = db.selectDistinct({ id: sha256 }).from(table).where(gt(sha256, after))
    return named.orderBy(asc(sha256)).limit(FILES)
  }
  for await (const rows of inPages(FILES, next)) {
    for (const { id } of rows) if (!(await Bun.file(blobs.path(id)).exists())) missing.add(id)
    looked += rows.length
    onProgress(`${looked} files that rows name`)
  }
  return missing
}

/** A request stores its file before it commits the row that names it. */
const YOUNG_MS = 3_600_000

/** Files that no row names. */
async function unnamedFiles({ onProgress, ...files }: NamedFiles): Promise<Places> {
  const unnamed = new Places()
  for (let folder = 0; folder < FOLDERS; folder++) {
    onProgress(`folder ${folder + 1} of ${FOLDERS} with files`)
    try {
      for await (const file of unnamedIn(files.db, files, folder)) {
        const { lastModified } = Bun.file(files.blobs.path(file))
        if (millis() - lastModified > YOUNG_MS) unnamed.add(file)
      }
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error // no server has made the folder
    }
  }
  return unnamed
}

/** Rows of one table whose project or account is missing. */
interface RowsWithoutOwner {
  table: string
  owner: "project" | "account"
  owner_id: string
  rows: number
}

const OWNER_COLUMNS = {
  project: { id: projects.id, name: "project_id" },
  account: { id: accounts.id, name: "account_id" },
}

/**
 * Rows that no key and no list reaches, and that retention does not see. It reads an index of each table whose rows have
 * an id of their own, or belong to an account. Of what else a lost project had, there is nothing to read without these.
 */
async function* rowsWithoutOwner(db: Reader): AsyncGenerator<RowsWithoutOwner> {
  for (const owner of ["project", "account"] as const) {
    const { id, name } = OWNER_COLUMNS[owner]
    for (const { table, ends, late, ...its } of tableLives) {
      const named = its.owner === owner && columnOf(table, name)
      if (!named || late || ends === "with row" || !indexFrom(named)) continue
      const is_listed = owner === "account" || keyOf(table)[0]?.name === "id"
      if (is_listed) yield* withoutOwner(db, named, { owner, of: id })
    }
  }
}

async function* withoutOwner(
  db: Reader,
  named: SQLiteColumn,
  { owner, of }: { owner: "project" | "account"; of: SQLiteColumn },
): AsyncGenerator<RowsWithoutOwner> {
  // The instance itself owns mail of the project "", and providers of the project `INSTANCE`.
  const orphaned = and(isNull(of), gt(named, ""), lt(named, INSTANCE))
  const all = db.select({ owner_id: named, rows: count() }).from(named.table)
  const rows = await all.leftJoin(of.table, eq(of, named)).where(orphaned).groupBy(named)
  const table = getTableName(named.table)
  for (const row of rows)
    yield { table, owner, owner_id: String(row.owner_id), rows: Number(row.rows) }
}
