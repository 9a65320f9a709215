import { type BlobFolder, blobsNamedIn } from "../../store/named-blobs"
import { type ArchiveContent, writeArchive } from "./archive-writer"

export interface PackOrder extends Omit<ArchiveContent, "blobs"> {
  /** The archive; it must not exist yet. */
  to: string
  /** Where the files are that rows name. */
  folders: Record<BlobFolder, string>
}

/** In a thread: writes the archive of a copy, with the files that its rows name. */
export async function packArchive({ to, folders, ...content }: PackOrder): Promise<void> {
  await writeArchive(to, { ...content, blobs: blobsNamedIn(content.database, folders) })
}
