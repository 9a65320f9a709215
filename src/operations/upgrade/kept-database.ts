import { existsSync, constants as files, readFileSync, renameSync, rmSync } from "node:fs"
import { copyFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { SQL } from "bun"
import type { Settings } from "../../core/config"
import { replaceFile, syncPath, writeSynced } from "../../core/small-file"
import { lockFolder } from "../../store/database-file"
import { withoutMigrations } from "../../store/migrate"
import { embedded } from "../../store/migrations"
import { sqlitePath } from "../../store/open"
import { onConnection } from "../../store/postgres-pool"
import { MARK_FILE } from "../database-mark"
import { upgradeFolder } from "./journal"

/** The database of before an upgrade lies beside its file under this name, and on Postgres in a schema. */
const SUFFIX = ".before-upgrade"

/**
 * Keeps the whole database aside, on disk when it resolves, with the mark that says how new it is. Nothing may have it
 * open. What an earlier attempt kept is replaced. Throws FolderInUse where a process holds the SQLite file.
 */
export async function keepDatabase(settings: Settings): Promise<void> {
  const { data_dir, database_url } = settings
  const mark = join(data_dir, MARK_FILE)
  const text = existsSync(mark) ? readFileSync(mark) : "" // an empty file stands for none
  writeSynced(keptMark(data_dir), text)
  if (database_url !== null) return keepSchema(database_url)
  const path = sqlitePath(settings)
  const release = lockFolder(path)
  try {
    // With its log, which a server that was killed leaves, and which is nobody's to copy with Litestream.
    for (const end of ["-wal", ""]) await copySynced(path + end, path + SUFFIX + end)
    syncPath(dirname(path))
  } finally {
    release()
  }
}

/**
 * Puts back what `keepDatabase` kept, byte for byte. Nothing may have the database open. A second call, and
 * one after a crash within the first, ends the same.
 */
export async function returnDatabase(settings: Settings): Promise<void> {
  const { data_dir, database_url } = settings
  if (database_url !== null) await returnSchema(database_url)
  else returnFiles(sqlitePath(settings))
  const kept = keptMark(data_dir)
  if (!existsSync(kept)) return
  const text = readFileSync(kept)
  const mark = join(data_dir, MARK_FILE)
  if (text.length === 0) rmSync(mark, { force: true })
  else replaceFile(mark, text)
  syncPath(data_dir)
}

function returnFiles(path: string): void {
  const release = lockFolder(path)
  try {
    if (existsSync(path + SUFFIX)) {
      for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true })
      renameSync(path + SUFFIX, path)
    }
    if (existsSync(`${path}${SUFFIX}-wal`)) renameSync(`${path}${SUFFIX}-wal`, `${path}-wal`)
    syncPath(dirname(path))
  } finally {
    release()
  }
}

/** The upgrade is over, so the database of before goes. */
export async function dropKeptDatabase(settings: Settings): Promise<void> {
  const { data_dir, database_url } = settings
  rmSync(keptMark(data_dir), { force: true })
  if (database_url !== null) return dropKeptSchema(database_url)
  for (const end of ["", "-wal"]) rmSync(sqlitePath(settings) + SUFFIX + end, { force: true })
}

const keptMark = (data_dir: string) => join(upgradeFolder(data_dir), MARK_FILE + SUFFIX)

/** Where there is no such file, there is none at the target either. */
async function copySynced(from: string, to: string): Promise<void> {
  rmSync(to, { force: true })
  if (!existsSync(from)) return
  await copyFile(from, to, files.COPYFILE_FICLONE)
  syncPath(to)
}

/** Where the tables of before an upgrade lie. */
const KEPT = "belfry_before_upgrade"

/** In that schema: the names of tables beside ours, which another application has. */
const OTHERS = "belfry_other_tables"

/** Every table of a schema, and whether this user may drop it. */
const TABLES = `SELECT c.relname AS name, c.reloptions AS options,
  pg_has_role(c.relowner, 'USAGE') AS may_drop FROM pg_class c
  WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r' ORDER BY c.relname`

/** The tables that any migration of this version has made. */
const ownTables = () =>
  new Set([
    "belfry_migrations",
    ...embedded.postgres.flatMap(({ sql }) =>
      [...sql.matchAll(/^CREATE TABLE "(\w+)"/gm)].map(([, name = ""]) => name),
    ),
  ])

/** The schema of our tables, which the settings of the database or its user may name, as SQL has it. */
async function ownSchema(tx: SQL): Promise<string> {
  const [row] = await tx.unsafe("SELECT quote_ident(current_schema()) AS name")
  return String(row?.name)
}

const ALIKE = "INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING IDENTITY INCLUDING STORAGE"

/**
 * What makes the keys, checks, indexes and references of the tables of a schema anew. They have their own names: a
 * migration may drop one by its name.
 */
const PARTS = `SELECT t.relname AS name, k.contype = 'f' AS refers,
    format('ALTER TABLE ${KEPT}.%I ADD CONSTRAINT %I %s', t.relname, k.conname, pg_get_constraintdef(k.oid)) AS made
  FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
  WHERE t.relnamespace = to_regnamespace($1) AND k.contype IN ('p', 'u', 'c', 'f')
  UNION ALL SELECT t.relname, false, pg_get_indexdef(i.indexrelid)
  FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
  WHERE t.relnamespace = to_regnamespace($1)
    AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = t.oid)
  ORDER BY refers`

interface TableRow {
  name: string
  options: string[] | null
  may_drop: boolean
}

/**
 * Copies every table of ours with its rows, keys, indexes and settings into a schema of its own, within the
 * server and in one transaction: no row travels. What an earlier attempt kept is replaced.
 */
export const keepSchema = (url: string): Promise<void> =>
  // `dropKeptSchema` waits for its commit.
  withoutMigrations(url, async (tx) => {
    await tx.unsafe(`DROP SCHEMA IF EXISTS ${KEPT} CASCADE`)
    await tx.unsafe(`CREATE SCHEMA ${KEPT}`)
    const ours = await ownSchema(tx)
    const own = ownTables()
    const all = (await tx.unsafe(TABLES, [ours])) as TableRow[]
    const tables = all.filter(({ name }) => own.has(name))
    await tx.unsafe(`CREATE TABLE ${KEPT}.${OTHERS} (name text)`)
    for (const { name } of all.filter(({ name }) => !own.has(name)))
      await tx.unsafe(`INSERT INTO ${KEPT}.${OTHERS} VALUES ($1)`, [name])
    for (const { name, options } of tables) {
      const [from, to] = [`${ours}.${quoted(name)}`, `${KEPT}.${quoted(name)}`]
      const settings = options?.length ? ` WITH (${options.join(", ")})` : ""
      await tx.unsafe(`CREATE TABLE ${to} (LIKE ${from} ${ALIKE})${settings}`)
      await tx.unsafe(`INSERT INTO ${to} SELECT * FROM ${from}`)
    }
    await tx.unsafe("SET LOCAL search_path = pg_catalog") // so that definitions name our schema
    const parts = (await tx.unsafe(PARTS, [ours])) as { name: string; made: string }[]
    for (const { made } of parts.filter(({ name }) => own.has(name)))
      await tx.unsafe(made.replace(` ${ours}.`, ` ${KEPT}.`))
  })

/**
 * Puts the kept tables in the place of ours that are there, in one transaction. What the new version has
 * made goes. Tables of another application stay as they are.
 */
export const returnSchema = (url: string): Promise<void> =>
  // One that was killed may still be committed by the server.
  withoutMigrations(url, async (tx) => {
    const all = (await tx.unsafe(TABLES, [KEPT])) as TableRow[]
    if (all.length === 0) return // it was done before
    const kept = all.filter(({ name }) => name !== OTHERS)
    const rows = (await tx.unsafe(`SELECT name FROM ${KEPT}.${OTHERS}`)) as { name: string }[]
    const others = new Set(rows.map(({ name }) => name))
    const ours = await ownSchema(tx)
    const there = (await tx.unsafe(TABLES, [ours])) as TableRow[]
    for (const { name, may_drop } of there)
      if (may_drop && !others.has(name))
        await tx.unsafe(`DROP TABLE ${ours}.${quoted(name)} CASCADE`)
    for (const { name } of kept)
      await tx.unsafe(`ALTER TABLE ${KEPT}.${quoted(name)} SET SCHEMA ${ours}`)
    await tx.unsafe(`DROP SCHEMA ${KEPT} CASCADE`)
  })

/** Whether tables are kept: from the moment when they are whole until the upgrade is over. */
export const hasKeptSchema = (url: string): Promise<boolean> =>
  onConnection(url, async (pool) => {
    const [row] = await pool.unsafe("SELECT to_regnamespace($1) IS NOT NULL AS is_there", [KEPT])
    return row?.is_there === true
  })

/**
 * Nothing is kept any more. What a killed process was about to keep may be committed by the server only now. It would
 * stay, and every node would wait for the end of an upgrade that is over.
 */
export const dropKeptSchema = (url: string): Promise<void> =>
  withoutMigrations(url, async (tx) => {
    await tx.unsafe(`DROP SCHEMA IF EXISTS ${KEPT} CASCADE`)
  })

/** Longer than a node may be silent before its work is released. */
const ALIVE = "20 seconds"

/** How many nodes serve the database, this machine's own one included. */
export const servingNodes = (url: string): Promise<number> =>
  onConnection(url, async (pool) => {
    const since = `(extract(epoch FROM clock_timestamp() - interval '${ALIVE}') * 1000)::bigint`
    const [row] = await pool.unsafe(`SELECT count(*)::int AS n FROM nodes WHERE seen_at > ${since}`)
    return Number(row?.n ?? 0)
  })

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
