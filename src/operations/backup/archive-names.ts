import { BLOB_FOLDERS, type BlobFolder } from "../../store/named-blobs"

/** Names of the entries, in the order in which they stand in an archive. */
export const ENTRY = {
  database: "database.db",
  config: "config.json",
  manifest: "manifest.json",
  sum: "SHA256",
} as const

/** Hexadecimal digits and a line break: the content of `SHA256`. */
export const SUM_BYTES = 65

const BLOB = /^(blobs|inbound-blobs)\/([0-9a-f]{64})$/

/** The folder and the hash that the name of a blob tells; undefined for every other name. */
export function blobOf(name: string): { folder: BlobFolder; sha256: string } | undefined {
  const [, folder, sha256] = BLOB.exec(name) ?? []
  return folder && sha256 ? { folder: folder as BlobFolder, sha256 } : undefined
}

const ORDER: readonly string[] = [
  ...[ENTRY.database, ...BLOB_FOLDERS, ENTRY.config, ENTRY.manifest, ENTRY.sum],
]

/**
 * Whether an entry of this name may follow one of the other name: the kinds come in one order, blobs rise
 * by their hashes, and nothing comes twice. False for every name that is not of ours.
 */
export function mayFollow(name: string, before: string | undefined): boolean {
  const place = placeOf(name)
  if (place < 0) return false
  if (before === undefined) return place === 0
  const last = placeOf(before)
  if (blobOf(name)) return place > last || (place === last && name > before)
  return name === ENTRY.config ? place > last : place === last + 1
}

/** Its kind in the order; -1 for another name, also for that of a folder alone. */
const placeOf = (name: string): number =>
  BLOB_FOLDERS.some((folder) => folder === name) ? -1 : ORDER.indexOf(blobOf(name)?.folder ?? name)
