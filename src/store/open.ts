import { Database } from "bun:sqlite"
import { existsSync, mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Settings } from "../core/config"
import { faultOf } from "../core/faults"
import { pendingPostgres } from "./apply-migrations"
import { type BeginMode, explained as explainedFile, NoDatabase, nothingIn } from "./database-file"
import { pendingSqlite } from "./migrate"
import { openPostgres, readPostgresMoment } from "./postgres"
import { onConnection } from "./postgres-pool"
import { apart, readSnapshot } from "./snapshot"
import { type CopyLog, openSqlite } from "./sqlite"
import type { Reader, Store } from "./store"

/** A Postgres that starts together with us, on the same machine or beside it, is there by then. */
export const BOOT_PATIENCE_MS = 60_000

interface OpenOptions {
  /** Hears of every fault of the storage. */
  onFault?: (error: unknown) => void
  /** Takes the checkpoints of an SQLite file off this thread. */
  copyLog?: CopyLog
  begin?: BeginMode
  /** How long a Postgres that cannot be reached is waited for; default: not at all. */
  patience_ms?: number
}

/**
 * Opens the database which the settings name, with every migration applied. Throws NoDatabase where
 * there is none and none may begin, and DamagedDatabase for one that cannot be trusted.
 */
export async function openStore(settings: Settings, options: OpenOptions = {}): Promise<Store> {
  const { onFault = () => {}, copyLog, begin = "if_new" } = options
  if (settings.database_url) {
    if (begin === "anew") throw new NoDatabase(ANEW_ON_POSTGRES)
    const { database_url: url, database_direct_url: direct_url } = settings
    const { patience_ms = 0 } = options
    return openPostgres({ url, direct_url, onFault, patience_ms, demand: begin === "never" })
  }

  const { data_dir } = settings
  const path = sqlitePath(settings)
  if (begin === "never") requireBegun(settings)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const blobs_dir = settings["storage.blobs.dir"] ?? join(data_dir, "blobs")
  return openSqlite({
    path,
    place: { data_dir, blobs_dir, begin },
    cache_mb: settings["storage.cache_mb"],
    wal_autocheckpoint: settings["storage.wal_autocheckpoint"],
    onFault,
    copyLog,
  })
}

const ANEW_ON_POSTGRES =
  "--new works only with SQLite, but DATABASE_URL names a Postgres database. Empty that database, or name another."

/** Whether there is a database to open; on Postgres only opening tells. */
export const hasBegun = (settings: Settings): boolean =>
  settings.database_url !== null || existsSync(sqlitePath(settings))

export function requireBegun(settings: Settings): void {
  if (!hasBegun(settings)) throw nothingIn(settings.data_dir)
}

/** The error itself, or what is wrong with the SQLite file where the error tells of that. */
export function explained(settings: Settings, error: unknown): unknown {
  const is_damage = error instanceof Error && faultOf(error) === "damaged"
  return is_damage && !settings.database_url ? explainedFile(sqlitePath(settings), error) : error
}

/** Where the SQLite file is, or would be. */
export const sqlitePath = (settings: Settings) =>
  settings["storage.sqlite.path"] ?? `${settings.data_dir}/belfry.db`

/**
 * The migrations that opening would apply, with nothing changed; beside a running server too.
 * Throws SchemaTooNew where opening would.
 */
export async function pendingMigrations(settings: Settings): Promise<string[]> {
  if (settings.database_url) return onConnection(settings.database_url, pendingPostgres)
  requireBegun(settings)
  const reader = new Database(sqlitePath(settings), { readonly: true, strict: true })
  try {
    return pendingSqlite(reader)
  } finally {
    reader.close()
  }
}

/**
 * Reads one moment of the database that the settings name, with nothing changed; beside a running server
 * too. The schema has to be the one of this version (`pendingMigrations`).
 */
export function readDatabase<Result>(
  settings: Settings,
  look: (db: Reader) => Promise<Result>,
): Promise<Result> {
  const { database_url } = settings
  return database_url
    ? readPostgresMoment(database_url, look)
    : readSnapshot(sqlitePath(settings), apart(true), look)
}
