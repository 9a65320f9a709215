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

interface FileSweeper {
  /** Looks through one of the 256 parts of the folder. */
  next: () => Promise<void>
  /** Looks through the whole folder. */
  all: () => Promise<void>
}

/**
 * Removes the files of a folder that no row of the table names: the mail was deleted, its content is over,
 * or its transaction was undone after the file was written. A file that is younger than an hour stays,
 * because its row may be on the way.
 */
export function fileSweeper(store: Store, blobs: Blobs, table: FileTable): FileSweeper {
  let part = 0
  const next = async () => {
    const names = await blobs.list(part)
    part = (part + 1) % FOLDERS
    if (names.length === 0) return
    const marker = await instanceValues.find(store.read, BLOB_MARKER)
    for (let at = 0; at < names.length; at += AT_ONCE) {
      const some = names.slice(at, at + AT_ONCE)
      const named = await namedAmong(store.read, table, some)
      for (const name of some) if (!named.has(name) && name !== marker) await blobs.remove(name)
      await sleep(0)
    }
  }
  const all = async () => {
    for (let looked = 0; looked < FOLDERS; looked++) await next()
  }
  return { next, all }
}
