import { mkdirSync } from "node:fs"
import { readdir, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { syncFolder } from "../../core/blobs"
import type { Settings } from "../../core/config"
import { codeOf } from "../../core/faults"
import { madeAt } from "../../core/ids"
import { isoFrom, millis, millisFrom } from "../../core/time"
import { FolderInUse, lockFolder } from "../../store/database-file"
import { ArchiveError } from "./archive-cursor"
import { openArchive } from "./archive-reader"
import { missingIn } from "./manifest"

/** A backup as lists show it. */
export interface Backup {
  id: string
  path: string
  /** Bytes. */
  size: number
  /** Made whole: its copy was checked, and its headers and manifest are readable. */
  verified: boolean
  /** Files that its rows name and that it lacks: they were gone or damaged. 0 where it cannot be read. */
  missing: number
  created_at: string
}

/** Another backup into the same folder is running, in this process or in another one. */
export class BackupRunning extends Error {
  override readonly name = "BackupRunning"

  constructor(dir: string) {
    super(`A backup into ${dir} is running already. Wait until it ends.`)
  }
}

type FolderSettings = Pick<Settings, "data_dir" | "backup.dir">

/** The folder of the backups. */
export const backupDir = (settings: FolderSettings): string =>
  settings["backup.dir"] ?? join(settings.data_dir, "backups")

/** What is not finished ends with it; the next backup removes what a crash left. */
const DRAFT = ".draft"
/** The folder may be one that has other files, too. */
const OWN_DRAFT = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.(db|tar)\.draft(-journal)?$/

/** The beginning of a folder for what `verify` unpacks. */
export const SCRATCH = "belfry-verify-"
const OWN_SCRATCH = /^belfry-verify-[0-9A-Za-z]{6}$/
/** It takes hours at most. */
const OLD_SCRATCH_MS = 24 * 3_600_000

const ARCHIVE = /^belfry-\d{8}T\d{6}Z-([0-9a-f-]{36})\.tar$/

/** `belfry-20261123T030000Z-<id>.tar`. */
export function archiveName(id: string, created_at: string): string {
  const time = created_at.replace(/\.\d+/, "").replaceAll(/[-:]/g, "")
  return `belfry-${time}-${id}.tar`
}

/** A name for something unfinished in the folder. */
export const draftName = (id: string, what: string): string => `${id}.${what}${DRAFT}`

/**
 * Makes the folder and takes it for one backup. Removes what an earlier one left unfinished. Returns how to
 * give it back; a process that dies gives it back, too. Throws BackupRunning.
 */
export async function takeFolder(dir: string): Promise<() => void> {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const release = lock(dir)
  try {
    for (const name of await readdir(dir)) {
      if (!(await isLeft(join(dir, name), name))) continue
      await rm(join(dir, name), { force: true, recursive: true })
    }
    return release
  } catch (error) {
    release()
    throw error
  }
}

async function isLeft(path: string, name: string): Promise<boolean> {
  if (OWN_DRAFT.test(name)) return true
  if (!OWN_SCRATCH.test(name)) return false
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && found.mtimeMs < millis() - OLD_SCRATCH_MS
}

function lock(dir: string): () => void {
  try {
    return lockFolder(join(dir, "backup"))
  } catch (error) {
    throw error instanceof FolderInUse ? new BackupRunning(dir) : error
  }
}

/** The backups in the folder, newest first. One that cannot be read is there, and is not `verified`. */
export async function listBackups(settings: FolderSettings): Promise<Backup[]> {
  const dir = backupDir(settings)
  const names = await readdir(dir).catch((error) => {
    if (error.code === "ENOENT") return []
    throw error
  })
  const found = await Promise.all(names.map((name) => backupNamed(dir, name)))
  return found
    .filter((backup) => backup !== undefined)
    .sort((one, other) => (one.created_at < other.created_at ? 1 : -1))
}

/** What was read of an archive, by its path. It holds for a file of the same size and time. */
const read = new Map<string, { state: string; backup: Backup }>()
const MOST_READ = 2000

async function backupNamed(dir: string, name: string): Promise<Backup | undefined> {
  const [, id = ""] = ARCHIVE.exec(name) ?? []
  const told_at = madeAt(id)
  if (told_at === undefined) return undefined
  const path = join(dir, name)
  const found = await stat(path).catch(() => undefined) // it may go at this moment
  if (!found?.isFile()) return undefined
  const state = `${found.size} ${found.mtimeMs} ${found.ino}`
  const known = read.get(path)
  if (known?.state === state) return known.backup
  const plain = { id, path, size: found.size }
  const unread = { ...plain, verified: false, missing: 0, created_at: isoFrom(told_at) }
  const manifest = await manifestAt(path)
  if (manifest === "no_access") return unread // the next look tries again
  const backup = manifest
    ? {
        ...plain,
        verified: manifest.id === id,
        missing: missingIn(manifest),
        created_at: manifest.created_at,
      }
    : unread
  if (read.size >= MOST_READ) read.clear()
  read.set(path, { state, backup })
  return backup
}

/** Undefined for what is no whole archive. One that cannot be opened must not hide the others. */
async function manifestAt(path: string) {
  try {
    return (await openArchive(path)).manifest
  } catch (error) {
    if (error instanceof ArchiveError) return undefined
    if (codeOf(error) !== undefined) return "no_access"
    throw error
  }
}

/**
 * Removes the oldest backups beyond `keep`, but never the one that was `made` just now: the clock may have
 * been set back. Nor the newest one that lacks no file: later ones may be of a folder that was not mounted. Those that are not `verified` do not count, and go when they are older than every one that
 * stays. Returns how many were removed.
 */
export async function removeOld(
  settings: FolderSettings,
  { keep, made }: { keep: number; made: string },
): Promise<number> {
  const all = await listBackups(settings)
  const last_kept = all.filter(({ verified }) => verified)[keep - 1]
  if (!last_kept) return 0
  const oldest = millisFrom(last_kept.created_at)
  const whole = all.find(({ verified, missing }) => verified && missing === 0)
  const stays = new Set([made, whole?.id])
  const old = all.filter(({ id, created_at }) => millisFrom(created_at) < oldest && !stays.has(id))
  for (const { path } of old) {
    read.delete(path)
    await rm(path, { force: true })
  }
  if (old.length > 0) await syncFolder(backupDir(settings))
  return old.length
}
