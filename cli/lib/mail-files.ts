import { writeFileSync } from "node:fs"
import type { Context } from "./context"
import { exits, Failure, usage } from "./errors"
import { type Columns, wide } from "./table"
import { cleanText } from "./terminal"

/** The bytes of a mail as they are; on a terminal without what could move the cursor. */
export async function printRaw({ output, terminal }: Context, bytes: Uint8Array): Promise<void> {
  await output.raw(terminal.out ? cleanText(new TextDecoder().decode(bytes)) : bytes)
}

interface SavedFile {
  id: string
  bytes: Uint8Array
  /** `-` is stdout. */
  path: string
}

/** Writes one file of a mail. Throws Failure where it cannot be written. */
export async function saveFile({ output, paint }: Context, { id, bytes, path }: SavedFile) {
  if (path === "-") return await output.raw(bytes)
  try {
    writeFileSync(path, bytes)
  } catch (error) {
    throw new Failure(exits.storage, "storage", `${path} cannot be written: ${String(error)}`)
  }
  const record = { id, path, size: bytes.length }
  await output.record(record, () => `${paint.green("✓")} ${path} (${bytes.length} bytes)`)
}

/** Writes an attachment into a file or, without a path, into a pipe. Throws exit 2 for a terminal. */
export async function saveAttachment(
  context: Context,
  { id, path }: { id: string; path: string | undefined },
  ask: () => Promise<unknown>,
): Promise<void> {
  if (path === undefined && context.terminal.out) {
    throw usage("an attachment is not written to a terminal", "name a file with --save-as")
  }
  await saveFile(context, { id, bytes: (await ask()) as Uint8Array, path: path ?? "-" })
}

interface ListedFile {
  id: string
  filename: string | null
  content_type: string
  size: number
}

export const fileColumns: Columns<ListedFile> = {
  ID: "id",
  NAME: wide(({ filename }) => filename ?? "unnamed"),
  TYPE: "content_type",
  SIZE: "size",
}
