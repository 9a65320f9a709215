import { Database } from "bun:sqlite"
import { closeSync, copyFileSync, existsSync, fsyncSync, openSync, rmSync } from "node:fs"
import { applySqlite, SchemaTooNew } from "../apply-migrations"
import { sizeOf } from "../database-file"
import { checkFile } from "../file-tasks"
import { embedded } from "../migrations"
import { copyReadable } from "./copy-readable"
import { DamagedFile } from "./damaged-file"
import {
  type DamagedTree,
  type DeclaredColumn,
  type DeclaredTable,
  treesOf,
} from "./damaged-schema"
import { type LostPages, type LostTable, lostPages, lostTables } from "./lost-pages"
import { type LostRow, removeDangling, type StandIn, unreadableRows } from "./lost-rows"

export interface RecoverOptions {
  /** The damaged file; its write-ahead log is read, too. Both stay as they are. */
  from: string
  /** The new file, which must not exist. */
  to: string
  onProgress: (text: string) => void
  /** Hears of all that is lost, or may be: without a call, everything came back. */
  onLost: (lost: LostEntry) => void
  /** By table: what takes the place of a lost row that others refer to. Else these are removed. */
  standIns?: Record<string, StandIn>
}

/** A line of the list of what is lost. */
export type LostEntry = LostRow | LostPages | LostTable

/** What became of the rows of one table. */
export interface RecoveredTable {
  table: string
  recovered: number
  /** Rows that are known to have been there. Pages that cannot be read may have had more. */
  lost: number
  /** Pages with content of it that cannot be read, or are missing. */
  unreadable_pages: number
}

export interface RecoveredPages {
  /** As many as the header tells of, or the file has. */
  total: number
  /** The file is cut off before them. */
  missing: number
  unreadable: number
  /** Those of the unreadable ones whose table is not known. */
  of_no_known_table: number
}

export interface RecoveredFile {
  tables: RecoveredTable[]
  pages: RecoveredPages
  /** Tables that the schema of the damaged file does not name. */
  not_found: string[]
}

/** Not one row of ours is in the file: it is another kind of file, or all of it is overwritten. */
export class NothingRecovered extends Error {
  override readonly name = "NothingRecovered"

  constructor(from: string) {
    super(
      `${from} has no row of a Belfry database that can be read. Name another file, or restore a backup.`,
    )
  }
}

/**
 * Copies all that can be read of a damaged SQLite file into a new one, which is sound: no index differs
 * from its table, and no row refers to one that is lost where the schema forbids that. Throws SchemaTooNew
 * for the file of a later version, and NothingRecovered. What fails leaves no new file.
 */
export function recoverFile(options: RecoverOptions): RecoveredFile {
  const { to, from } = options
  if (existsSync(to)) throw new Error(`${to} exists already. Name another file.`)
  const draft = `${to}.draft`
  try {
    return recovered(options, withLog(from, draft))
  } catch (error) {
    for (const end of ["", "-wal", "-shm"]) rmSync(`${to}${end}`, { force: true })
    throw error
  } finally {
    for (const end of ["", "-wal", "-shm"]) rmSync(`${draft}${end}`, { force: true })
  }
}

/**
 * The file with what its write-ahead log has: a copy where there is such a log. A log that SQLite refuses
 * is left out.
 */
function withLog(from: string, draft: string): string {
  if (sizeOf(`${from}-wal`) === 0) return from
  copyFileSync(from, draft)
  copyFileSync(`${from}-wal`, `${draft}-wal`)
  try {
    using copy = new Database(draft, { readwrite: true, strict: true })
    copy.run("PRAGMA wal_checkpoint(TRUNCATE)")
  } catch {
    copyFileSync(from, draft)
  }
  return draft
}

function recovered(options: RecoverOptions, readable: string): RecoveredFile {
  const { from, to, onProgress, onLost, standIns = {} } = options
  const file = new DamagedFile(readable)
  const target = newDatabase(to)
  try {
    const trees = treesOf(file)
    applySqlite(target, migrationsOf(file, trees))
    target.run("DELETE FROM belfry_migrations")
    const tables = declaredIn(target)
    const parts = { file, trees, target, tables, onProgress }
    const { recovered: counts, dropped, read } = copyReadable(parts)
    completeLedger(target, file, trees)
    const lost = new Map<string, number>()
    const note = (row: LostRow) => {
      if (row.reason !== "placeholder") lost.set(row.table, (lost.get(row.table) ?? 0) + 1)
      onLost(row)
    }
    onProgress("rows that are lost")
    for (const row of unreadableRows({ ...parts, dropped })) note(row)
    for (const row of removeDangling(target, tables, standIns)) {
      const is_removed = row.reason !== "placeholder"
      if (is_removed) counts.set(row.table, (counts.get(row.table) ?? 0) - 1)
      note(row)
    }
    const is_empty = [...counts.values()].every((count) => count === 0)
    if (is_empty && lost.size === 0) throw new NothingRecovered(from)
    target.close()
    demandSound(to)
    const pages = lostPages(file, trees, { read })
    const not_found = lostTables(trees, tables)
    for (const entry of [...pages, ...not_found]) onLost(entry)
    return {
      tables: [...counts].map(([table, count]) => ({
        table,
        recovered: count,
        lost: lost.get(table) ?? 0,
        unreadable_pages: sumOf(pages.filter((one) => one.table === table)),
      })),
      pages: pagesOf(file, pages),
      not_found: not_found.map(({ table }) => table),
    }
  } finally {
    target.close()
    file.close()
  }
}

const sumOf = (pages: LostPages[]): number => pages.reduce((sum, one) => sum + one.pages, 0)

function pagesOf({ pages, promised }: DamagedFile, lost: LostPages[]): RecoveredPages {
  const unreadable = lost.filter(({ reason }) => reason === "unreadable_page")
  return {
    total: promised,
    missing: promised - pages,
    unreadable: sumOf(unreadable),
    of_no_known_table: sumOf(unreadable.filter(({ table }) => table === null)),
  }
}

function newDatabase(path: string): Database {
  closeSync(openSync(path, "wx", 0o600))
  const target = new Database(path, { readwrite: true, strict: true })
  target.run("PRAGMA auto_vacuum = INCREMENTAL")
  target.run("PRAGMA journal_mode = OFF") // a crash leaves a file that nobody uses
  target.run("PRAGMA synchronous = OFF")
  target.run("PRAGMA secure_delete = ON")
  return target
}

/** Those that the damaged file had; all of them where it does not tell any more. */
function migrationsOf(file: DamagedFile, trees: Map<number, DamagedTree>) {
  const tags = ledgerOf(file, trees)
  if (tags.size === 0) return embedded.sqlite
  const known = new Set(embedded.sqlite.map(({ tag }) => tag))
  for (const tag of tags) if (!known.has(tag)) throw new SchemaTooNew(tag)
  return embedded.sqlite.filter(({ tag }) => tags.has(tag))
}

function ledgerOf(file: DamagedFile, trees: Map<number, DamagedTree>): Set<string> {
  const tags = new Set<string>()
  for (let number = 2; number <= file.pages; number++) {
    const page = file.btree(number)
    if (page?.kind !== "table_leaf") continue
    if (trees.get(file.rootOf(number) ?? 0)?.name !== "belfry_migrations") continue
    for (const { values } of file.rowsOf(number, page)) {
      if (typeof values[0] === "string") tags.add(values[0])
    }
  }
  return tags
}

/** The new file has the schema that it was made with, whatever of the list could be copied. */
function completeLedger(target: Database, file: DamagedFile, trees: Map<number, DamagedTree>) {
  const insert = target.prepare("INSERT OR IGNORE INTO belfry_migrations VALUES (?, ?)")
  for (const { tag, when } of migrationsOf(file, trees)) insert.run(tag, when)
}

function declaredIn(target: Database): Map<string, DeclaredTable> {
  const tables = target
    .query("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all() as { name: string; sql: string }[]
  return new Map(
    tables.map(({ name, sql }) => {
      const columns = target.query(`PRAGMA table_info("${name}")`).all() as DeclaredColumn[]
      return [name, { name, columns, has_rowid: !/WITHOUT ROWID\s*;?\s*$/i.test(sql) }]
    }),
  )
}

/** Nothing is handed over that the next start would refuse. */
function demandSound(path: string) {
  const [fault] = checkFile({ path, how: "full" })
  if (fault) throw new Error(`The new file is not sound: ${fault}`)
  const file = openSync(path, "r")
  fsyncSync(file)
  closeSync(file)
}
