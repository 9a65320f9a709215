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
