/** Of a SHA-256: enough to tell apart what was never meant to be alike. */
export const HASH_BYTES = 16

/** All that it takes to make the bytes of a mail again from what it was composed of. */
export interface Recipe {
  /** Of the composer. */
  version: number
  /** Of the whole bytes. Older versions of Belfry did not keep it. */
  hash?: Uint8Array
  /** The fields of the signatures, which come first. */
  signatures: Uint8Array
}

/**
 * The bytes are not those that left before, or nobody here can compose them: what they were made of has
 * changed. Nothing else may leave in their place. The name survives the way out of a thread.
 */
export class ChangedBytes extends Error {
  override readonly name = "ChangedBytes"
}

/** What is kept of a mail that left in place of its bytes: the rest is made again from its row and content. */
export interface KeptRecipe {
  recipe: Recipe
  /** The public address of this server that its links have. */
  address: string | undefined
  /** What the settings of its time add to it. Undefined: an older version did not keep that. */
  settings?: {
    /** Where its recipient writes to unsubscribe. */
    mail_host: string | null
    /** The name of the master key of its links and marks. */
    key_id: string
  }
}

/** A row with a recipe begins so. Older ones begin with a letter, a line end, a frame or a length of 8 bytes. */
const MARK = 1

/** As it is kept in the row. */
export const rowOfRecipe = (
  { version, hash, signatures }: Required<Recipe>,
  { address, settings: { mail_host, key_id } }: Required<Omit<KeptRecipe, "recipe">>,
): Buffer =>
  Buffer.concat([
    Buffer.of(MARK, version),
    hash,
    Buffer.from(`${address ?? ""}\n${mail_host ?? ""}\n${key_id}\n`),
    signatures,
  ])

/**
 * The recipe in a row; undefined where it holds the bytes. Of mail of a fan-out, older versions kept address and
 * signatures alone.
 */
export function recipeIn(row: Buffer, is_shared: boolean): KeptRecipe | undefined {
  const is_old = row[0] !== MARK
  if (is_old && !is_shared) return undefined
  let at = is_old ? 0 : 2 + HASH_BYTES
  const hash = copied(row, 2, at)
  const line = () => {
    const [from, end] = [at, row.indexOf("\n", at)]
    at = end + 1
    return row.toString("utf8", from, end)
  }
  const address = line() || undefined
  if (is_old) return { address, recipe: { version: 1, signatures: copied(row, at) } }
  const settings = { mail_host: line() || null, key_id: line() }
  return { address, settings, recipe: { version: row[1] ?? 0, hash, signatures: copied(row, at) } }
}

/** A thread is handed the whole memory behind a part. */
const copied = (row: Buffer, from: number, to?: number) => new Uint8Array(row.subarray(from, to))
