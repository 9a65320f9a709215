import { mkdtemp, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { Settings } from "../../core/config"
import { keyIdOf, type Secrets } from "../../core/secrets"
import { unlessAborted } from "../../core/time"
import { VERSION } from "../../core/version"
import { openWorkers } from "../../core/workers"
import type { CopyFacts, InspectOrder } from "../../store/database-copy"
import { embedded } from "../../store/migrations"
import { spaceFault } from "../free-space"
import { ArchiveError } from "./archive-cursor"
import { type BackupArchive, openArchive } from "./archive-reader"
import { SCRATCH } from "./backup-folder"
import { faultsIn, listed } from "./copy-facts"
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
interface VerifiedArchive {
  path: string
  /** Bytes. */
  size: number
  manifest: BackupManifest
  /** As they were counted, in all tables together. */
  rows: number
  tables: number
  /** Whether the given master key opened a secret of the copy. */
  secrets_opened: boolean
}

/** The disk has no room for the database of the archive. Nothing was written. */
class NoRoomForCheck extends Error {
  override readonly name = "NoRoomForCheck"
}

/**
 * Reads an archive as a restore would: every byte and hash, `integrity_check` of the database, its schema, the rows
 * of each table, the files that rows name, and one secret. Writes the database to a scratch file meanwhile.
 * Throws ArchiveError with all that differs, and NoRoomForCheck.
 */
export async function verifyArchive(
  path: string,
  { secrets, scratch = [dirname(path)], settings, onProgress, signal }: VerifyOptions = {},
): Promise<VerifiedArchive> {
  const archive = await openArchive(path)
  requireKnownVersion(archive)
  const folder = await scratchIn(scratch)
  try {
    if (settings) await requireRoom(settings, dirname(folder), archive)
    const database = join(folder, "database.db")
    const { size, manifest } = archive
    const onBytes = (bytes: number) => onProgress?.(bytes, size)
    const stop = signal && { signal }
    await archive.check({ database, onBytes, ...stop })
    const facts = await requireSound(archive, { database, how: "full", secrets, ...stop })
    return {
      path,
      size,
      manifest,
      rows: sumOf(facts.rows),
      tables: Object.keys(facts.rows).length,
      secrets_opened: secrets !== undefined && hasTried(facts, secrets),
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const RELEASE = /^\d+\.\d+\.\d+(-[\w.-]+)?$/

/** Throws ArchiveError for an archive of a later version, whose rows this one would misread. */
export function requireKnownVersion({ path, manifest }: BackupArchive): void {
  const { version, migrations } = manifest
  const known = new Set(embedded.sqlite.map(({ tag }) => tag))
  const foreign = migrations.find((tag) => !known.has(tag))
  const is_later = RELEASE.test(version) && Bun.semver.order(version, VERSION) > 0
  if (foreign === undefined && !is_later) return
  const has = foreign === undefined ? "" : ` It has the migration "${foreign}".`
  const said = `was made by belfry ${version}, but this is belfry ${VERSION}.${has} Use that version, or a later one.`
  throw new ArchiveError(path, "later_version", said)
}

interface CopyToCheck {
  /** The database of the archive, unpacked. */
  database: string
  how: InspectOrder["how"]
  secrets: Secrets | undefined
  signal?: AbortSignal
}

/** Throws ArchiveError unless the database is sound, and is the one that the manifest tells of. */
export async function requireSound(
  { path, manifest }: BackupArchive,
  { database, how, secrets, signal }: CopyToCheck,
): Promise<CopyFacts> {
  const workers = openWorkers({ size: 1 })
  try {
    const order: InspectOrder = { path: database, how, folders: noFolders(dirname(database)) }
    const task = { deadline_ms: 24 * 3_600_000, left: true }
    const inspected = workers.run<CopyFacts>("inspect-copy", order, task)
    const facts = await (signal ? unlessAborted(inspected, signal) : inspected)
    const unusable = faultsIn(facts, secrets)
    const others = facts.faults.length > 0 ? [] : differencesFrom(manifest, facts)
    const faults = [...new Set([...others, ...unusable])]
    if (faults.length === 0) return facts
    const said = `cannot be used: its database ${listed(faults)}.`
    throw new ArchiveError(path, "damaged", said, faults)
  } finally {
    await workers.close()
  }
}

/** Throws what the first folder threw, where none of them can be written to. */
async function scratchIn(folders: readonly string[]): Promise<string> {
  const failures: unknown[] = []
  for (const folder of folders) {
    try {
      return await mkdtemp(join(folder, SCRATCH))
    } catch (error) {
      failures.push(error)
    }
  }
  throw failures[0]
}

async function requireRoom(settings: Settings, dir: string, { manifest, size }: BackupArchive) {
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

const sumOf = (rows: Record<string, number>) =>
  Object.values(rows).reduce((sum, count) => sum + count, 0)

const sized = (rows: Record<string, number>) =>
  `${sumOf(rows)} rows in ${Object.keys(rows).length} tables`

function differencesFrom(manifest: BackupManifest, facts: CopyFacts): string[] {
  const { rows, migrations, master_key_id } = facts
  const told = manifest.rows
  const tables = [...new Set([...Object.keys(told), ...Object.keys(rows)])]
  const differences = tables.flatMap((table) => {
    const [found, wanted] = [rows[table], told[table]]
    if (found === wanted) return []
    if (found === undefined) return [`lacks the table ${table}`]
    if (wanted === undefined) return [`has the table ${table}, which its manifest does not name`]
    return [`has ${found} rows in ${table}, but its manifest says ${wanted}`]
  })
  if (differences.length > 1)
    differences.unshift(`has ${sized(rows)}, but its manifest says ${sized(told)}`)
  if (migrations.join() !== manifest.migrations.join())
    differences.push(
      `has other migrations than its manifest names: ${migrations.length}, not ${manifest.migrations.length}`,
    )
  if (master_key_id !== null && master_key_id !== manifest.master_key_id)
    differences.push(
      `belongs to the master key ${master_key_id}, but its manifest says ${manifest.master_key_id}`,
    )
  const { blobs, inbound_blobs } = manifest
  const isTold = (named: number, { count, missing }: typeof blobs) => named <= count + missing
  const is_whole =
    isTold(facts.named.blobs, blobs) && isTold(facts.named["inbound-blobs"], inbound_blobs)
  if ("message_files" in rows && !is_whole)
    differences.push("names files that are not in the archive")
  return differences
}
