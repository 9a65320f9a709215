import { writeFileSync } from "node:fs"
import type { Context } from "./context"
import { exits, Failure, usage } from "./errors"
import type { OptionWords, PlainOptions } from "./field-flags"
import { type Columns, wide } from "./table"

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

const SAVE_AS: OptionWords = ["--save-as <file>", "file to write the attachment to; `-` is stdout"]

/** Of a command that writes an attachment into a file or, without a path, into a pipe. */
export const saved = {
  options: [SAVE_AS],
  refuse({ saveAs }: PlainOptions, _: unknown, { terminal }: Context) {
    if (saveAs !== undefined || !terminal.out) return undefined
    throw usage("an attachment is not written to a terminal", "name a file with --save-as")
  },
  print(context: Context, bytes: Uint8Array, { saveAs }: PlainOptions, words: readonly string[]) {
    const path = typeof saveAs === "string" ? saveAs : "-"
    return saveFile(context, { id: words.at(-1) ?? "", bytes, path })
  },
}

type ListedFile = {
  id: string
  filename: string | null
  content_type: string
  size: number
}

const fileColumns: Columns<ListedFile> = {
  ID: "id",
  NAME: wide(({ filename }) => filename ?? "unnamed"),
  TYPE: "content_type",
  SIZE: "size",
}

/** Of a command that lists the attachments of a mail. */
export const listed = (noun: "inbound" | "mailbox") => ({
  options: [SAVE_AS],
  refuse: ({ saveAs }: PlainOptions) =>
    saveAs === undefined ? undefined : "name the attachment to save: give its number",
  async print(
    { output }: Context,
    { data: { attachments } }: { data: { attachments: ListedFile[] } },
    _: unknown,
    [id]: readonly string[],
  ) {
    const [first] = attachments
    await output.list(attachments, fileColumns)
    if (first) await output.next(`belfry ${noun} attachments ${id} ${first.id} --save-as file`)
  },
})
