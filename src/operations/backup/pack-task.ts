import { type BlobFolder, blobsNamedIn } from "../../store/named-blobs"
import { type ArchiveContent, writeArchive } from "./archive-writer"

export interface PackOrder extends Omit<ArchiveContent, "blobs" | "onMissing"> {
  /** The archive; it must not exist yet. */
  to: string
  /** Where the files are that rows name. */
  folders: Record<BlobFolder, string>
}

/** Hashes of files that rows of the copy name, and that the archive lacks: the first ones of each folder. */
export type MissingFiles = Record<BlobFolder, string[]>

/** Of a folder that is gone altogether, all would be too many. */
const MOST_TOLD = 200

/** In a thread: writes the archive of a copy, with the files that its rows name. Answers which it lacks. */
export async function packArchive({ to, folders, ...content }: PackOrder): Promise<MissingFiles> {
  const missing: MissingFiles = { blobs: [], "inbound-blobs": [] }
  const blobs = blobsNamedIn(content.database, folders)
  await writeArchive(to, {
    ...content,
    blobs,
    onMissing: ({ folder, sha256 }) => {
      if (missing[folder].length < MOST_TOLD) missing[folder].push(sha256)
    },
  })
  return missing
}
