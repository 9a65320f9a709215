/** Everything in a tar file is padded to blocks of this many bytes (POSIX.1-1988, ustar). */
export const BLOCK_BYTES = 512

/** Two empty blocks end the file. */
export const TAR_END = Buffer.alloc(2 * BLOCK_BYTES)

/** What eleven octal digits hold. A larger file has its size in a pax header (POSIX.1-2001). */
const MOST_OCTAL = 8 ** 11 - 1
const MOST_NAME_BYTES = 100

const FILE = "0"
const EXTENDED = "x"

export interface TarEntry {
  name: string
  /** Bytes. */
  size: number
  /** Whole seconds since 1970. */
  modified: number
  /** Permissions; default 0600. */
  mode?: number
}

const OWN_FILE = 0o600

/** The bytes between the end of an entry and the next block. */
export const paddingOf = (size: number): number => -size & (BLOCK_BYTES - 1)

/**
 * The header of a regular file that belongs to root: one block, or three with a pax header
 * before it. There is exactly one spelling, so a reader can compare. Throws RangeError for a name of more
 * than 100 bytes.
 */
export function tarHeader({ name, size, modified, mode = OWN_FILE }: TarEntry): Buffer {
  if (size <= MOST_OCTAL) return headerBlock({ name, size, modified, mode }, FILE)
  const record = paxRecord("size", String(size))
  const extended = { name: `PaxHeaders/${name}`, size: record.length, modified }
  const padded = Buffer.concat([record, Buffer.alloc(paddingOf(record.length))])
  const plain = headerBlock({ name, size: 0, modified, mode }, FILE)
  return Buffer.concat([headerBlock(extended, EXTENDED), padded, plain])
}

function headerBlock(entry: TarEntry, type: string): Buffer {
  const { name, size, modified, mode = OWN_FILE } = entry
  if (Buffer.byteLength(name) > MOST_NAME_BYTES) throw new RangeError(`"${name}" is too long`)
  const block = Buffer.alloc(BLOCK_BYTES)
  block.write(name, 0)
  block.write(`${octal(mode, 7)}\0`, 100)
  block.write("0000000\0", 108)
  block.write("0000000\0", 116)
  block.write(`${octal(size, 11)}\0`, 124)
  block.write(`${octal(modified, 11)}\0`, 136)
  block.write("        ", 148) // the checksum counts itself as spaces
  block.write(type, 156)
  block.write("ustar\u000000", 257)
  block.write("0000000\0", 329)
  block.write("0000000\0", 337)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${octal(sum, 6)}\0 `, 148)
  return block
}

const octal = (number: number, digits: number) => number.toString(8).padStart(digits, "0")

/** `<length> <keyword>=<value>\n`, where the length counts its own digits. */
function paxRecord(keyword: string, value: string): Buffer {
  const rest = ` ${keyword}=${value}\n`
  let length = rest.length
  while (length !== rest.length + String(length).length)
    length = rest.length + String(length).length
  return Buffer.from(`${length}${rest}`)
}

/**
 * The entry that a header describes: of the first block, or of the three blocks where the first one is a
 * pax header. `blocks_needed` are wanted before it can be told. `undefined` for every header that
 * `tarHeader` would not have written so: links, folders, another mode than 0600, a wrong checksum.
 */
export function readTarHeader(header: Buffer): TarEntry | { blocks_needed: number } | undefined {
  const type = header.toString("latin1", 156, 157)
  if (type === EXTENDED && header.length < 3 * BLOCK_BYTES) return { blocks_needed: 3 }
  const last = type === EXTENDED ? header.subarray(2 * BLOCK_BYTES) : header
  const record = header.toString("latin1", BLOCK_BYTES, 2 * BLOCK_BYTES)
  const size =
    type === EXTENDED ? numberIn(/^\d+ size=(\d{1,16})\n/.exec(record)?.[1], 10) : Number.NaN
  const entry = {
    name: last.toString("utf8", 0, MOST_NAME_BYTES).replace(/\0.*$/s, ""),
    size: type === EXTENDED ? size : numberIn(last.toString("latin1", 124, 135), 8),
    modified: numberIn(last.toString("latin1", 136, 147), 8),
  }
  const is_known = Number.isSafeInteger(entry.size) && Number.isSafeInteger(entry.modified)
  return is_known && tarHeader(entry).equals(header) ? entry : undefined
}

const numberIn = (digits = "", base: number) =>
  /^\d+$/.test(digits) ? Number.parseInt(digits, base) : Number.NaN
