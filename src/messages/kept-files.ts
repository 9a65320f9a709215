import type { Message } from "./facts"
import type { Envelope } from "./tables"

/** Bytes that a row of a message keeps: themselves, or where many are, the file that holds them. */
export type Kept = Buffer | { file: string }

/** No mail begins so, and no frame of Zstandard. */
const MARK = "file:"
const FORM = /^file:([0-9a-f]{64})$/

/** What stands in the row. */
export const rowOf = (kept: Kept): Buffer =>
  "file" in kept ? Buffer.from(`${MARK}${kept.file}`) : kept

/** The name of the file where the row holds no more than that. */
export const fileIn = (row: Uint8Array): string | undefined =>
  row.length === MARK.length + 64 ? FORM.exec(Buffer.from(row).toString("latin1"))?.[1] : undefined

const NO_FILES: Pick<Envelope, "submitted" | "attachments"> = { attachments: [] }

/** Rows for the files of a message and of its content. Attachments of submitted bytes lie within those bytes. */
export function filesOf({ id: message_id, envelope }: Message, content: unknown) {
  const { submitted, attachments } = envelope ?? NO_FILES
  const of_content = fileOf(content)
  if (!submitted && !of_content && attachments.length === 0) return []
  const names = submitted ? [submitted.sha256] : attachments.map(({ sha256 }) => sha256)
  if (of_content) names.push(of_content)
  return [...new Set(names)].flatMap((sha256) => (sha256 ? [{ message_id, sha256 }] : []))
}

/** The file that a content names in its place. */
const fileOf = (content: unknown): string | undefined =>
  typeof content === "object" && content !== null && "file" in content
    ? (content as { file: string }).file
    : undefined
