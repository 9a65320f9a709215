import { inArray } from "drizzle-orm"
import { type Blobs, FOLDERS } from "../core/blobs"
import { sleep } from "../core/time"
import type { inboundFiles } from "../inbound/tables"
import type { messageFiles } from "../messages/tables"
import * as instanceValues from "../store/instance-values"
import type { Reader, Store } from "../store/store"
import { BLOB_MARKER } from "./instance"

/** Names that are looked up in one go. */
const AT_ONCE = 200

/** A table whose rows name the files of a folder. */
export type FileTable = typeof messageFiles | typeof inboundFiles

/** Those of the hashes that rows of the table name. */
export async function namedAmong(db: Reader, table: FileTable, hashes: string[]) {
  const { sha256 } = table
  const rows = await db.selectDistinct({ sha256 }).from(table).where(inArray(sha256, hashes))
  return new Set(rows.map((row) => row.sha256))
}

/** Those of the hashes that no row of the table names. */
export async function* unnamedAmong(
  db: Reader,
  table: FileTable,
  hashes: string[],
): AsyncGenerator<string> {
  for (let at = 0; at < hashes.length; at += AT_ONCE) {
    const some = hashes.slice(at, at + AT_ONCE)
    const named = await namedAmong(db, table, some)
    for (const sha256 of some) if (!named.has(sha256)) yield sha256
    await sleep(0)
  }
}

/** The files in one of the `FOLDERS` parts of a folder that no row of the table names, young ones too. */
export async function* unnamedIn(
  db: Reader,
  { blobs, table }: { blobs: Blobs; table: FileTable },
  part: number,
): AsyncGenerator<string> {
  const files = await blobs.list(part)
  if (files.length === 0) return
  const marker = await instanceValues.find(db, BLOB_MARKER)
  const ours = files.filter((file) => /^[0-9a-f]{64}$/.test(file) && file !== marker)
  yield* unnamedAmong(db, table, ours)
}

/**
 * Removes the files of a folder that no row of the table names: the mail was deleted, its content is over,
 * or its transaction was undone after the file was written. A file that is younger than an hour stays,
 * because its row may be on the way.
 */
export function fileSweeper({ read }: Store, blobs: Blobs, table: FileTable) {
  let part = 0
  /** Looks through one of the 256 parts of the folder. */
  const next = async () => {
    const looked_at = part
    part = (part + 1) % FOLDERS
    for await (const file of unnamedIn(read, { blobs, table }, looked_at)) await blobs.remove(file)
  }
  const all = async () => {
    for (let looked = 0; looked < FOLDERS; looked++) await next()
  }
  return { next, all }
}
