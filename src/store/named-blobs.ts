import { Database } from "bun:sqlite"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { tablesIn } from "./shared-tables"

/** Files that rows name: of messages, and of received mail. In archives these are names of folders. */
export const BLOB_FOLDERS = ["blobs", "inbound-blobs"] as const

export type BlobFolder = (typeof BLOB_FOLDERS)[number]

/** A file that a row names, and where it is, or should be. */
export interface NamedBlob {
  folder: BlobFolder
  sha256: string
  path: string
}

/**
 * The files that rows of an SQLite file name: by folder, then by hash, each once. The connection ends with
 * the walk.
 */
export function* blobsNamedIn(
  path: string,
  dirs: Record<BlobFolder, string>,
): Generator<NamedBlob> {
  using database = new Database(path, { readonly: true, strict: true })
  const tables = new Set(tablesIn(database))
  for (const folder of BLOB_FOLDERS) {
    const { table, hashes } = NAMING[folder]
    const named = tables.has(table) ? hashesIn(database, hashes) : filesIn(dirs[folder])
    for (const sha256 of named) {
      yield { folder, sha256, path: join(dirs[folder], sha256.slice(0, 2), sha256) }
    }
  }
}

/** What names the files of a folder, and the table that has to be there for it. */
const NAMING: Record<BlobFolder, { table: string; hashes: string }> = {
  blobs: {
    table: "message_files",
    hashes: `SELECT sha256 FROM message_files
      UNION SELECT value FROM instance_values WHERE name = 'blob_marker' ORDER BY 1`,
  },
  "inbound-blobs": {
    table: "inbound_files",
    hashes: "SELECT DISTINCT sha256 FROM inbound_files ORDER BY 1",
  },
}

function* hashesIn(database: Database, sql: string): Generator<string> {
  for (const row of database.query<{ sha256: string }, []>(sql).iterate()) yield row.sha256
}

/** Of a schema from before that table: every file there is. */
function* filesIn(dir: string): Generator<string> {
  if (!existsSync(dir)) return
  const folders = readdirSync(dir).filter((name) => /^[0-9a-f]{2}$/.test(name))
  for (const name of folders.sort()) yield* readdirSync(join(dir, name)).sort()
}
