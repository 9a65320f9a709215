import { readFile } from "node:fs/promises"
import type { Blobs } from "../core/blobs"
import { unpack, withEnd } from "../lib/compression"
import { fileIn } from "../messages/contents"
import type { Message } from "../messages/status-changes"
import { HASH_BYTES, type Recipe } from "./compose-task"

/** What is kept of a mail that left in place of its bytes: the rest is made again from its row and content. */
export interface KeptRecipe {
  recipe: Recipe
  /** The public address of this server that its links have. */
  address: string | undefined
  /** Where its recipient writes to unsubscribe. Undefined: an older version did not keep it. */
  mail_host?: string | null
}

/** A row with a recipe begins so. Older ones begin with a letter, a line end, a frame or a length of 8 bytes. */
const MARK = 1

export const rowOfRecipe = (
  { version, hash = new Uint8Array(HASH_BYTES), signatures }: Recipe,
  { address, mail_host }: Omit<KeptRecipe, "recipe">,
): Buffer =>
  Buffer.concat([
    Buffer.of(MARK, version),
    hash,
    Buffer.from(`${address ?? ""}\n${mail_host ?? ""}\n`),
    signatures,
  ])

/**
 * The recipe in a row; undefined where it holds the bytes. Of mail of a fan-out, older versions kept address and
 * signatures alone.
 */
export function recipeIn(row: Buffer, is_shared: boolean): KeptRecipe | undefined {
  const is_old = row[0] !== MARK
  if (is_old && !is_shared) return undefined
  const begin = is_old ? 0 : 2 + HASH_BYTES
  const end = row.indexOf("\n", begin)
  const address = row.toString("utf8", begin, end) || undefined
  if (is_old) return { address, recipe: { version: 1, signatures: copied(row, end + 1) } }
  const last = row.indexOf("\n", end + 1)
  const mail_host = row.toString("utf8", end + 1, last) || null
  const recipe = {
    version: row[1] ?? 0,
    hash: copied(row, 2, begin),
    signatures: copied(row, last + 1),
  }
  return { address, mail_host, recipe }
}

/** A thread is handed the whole memory behind a part. */
const copied = (row: Buffer, from: number, to?: number) => new Uint8Array(row.subarray(from, to))

/**
 * The bytes that were handed over, from what older versions kept of them: packed or not, in the row or in a file
 * that it names. Of a message whose bytes are a file they kept only what comes before them, and of a tracked one
 * what differs. Rejects with ENOENT where the file is gone.
 */
export async function keptBytes(
  { envelope }: Pick<Message, "envelope">,
  row: Uint8Array,
  blobs: Blobs,
): Promise<Uint8Array> {
  const sha256 = envelope?.submitted?.sha256
  const own = fileIn(row)
  const kept = own ? await readFile(blobs.path(own)) : row
  if (!sha256) return unpack(kept)
  const file = await readFile(blobs.path(sha256))
  return envelope.track ? withEnd(kept, file) : Buffer.concat([kept, file])
}
