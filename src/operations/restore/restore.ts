import { chmodSync } from "node:fs"
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { syncFolder } from "../../core/blobs"
import type { Settings } from "../../core/config"
import { codeOf } from "../../core/faults"
import { makeKeyFile, type Secrets } from "../../core/secrets"
import { lockFolder, sizeOf } from "../../store/database-file"
import { openStore, sqlitePath } from "../../store/open"
import type { BackupArchive } from "../backup/archive-reader"
import { requireKnownVersion, requireSound } from "../backup/verify-archive"
import { leaveFolder, MARK_FILE, raiseMarkAboveAll } from "../database-mark"
import { requireFolders } from "../folder-owner"
import { WrongMasterKey } from "../instance"
import { type ChangedCopy, changeCopy } from "./copy-changes"
import { endRotation } from "./end-rotation"
import { blobsDir, requireEmptyTarget, requireRoom } from "./restore-target"
import { moveToPostgres } from "./to-postgres"

/** Beside the database and in the folder of the blobs, until everything has its place on the same disk. */
const STAGING = "restoring"

/** What the archive says of itself stays beside the database, for people. The mark is for the server. */
export const KEPT = {
  "manifest.json": "restored-manifest.json",
  "config.json": "restored-config.json",
  [MARK_FILE]: MARK_FILE,
}

export interface RestoreParts {
  settings: Settings
  secrets: Secrets
  /** Written as `master.key` where the settings name no key. */
  master_key: string | null
  /** The kinds of jobs that are not held. */
  runs_on: readonly string[]
  revoke_keys: boolean
}

export interface RestoreProgress {
  step: "extracting" | "holding" | "copying"
  /** Bytes, and rows behind the first step. */
  done: number
  total: number | null
}

interface RestoreOptions {
  onProgress?: (progress: RestoreProgress) => void
  /** Ends the restore. No row, file or key of it stays; Postgres keeps its tables, without rows. */
  signal?: AbortSignal
}

/**
 * What can be known before anything is written. Throws WrongMasterKey, TargetInUse, FolderOfAnother,
 * NoRoomForRestore, and ArchiveError for a later version.
 */
export async function requireRestorable(
  archive: BackupArchive,
  { settings, secrets }: Pick<RestoreParts, "settings" | "secrets">,
): Promise<void> {
  const { manifest } = archive
  const { master_key_id, next_master_key_id } = manifest
  const key_ids = [master_key_id, ...(next_master_key_id ? [next_master_key_id] : [])]
  if (!key_ids.includes(secrets.key_id)) {
    throw new WrongMasterKey(key_ids.join(" or "), secrets.key_id)
  }
  requireKnownVersion(archive)
  await requireEmptyTarget(settings)
  requireFolders(settings)
  await requireRoom(settings, archive)
}

/**
 * Puts the archive's database and files where the settings want them, on either engine. Its open work is
 * held, and sessions, codes and links end. The database gets its place last, so a crash leaves none, and
 * the next restore begins anew. Throws what `requireRestorable` throws, and ArchiveError.
 */
export async function restore(
  archive: BackupArchive,
  parts: RestoreParts,
  options: RestoreOptions = {},
): Promise<ChangedCopy> {
  await requireRestorable(archive, parts)
  const { settings } = parts
  const path = sqlitePath(settings)
  for (const folder of [settings.data_dir, dirname(path)]) {
    await mkdir(folder, { recursive: true, mode: 0o700 })
  }
  const release = lockFolder(path)
  const staging = join(dirname(path), STAGING)
  const blobs = join(blobsDir(settings), STAGING)
  const clear = async () => {
    for (const folder of [staging, blobs]) await rm(folder, { recursive: true, force: true })
  }
  try {
    await requireEmptyTarget(settings) // another process may have begun a database before the lock
    await clear()
    await mkdir(staging, { mode: 0o700 })
    await extract(archive, { folder: staging, blobs_dir: blobs }, options)
    const database = join(staging, "database.db")
    const { signal } = options
    const { secrets } = parts
    await requireSound(archive, { database, how: "quick", secrets, ...(signal && { signal }) })
    const changed = await changeStaged(staging, parts, options)
    options.signal?.throwIfAborted()
    const placeRest = async () => {
      await keepKey(parts)
      await placeFiles(blobs, blobsDir(settings))
      await keepPapers(staging, settings.data_dir)
    }
    requireWhole(database)
    if (settings.database_url) await moveToPostgres(database, settings, { ...options, placeRest })
    else {
      await placeRest()
      await place(database, path)
    }
    return changed
  } finally {
    await clear()
    release()
  }
}

async function extract(
  archive: BackupArchive,
  target: Parameters<BackupArchive["extract"]>[0],
  { onProgress, signal }: RestoreOptions,
) {
  const total = archive.size
  const onBytes = (done: number) => onProgress?.({ step: "extracting", done, total })
  await archive.extract(target, { onBytes, ...(signal && { signal }) })
}

/** The schema of this version, and what a copy must not go on with. Then the file is whole without its log. */
async function changeStaged(
  staging: string,
  { settings, secrets, runs_on, revoke_keys }: RestoreParts,
  { onProgress }: RestoreOptions,
): Promise<ChangedCopy> {
  const own = {
    data_dir: staging,
    database_url: null,
    "storage.sqlite.path": join(staging, "database.db"),
    "storage.wal_autocheckpoint": 1000, // with 0 the log would not be copied at the end
  }
  const store = await openStore({ ...settings, ...own })
  try {
    const onHeld = (done: number) => onProgress?.({ step: "holding", done, total: null })
    const changed = await changeCopy(store, { runs_on, revoke_keys, onHeld })
    await endRotation(store, secrets, staging)
    // The original counts on with its own name: put back here later, it has to be recognized.
    if (!settings.database_url) await store.tx(leaveFolder)
    await raiseMarkAboveAll(store, settings.data_dir, staging) // else a start took it for one put back by hand
    return changed
  } finally {
    await store.close()
  }
}

/** Where the disk became full at the end, the file alone would lack what was changed in it. */
function requireWhole(path: string): void {
  if (sizeOf(`${path}-wal`) > 0) throw new Error(`${path} could not be written whole.`)
}

/**
 * Each folder by itself, because all names together may not fit into memory. A file that is there has the same
 * content: its name is the hash of it.
 */
async function placeFiles(from: string, to: string): Promise<void> {
  const entries = await entriesIn(from)
  if (entries.length === 0) return
  await mkdir(to, { recursive: true, mode: 0o700 })
  for (const entry of entries) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await placeFiles(source, target)
    else await rename(source, target)
  }
  await syncFolder(to)
}

/** None where an archive has no files. */
async function entriesIn(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true })
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error
    return []
  }
}

async function keepPapers(staging: string, data_dir: string): Promise<void> {
  for (const [name, kept] of Object.entries(KEPT)) {
    const paper = await readFile(join(staging, name))
    await writeFile(join(data_dir, kept), paper, { mode: 0o600, flush: true })
  }
}

/** The server needs the key at its start. A key of the settings has its own place. */
async function keepKey({ settings, master_key }: RestoreParts): Promise<void> {
  if (master_key === null || settings["security.master_key"] !== null) return
  const path = join(settings.data_dir, "master.key")
  makeKeyFile(settings.data_dir, path, master_key)
  chmodSync(path, 0o600)
}

async function place(from: string, to: string): Promise<void> {
  const file = await open(from, "r+")
  await file.sync()
  await file.close()
  await rename(from, to)
  await syncFolder(dirname(to))
}
