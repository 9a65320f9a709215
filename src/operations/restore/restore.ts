import { chmodSync, existsSync, writeFileSync } from "node:fs"
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { syncFolder } from "../../core/blobs"
import type { Settings } from "../../core/config"
import { makeKeyFile, openSecrets, type Secrets } from "../../core/secrets"
import { LOST_EVENTS } from "../../events/lost-events"
import { copyFileToPostgres } from "../../store/copy-rows"
import { lockFolder, sizeOf } from "../../store/database-file"
import * as instanceValues from "../../store/instance-values"
import { withoutMigrations } from "../../store/migrate"
import { BOOT_PATIENCE_MS, openStore, sqlitePath } from "../../store/open"
import type { PostgresConnection } from "../../store/shared-tables"
import type { Store } from "../../store/store"
import type { BackupArchive } from "../backup/archive-reader"
import { requireKnownVersion, requireSound } from "../backup/verify-archive"
import { leaveFolder, MARK_FILE, raiseMarkAboveAll } from "../database-mark"
import { requireFolders } from "../folder-owner"
import { MASTER_KEY, NEXT_MASTER_KEY, PREVIOUS_KEY, WrongMasterKey } from "../instance"
import { rotateMasterKey } from "../master-key"
import { type ChangedCopy, changeCopy, lostEventsAt } from "./copy-changes"
import { blobsDir, requireEmptyTarget, requireNoRows, requireRoom } from "./restore-target"

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
    const { onProgress, signal } = options
    const stop = signal && { signal }
    const onBytes = (done: number) =>
      onProgress?.({ step: "extracting", done, total: archive.size })
    await archive.extract({ folder: staging, blobs_dir: blobs }, { onBytes, ...stop })
    const database = join(staging, "database.db")
    const { secrets } = parts
    await requireSound(archive, { database, how: "quick", secrets, ...stop })
    const changed = await changeStaged(staging, parts, options)
    signal?.throwIfAborted()
    const placeRest = async () => {
      await keepKey(parts)
      await placeFiles(blobs, blobsDir(settings))
      await keepPapers(staging, settings.data_dir)
    }
    // Where the disk became full at the end, the file alone would lack what was changed in it.
    if (sizeOf(`${database}-wal`) > 0) throw new Error(`${database} could not be written whole.`)
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

/**
 * Each folder by itself, because all names together may not fit into memory. A file that is there has the same
 * content: its name is the hash of it.
 */
async function placeFiles(from: string, to: string): Promise<void> {
  if (!existsSync(from)) return // an archive may have no files
  const entries = await readdir(from, { withFileTypes: true })
  await mkdir(to, { recursive: true, mode: 0o700 })
  for (const entry of entries) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await placeFiles(source, target)
    else await rename(source, target)
  }
  await syncFolder(to)
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

/**
 * A copy from the midst of a rotation has secrets of two master keys. With the next one at hand the rotation
 * ends here: every secret is sealed with it. With the one before nothing is changed, and the instance goes
 * on with the rotation when it has the file of the next key. Writes both keys into the folder, which the
 * caller removes. Throws WrongMasterKey where the copy does not hold the key of before.
 */
async function endRotation(store: Store, secrets: Secrets, folder: string): Promise<void> {
  const { read } = store
  const next = await instanceValues.find(read, NEXT_MASTER_KEY)
  if (next !== secrets.key_id) return
  const sealed = await instanceValues.find(read, PREVIOUS_KEY)
  const used = await instanceValues.find(read, MASTER_KEY)
  if (sealed === undefined) throw new WrongMasterKey(`${used}`, next)
  const keep = (name: string, key: string) =>
    writeFileSync(join(folder, name), `${key}\n`, { mode: 0o600, flag: "wx" })
  keep("master.key", secrets.open(sealed, PREVIOUS_KEY))
  keep("master.key.next", secrets.keys.current())
  const both = openSecrets({ data_dir: folder, master_key: null, make: false })
  await rotateMasterKey({ store, secrets: both }, { new_key: null, end_links: false })
}

interface MoveOptions extends RestoreOptions {
  /** Puts the files in their places, when all rows are copied and nothing counts yet. */
  placeRest: () => Promise<void>
}

/**
 * Copies an SQLite file of our schema into the empty Postgres database of the settings, in one transaction: all rows,
 * or none.
 */
async function moveToPostgres(
  path: string,
  settings: Settings,
  { onProgress, signal, placeRest }: MoveOptions,
): Promise<void> {
  await (await openStore(settings, { patience_ms: BOOT_PATIENCE_MS })).close() // makes the tables
  let done = 0
  const onRows = (rows: number) => {
    signal?.throwIfAborted()
    done += rows
    onProgress?.({ step: "copying", done, total: null })
  }
  await withoutMigrations(
    settings.database_direct_url ?? settings.database_url ?? "",
    async (tx) => {
      await requireNoRows(tx)
      await copyFileToPostgres(path, tx, onRows)
      await placeLostEvents(tx)
      signal?.throwIfAborted()
      await placeRest() // nobody else is in this database, so its transaction may wait
    },
  )
}

/** The copied events got the position of this transaction: readers of lost ones go on behind it. */
async function placeLostEvents(tx: PostgresConnection) {
  const value = `SELECT value FROM instance_values WHERE name = '${LOST_EVENTS}'`
  const [kept] = await tx.unsafe(value)
  const [last] = await tx.unsafe("SELECT coalesce(max(position), 0) AS position FROM events")
  if (!kept) return
  const gaps = lostEventsAt(kept.value, Number(last?.position ?? 0))
  const set = `UPDATE instance_values SET value = $1 WHERE name = '${LOST_EVENTS}'`
  await tx.unsafe(set, [gaps])
}
