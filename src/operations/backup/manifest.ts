import { type Static, Type as t } from "@sinclair/typebox"
import { TypeCompiler } from "@sinclair/typebox/compiler"

/** The form of archive that this version writes, and the only one that it reads. */
const ARCHIVE_FORMAT = 1

const Count = t.Integer({ minimum: 0 })
const Hash = t.String({ pattern: "^[0-9a-f]{64}$" })
const FileCounts = t.Object({ count: Count, bytes: Count, missing: Count })

const BackupManifestSchema = t.Object({
  format: t.Literal(ARCHIVE_FORMAT),
  id: t.String(),
  /** Of the belfry that wrote it. */
  version: t.String(),
  created_at: t.String(),
  /** Where the rows come from. The database in the archive is an SQLite file in either case. */
  engine: t.Union([t.Literal("sqlite"), t.Literal("postgres")]),
  /** Of the SQLite file in the archive, oldest first. */
  migrations: t.Array(t.String()),
  /** Names the master key that opens the secrets in it, and tells nothing about that key. */
  master_key_id: t.String(),
  /** Of a copy from the midst of a rotation: some of its secrets are sealed with this key already. */
  next_master_key_id: t.Optional(t.String()),
  /** Rows by table. */
  rows: t.Record(t.String(), Count),
  /**
   * Files that rows name. A missing one was named by a row and not found, or its content had another hash.
   * Most often it was deleted while the backup was made. Their own hashes are their names.
   */
  blobs: FileCounts,
  inbound_blobs: FileCounts,
  /** Size and SHA-256 of every other entry before this one. */
  entries: t.Array(t.Object({ name: t.String(), size: Count, sha256: Hash })),
})

/** What an archive says about itself. */
export type BackupManifest = Static<typeof BackupManifestSchema>

/** How many files that rows name the archive lacks. */
export const missingIn = ({ blobs, inbound_blobs }: BackupManifest): number =>
  blobs.missing + inbound_blobs.missing

const manifestCheck = TypeCompiler.Compile(BackupManifestSchema)

/** The manifest in the text, or why there is none, as the end of "…, because". */
export function readManifest(text: string): BackupManifest | { unread: string } {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return { unread: "its manifest is not JSON" }
  }
  const format = (parsed as { format?: unknown } | null)?.format
  if (typeof format === "number" && format !== ARCHIVE_FORMAT) {
    return {
      unread: `its format is ${format}, and this version of belfry reads format ${ARCHIVE_FORMAT}`,
    }
  }
  return manifestCheck.Check(parsed) ? parsed : { unread: "its manifest is not complete" }
}
