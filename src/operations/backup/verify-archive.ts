import { mkdtemp, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { unlessAborted } from "../../core/abort"
import type { Settings } from "../../core/config"
import { keyIdOf, type Secrets } from "../../core/secrets"
import { openWorkers } from "../../core/workers"
import type { CopyFacts, InspectOrder } from "../../store/database-copy"
import { spaceFault } from "../free-space"
import { ArchiveError } from "./archive-cursor"
import { type BackupArchive, openArchive } from "./archive-reader"
import { SCRATCH } from "./backup-folder"
import { faultIn } from "./copy-facts"
import type { BackupManifest } from "./manifest"

interface VerifyOptions {
  /** Without them no secret is opened. */
  secrets?: Secrets | undefined
  /** The first that can be written to gets the database of the archive meanwhile; default: its folder. */
  scratch?: readonly string[]
  /** Of the server here: the check leaves its disk above `storage.min_free_mb`. Default: no disk is looked at. */
  settings?: Settings
  /** Hears how many bytes were read by now, of so many; then the database is checked. */
  onProgress?: (done: number, total: number) => void
  /** Ends it at once: what it unpacked is removed. */
  signal?: AbortSignal
}

/** What was found in an archive that can be restored. */
export interface VerifiedArchive {
  path: string
  /** Bytes. */
  size: number
  manifest: BackupManifest
  /** Whether the given master key opened a secret of the copy. */
  secrets_opened: boolean
}

/** The disk has no room for the database of the archive. Nothing was written. */
export class NoRoomForCheck extends Error {
  override readonly name = "NoRoomForCheck"
}

/**
 * Reads an archive as a restore would: every byte and hash, `integrity_check` of the database, the rows of
 * each table, the files that rows name, and one secret. Writes the database to a scratch file meanwhile.
 * Throws ArchiveError for the first fault, and NoRoomForCheck.
 */
export async function verifyArchive(
  path: string,
  { secrets, scratch = [dirname(path)], settings, onProgress, signal }: VerifyOptions = {},
): Promise<VerifiedArchive> {
  const archive = await openArchive(path)
  const folder = await scratchIn(scratch)
  const workers = openWorkers({ size: 1 })
  try {
    if (settings) await demandRoom(settings, dirname(folder), archive)
    const database = join(folder, "database.db")
    const { size, manifest } = archive
    const onBytes = (bytes: number) => onProgress?.(bytes, size)
    await archive.check({ database, onBytes, ...(signal && { signal }) })
    const order: InspectOrder = { path: database, how: "full", folders: noFolders(folder) }
    const task = { deadline_ms: 24 * 3_600_000, left: true }
    const inspected = workers.run<CopyFacts>("inspect-copy", order, task)
    const facts = await (signal ? unlessAborted(inspected, signal) : inspected)
    const fault = faultIn(facts, secrets) ?? differenceOf(facts, manifest)
    if (fault) throw new ArchiveError(path, "damaged", `cannot be used: its database ${fault}.`)
    return {
      path,
      size,
      manifest,
      secrets_opened: secrets !== undefined && hasTried(facts, secrets),
    }
  } finally {
    await workers.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Throws what the first folder threw, where none of them can be written to. */
async function scratchIn([first = "", ...others]: readonly string[]): Promise<string> {
  try {
    return await mkdtemp(join(first, SCRATCH))
  } catch (error) {
    for (const folder of others) {
      const made = await mkdtemp(join(folder, SCRATCH)).catch(() => undefined)
      if (made !== undefined) return made
    }
    throw error
  }
}

async function demandRoom(settings: Settings, dir: string, { manifest, size }: BackupArchive) {
  const [database] = manifest.entries
  const need = { dir, bytes: Math.min(size, database?.size ?? 0) }
  const fault = await spaceFault(settings, [need], "the check")
  if (fault)
    throw new NoRoomForCheck(`${fault} Free some space, or copy the backup to another disk.`)
}

/** From the midst of a rotation, all that is sealed may need the other key. */
const hasTried = ({ sealed, next_master_key_id }: CopyFacts, { key_id }: Secrets): boolean =>
  next_master_key_id === null
    ? sealed.length > 0
    : sealed.some(([, value]) => keyIdOf(value) === key_id)

/** The files are in the archive, where their hashes were compared. */
const noFolders = (folder: string) => ({
  blobs: join(folder, "none"),
  "inbound-blobs": join(folder, "none"),
})

function differenceOf(facts: CopyFacts, manifest: BackupManifest): string | undefined {
  const tables = new Set([...Object.keys(facts.rows), ...Object.keys(manifest.rows)])
  const other = [...tables].find((table) => facts.rows[table] !== manifest.rows[table])
  if (other !== undefined) {
    const [found, told] = [facts.rows[other] ?? 0, manifest.rows[other] ?? 0]
    return `has ${found} rows in ${other}, but its manifest tells of ${told}`
  }
  if (facts.migrations.join() !== manifest.migrations.join())
    return "has other migrations than its manifest tells"
  const { blobs, inbound_blobs } = manifest
  const isTold = (named: number, { count, missing }: typeof blobs) => named <= count + missing
  if (!("message_files" in facts.rows)) return undefined
  const is_whole =
    isTold(facts.named.blobs, blobs) && isTold(facts.named["inbound-blobs"], inbound_blobs)
  return is_whole ? undefined : "names files that are not in the archive"
}
