import { open, rename, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import type { SQL } from "bun"
import { syncFolder } from "../../core/blobs"
import { type Settings, withoutSecrets } from "../../core/config"
import { codeOf, faultOf } from "../../core/faults"
import { newId } from "../../core/ids"
import { log } from "../../core/log"
import type { Secrets } from "../../core/secrets"
import { monotonic, now, sleep } from "../../core/time"
import { VERSION } from "../../core/version"
import { openWorkers, type Workers } from "../../core/workers"
import type { CopyFacts, CopyOrder, InspectOrder } from "../../store/database-copy"
import type { BlobFolder } from "../../store/named-blobs"
import { sqlitePath } from "../../store/open"
import { onConnection } from "../../store/postgres-pool"
import { claimBackups } from "../folder-owner"
import { spaceFault } from "../free-space"
import { openArchive } from "./archive-reader"
import {
  archiveName,
  type Backup,
  backupDir,
  draftName,
  listBackups,
  removeOld,
  takeFolder,
} from "./backup-folder"
import { faultsIn, listed } from "./copy-facts"
import { missingIn } from "./manifest"
import type { MissingFiles, PackOrder } from "./pack-task"

/** What a backup is made of. It needs no open store, and works beside a server or without one. */
interface BackupParts {
  settings: Settings
  secrets: Secrets
}

export type Backups = ReturnType<typeof openBackups>

/** The backups of one instance, as routes and jobs use them: those in the folder of this node. */
export const openBackups = (parts: BackupParts) => ({
  data_dir: parts.settings.data_dir,
  dir: backupDir(parts.settings),
  list: () => listBackups(parts.settings),
  create: (options: BackupOptions) => createBackup(parts, options),
})

export interface BackupProgress {
  step: "copying" | "checking" | "packing"
  /** Bytes that were written by now, of about so many. */
  done: number
  total: number
}

interface BackupOptions {
  /** Called twice a second, the next time after the one before. */
  onProgress?: (progress: BackupProgress) => unknown
  /** Hears which files the backup lacks, where it lacks some, before it counts. */
  onMissing?: (files: MissingFiles) => void
  /** Ends the backup after the step that runs; nothing of it stays. */
  signal?: AbortSignal
  /** Those that are kept, this one among them; default: `backup.keep`. */
  keep?: number
}

/** The copy or the disk is not as it has to be. The message says what was found, and what to do next. */
export class BackupFailed extends Error {
  override readonly name = "BackupFailed"
}

/** A thread inside SQLite cannot be ended without leaving its locks behind: it is let end. */
const TASK = { deadline_ms: 24 * 3_600_000, left: true }
const PROGRESS_MS = 500
/** Missing files that the log names. */
const LOGGED_FILES = 10
/** Requests go first. */
const NICENESS = 10

/**
 * Makes one backup in the folder of the settings: a copy of the database as it is at one moment, checked,
 * and packed with the files that its rows name. It counts only when everything is on disk under its name;
 * a crash at any step leaves the others as they are. Then the oldest ones go; where they cannot, the log
 * warns. Throws BackupRunning, FolderOfAnother, BackupFailed, and what the disk or the database says.
 */
export async function createBackup(
  parts: BackupParts,
  options: BackupOptions = {},
): Promise<Backup> {
  const dir = backupDir(parts.settings)
  const release = await takeFolder(dir)
  const workers = openWorkers({ size: 1, niceness: NICENESS })
  const begun = monotonic()
  const id = newId()
  const draft = new Draft({ ...parts, dir, id, workers, options })
  try {
    claimBackups(parts.settings)
    const backup = await draft.make()
    const took_ms = Math.round(monotonic() - begun)
    log.info("backup made", { id, path: backup.path, size: backup.size, took_ms })
    const keep = options.keep ?? parts.settings["backup.keep"]
    await removeOld(parts.settings, { keep, made: id }).catch(warned("old backups stay"))
    return backup
  } finally {
    await workers.close()
    await draft.remove().catch(warned("the draft of a backup stays"))
    release()
  }
}

/** The backup counts all the same, and the next one tries again. */
const warned = (message: string) => (error: unknown) => log.warn(message, { error })

interface DraftOptions extends BackupParts {
  dir: string
  id: string
  workers: Workers
  options: BackupOptions
}

/** The files of a backup that is not finished. */
class Draft {
  readonly #options: DraftOptions
  readonly #database: string
  readonly #archive: string
  #step: BackupProgress["step"] = "copying"
  #expected = 0

  constructor(options: DraftOptions) {
    const { dir, id } = options
    this.#options = options
    this.#database = join(dir, draftName(id, "db"))
    this.#archive = join(dir, draftName(id, "tar"))
  }

  async make(): Promise<Backup> {
    const { dir, id } = this.#options
    const created_at = now()
    let lacked: MissingFiles
    const beside = [
      repeatedly(PROGRESS_MS, () => this.#report()),
      writeSteadily([this.#database, this.#archive]),
    ]
    try {
      await this.#copy()
      const facts = await this.#check()
      lacked = await this.#pack(facts, created_at)
    } finally {
      await Promise.all(beside.map((end) => end()))
    }
    const path = join(dir, archiveName(id, created_at))
    const { size, manifest } = await openArchive(this.#archive)
    const missing = missingIn(manifest)
    const { onProgress, onMissing } = this.#options.options
    if (missing > 0) {
      const files = Object.values(lacked).flat().slice(0, LOGGED_FILES)
      log.warn("the backup lacks files that are missing or damaged", { id, missing, files })
      onMissing?.(lacked)
    }
    await rename(this.#archive, path)
    await syncFolder(dir)
    await onProgress?.({ step: this.#step, done: this.#expected, total: this.#expected })
    return { id, path, size, verified: true, missing, created_at }
  }

  async remove(): Promise<void> {
    for (const path of [this.#database, `${this.#database}-journal`, this.#archive]) {
      await rm(path, { force: true })
    }
  }

  async #copy() {
    const { settings, dir } = this.#options
    const { task, from, bytes } = await sourceOf(settings)
    this.#expected = 2 * bytes
    await requireSpace(dir, 2 * bytes, settings)
    try {
      await this.#run<CopyOrder>(task, { from, to: this.#database })
    } catch (error) {
      if (!(error instanceof Error) || error.name !== "SQLiteError") throw error
      const message = `The database could not be copied into ${dir}: ${error.message}. ${LOOK}`
      throw new BackupFailed(message, { cause: error })
    }
  }

  async #check(): Promise<CopyFacts> {
    this.#step = "checking"
    const { settings, secrets, dir } = this.#options
    const order: InspectOrder = {
      path: this.#database,
      how: "quick",
      folders: blobFolders(settings),
    }
    const facts = await this.#run<InspectOrder, CopyFacts>("inspect-copy", order)
    const faults = faultsIn(facts, secrets)
    if (faults.length > 0) throw new BackupFailed(`The copy of the database ${listed(faults)}.`)
    const bytes = await sizeOf(this.#database)
    this.#expected = 2 * bytes + facts.blob_bytes
    await requireSpace(dir, bytes + facts.blob_bytes, settings)
    return facts
  }

  async #pack(facts: CopyFacts, created_at: string) {
    this.#step = "packing"
    const { settings, secrets, id } = this.#options
    const manifest = {
      id,
      version: VERSION,
      created_at,
      engine: settings.database_url ? ("postgres" as const) : ("sqlite" as const),
      migrations: facts.migrations,
      master_key_id: facts.master_key_id ?? secrets.key_id,
      ...(facts.next_master_key_id !== null && { next_master_key_id: facts.next_master_key_id }),
      rows: facts.rows,
    }
    return this.#run<PackOrder, MissingFiles>("pack-archive", {
      to: this.#archive,
      database: this.#database,
      folders: blobFolders(settings),
      config: withoutSecrets(settings),
      manifest,
    })
  }

  async #run<Order, Result = void>(task: string, order: Order): Promise<Result> {
    const { workers, options } = this.#options
    options.signal?.throwIfAborted()
    return workers.run<Result>(task, order, TASK)
  }

  /** What is on disk by now tells how far it is: the thread that writes says nothing before its end. */
  async #report() {
    if (this.#expected === 0) return // it is not known yet how large it is
    const { onProgress } = this.#options.options
    const done = (await sizeOf(this.#database)) + (await sizeOf(this.#archive))
    const total = Math.max(this.#expected, done)
    await onProgress?.({ step: this.#step, done, total })
  }
}

const LOOK = "Look at that disk, and run `belfry db check`."

/** Where the rows are, about how large they are, and the task that copies them. */
async function sourceOf(settings: Settings) {
  const bytes = await databaseBytes(settings)
  const url = settings.database_direct_url ?? settings.database_url
  if (url) return { task: "copy-postgres", from: url, bytes }
  return { task: "copy-sqlite", from: sqlitePath(settings), bytes }
}

/** About how large a copy of the database is. */
export async function databaseBytes(settings: Settings): Promise<number> {
  const url = settings.database_direct_url ?? settings.database_url
  if (url) return postgresBytes(url)
  const path = sqlitePath(settings)
  return (await sizeOf(path)) + (await sizeOf(`${path}-wal`))
}

/** 0 where the server does not tell. */
async function postgresBytes(url: string): Promise<number> {
  try {
    const size = (pool: SQL) => pool`SELECT pg_database_size(current_database()) AS bytes`
    const [row] = await onConnection(url, size)
    return Number(row?.bytes ?? 0)
  } catch (error) {
    if (faultOf(error) === "away") throw error
    return 0
  }
}

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  )

/** Where a server keeps the files of messages, and those of received mail. */
function blobFolders(settings: Settings): Record<BlobFolder, string> {
  const blobs = settings["storage.blobs.dir"] ?? join(settings.data_dir, "blobs")
  return { blobs, "inbound-blobs": join(blobs, "inbound") }
}

/** Refuses before the disk is full: a server on it goes on to the floor of its own. */
async function requireSpace(dir: string, bytes: number, settings: Settings): Promise<void> {
  const fault = await spaceFault(settings, [{ dir, bytes }], "a backup")
  if (fault)
    throw new BackupFailed(
      `${fault} Free some space, keep fewer backups (backup.keep), or set backup.dir to a folder on another disk.`,
    )
}

const PAUSE_MS = 50

/**
 * Brings to disk, bit by bit, what another thread writes to these files. Otherwise all of it would go there
 * at once, and each commit of the server would wait for it. Returns how to stop. That throws what the disk said
 * meanwhile, because a later sync of the file may not hear of it again.
 */
export const writeSteadily = (paths: readonly string[]): (() => Promise<void>) =>
  repeatedly(PAUSE_MS, async () => {
    for (const path of paths) await sync(path)
  })

/** Does it again and again. The returned function ends that after the time that runs, and throws what one threw. */
function repeatedly(pause_ms: number, act: () => Promise<void>): () => Promise<void> {
  const end = new AbortController()
  const run = async () => {
    while (!end.signal.aborted) {
      await act()
      await sleep(pause_ms, end.signal)
    }
  }
  const running = run()
  running.catch(() => {}) // the caller that ends it hears of it
  return () => {
    end.abort()
    return running
  }
}

/** A file that is not there yet, or no more, has nothing to bring to disk. */
async function sync(path: string): Promise<void> {
  const file = await open(path, "r+").catch((error) => {
    if (codeOf(error) !== "ENOENT") throw error
  })
  try {
    await file?.datasync()
  } finally {
    await file?.close()
  }
}
