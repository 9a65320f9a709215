import { asc, gt, sql } from "drizzle-orm"
import { type Blobs, FOLDERS } from "../core/blobs"
import { codeOf } from "../core/faults"
import { millis, nextTurn } from "../core/time"
import { inboundFiles } from "../inbound/tables"
import { messageFiles } from "../messages/tables"
import * as instanceValues from "../store/instance-values"
import type { Reader } from "../store/store"
import { type FileTable, namedAmong } from "./file-sweep"
import { BLOB_MARKER } from "./instance"
import {
  allOwners,
  type BrokenInvariant,
  brokenDeliveries,
  brokenInAccount,
  brokenInProject,
  INVARIANTS,
  type InvariantName,
} from "./invariants"
import { rowsWithoutOwner } from "./lost-owners"

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

export interface CheckedDatabase {
  /** One moment of a sound database. */
  db: Reader
  blobs: Blobs
  inbound_blobs: Blobs
  /** What is looked at now, for people. */
  onProgress: (text: string) => void
}

const FILES = 200
const NAMED = 10

/**
 * Every check but that of the file itself, in the order in which one explains the next. What is found is
 * yielded as soon as its check ends.
 */
export async function* checkDatabase(parts: CheckedDatabase): AsyncGenerator<DatabaseFinding> {
  if (parts.db.isAlone) yield await checkReferences(parts)
  yield await checkOwners(parts)
  yield* checkInvariants(parts)
  yield* checkFiles(parts, "blobs", messageFiles)
  yield* checkFiles(parts, "inbound_blobs", inboundFiles)
}

/**
 * What SQLite says of its file, as a finding; undefined on Postgres. Nothing that is read of a damaged
 * file can be trusted, so this comes before every other check.
 */
export function integrityOf(faults: string[] | undefined): DatabaseFinding {
  const check = "integrity"
  if (!faults) {
    const detail = "Postgres checks its own files. `pg_amcheck` looks at every page."
    return { check, outcome: "skip", found: 0, detail, examples: [] }
  }
  if (faults.length === 0) return passed(check, "Every page and every index is sound.")
  const detail = "The file is damaged. Stop the server, and put back the newest verified backup."
  return { check, outcome: "fail", found: faults.length, detail, examples: faults.slice(0, NAMED) }
}

const passed = (check: string, detail: string): DatabaseFinding => ({
  check,
  outcome: "pass",
  found: 0,
  detail,
  examples: [],
})

/** On Postgres the database itself refuses a row that refers to none. */
async function checkReferences({ db, onProgress }: CheckedDatabase): Promise<DatabaseFinding> {
  onProgress("rows that refer to others")
  const table = sql<string>`"table"`
  const rows = await db.select({ table }).from(sql`pragma_foreign_key_check`)
  if (rows.length === 0) return passed("references", "Every row refers to one that is there.")
  const tables = [...new Set(rows.map((row) => row.table))]
  const detail = "Rows refer to others that are missing."
  const examples = tables.slice(0, NAMED)
  return { check: "references", outcome: "fail", found: rows.length, detail, examples }
}

/** The invariants are looked at by project and account, so rows without one come before. */
async function checkOwners({ db, onProgress }: CheckedDatabase): Promise<DatabaseFinding> {
  onProgress("rows without a project or account")
  const examples: string[] = []
  let found = 0
  for await (const { table, owner, owner_id, rows } of rowsWithoutOwner(db)) {
    found += rows
    if (examples.length < NAMED) examples.push(`${table}: ${rows} rows of the ${owner} ${owner_id}`)
  }
  if (found === 0)
    return passed("owners", "Every row has its project, and every project its account.")
  const detail =
    "Rows belong to a project or account that is missing: nobody can read them, and retention does not " +
    "remove them. A backup from before still has it."
  return { check: "owners", outcome: "fail", found, detail, examples }
}

/** How many places there are, and the first few: all of them may be millions. */
type FoundPlaces = Pick<DatabaseFinding, "examples"> & { count: number }

const noPlaces = (): FoundPlaces => ({ count: 0, examples: [] })

function add(found: FoundPlaces, place: string): void {
  found.count += 1
  if (found.examples.length < NAMED) found.examples.push(place)
}

async function* checkInvariants(parts: CheckedDatabase): AsyncGenerator<DatabaseFinding> {
  const { db, onProgress } = parts
  const found = new Map<InvariantName, FoundPlaces>()
  const look = { db, pause: nextTurn, since: null, overdue_before: null, is_thorough: true }
  const note = async (places: AsyncGenerator<BrokenInvariant>) => {
    for await (const { name, owner_id, id, what } of places) {
      const all = found.get(name) ?? noPlaces()
      found.set(name, all)
      add(all, `${id ?? owner_id}: ${what}`)
    }
  }
  for (const kind of ["project", "account"] as const) {
    const brokenIn = kind === "project" ? brokenInProject : brokenInAccount
    let looked = 0
    for await (const id of allOwners(db, kind)) {
      looked += 1
      onProgress(`invariants of ${kind} ${looked}`)
      await note(brokenIn(look, id))
    }
  }
  onProgress("webhook deliveries")
  await note(brokenDeliveries(look))
  for (const name of Object.keys(INVARIANTS) as InvariantName[]) {
    const { count = 0, examples = [] } = found.get(name) ?? {}
    const outcome = count === 0 ? "pass" : "fail"
    const detail = `${INVARIANTS[name]}.${LEFT_OUT[name] ?? ""}`
    yield { check: name, outcome, found: count, detail, examples }
  }
}

/** What the rule would ask for, and nobody can tell from the rows. */
const LEFT_OUT: Partial<Record<InvariantName, string>> = {
  I4: " Left out: endpoints with a filter, and events before the last change of an endpoint.",
}

/** Rows that name a file that is missing, and files that no row names. */
async function* checkFiles(
  parts: CheckedDatabase,
  name: "blobs" | "inbound_blobs",
  table: FileTable,
): AsyncGenerator<DatabaseFinding> {
  const missing = await missingFiles(parts, name, table)
  yield missing.count === 0
    ? passed(`${name}_missing`, "Every file that a row names is there.")
    : {
        check: `${name}_missing`,
        outcome: "fail",
        found: missing.count,
        detail: "Rows name files that are missing. Put them back from a backup.",
        examples: missing.examples,
      }
  const unnamed = await unnamedFiles(parts, name, table)
  yield unnamed.count === 0
    ? passed(`${name}_unnamed`, "Every file is named by a row, or is younger than an hour.")
    : {
        check: `${name}_unnamed`,
        outcome: "warn",
        found: unnamed.count,
        detail: "No row names these files. The running server removes them within hours.",
        examples: unnamed.examples,
      }
}

async function missingFiles(
  parts: CheckedDatabase,
  name: "blobs" | "inbound_blobs",
  table: FileTable,
) {
  const { db, onProgress } = parts
  const blobs = parts[name]
  const { sha256 } = table
  const missing = noPlaces()
  let looked = 0
  for (let after = ""; ; ) {
    const next = db.selectDistinct({ sha256 }).from(table).where(gt(sha256, after))
    const rows = await next.orderBy(asc(sha256)).limit(FILES)
    for (const row of rows) {
      if (!(await Bun.file(blobs.path(row.sha256)).exists())) add(missing, row.sha256)
    }
    looked += rows.length
    onProgress(`${looked} files that rows name`)
    after = rows.at(-1)?.sha256 ?? ""
    if (rows.length < FILES) return missing
  }
}

/** A request stores its file before it commits the row that names it. */
const YOUNG_MS = 3_600_000

async function unnamedFiles(
  parts: CheckedDatabase,
  name: "blobs" | "inbound_blobs",
  table: FileTable,
) {
  const { db, onProgress } = parts
  const blobs = parts[name]
  const marker = await instanceValues.find(db, BLOB_MARKER)
  const unnamed = noPlaces()
  for (let folder = 0; folder < FOLDERS; folder++) {
    onProgress(`folder ${folder + 1} of ${FOLDERS} with files`)
    const files = await filesIn(blobs, folder)
    for (let at = 0; at < files.length; at += FILES) {
      const some = files.slice(at, at + FILES)
      const named = await namedAmong(db, table, some)
      for (const file of some) {
        if (named.has(file) || file === marker) continue
        const { lastModified } = Bun.file(blobs.path(file))
        if (millis() - lastModified > YOUNG_MS) add(unnamed, file)
      }
    }
  }
  return unnamed
}

async function filesIn(blobs: Blobs, folder: number): Promise<string[]> {
  try {
    return (await blobs.list(folder)).filter((file) => /^[0-9a-f]{64}$/.test(file))
  } catch (error) {
    if (codeOf(error) === "ENOENT") return []
    throw error
  }
}
