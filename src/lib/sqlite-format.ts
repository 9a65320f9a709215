/** What a page or record of an SQLite file holds (file format, sections 1.6 and 2.1). */

export type SqliteValue = null | number | bigint | string | Uint8Array

type PageKind = "table_leaf" | "table_inner" | "index_leaf" | "index_inner"

const KINDS: Record<number, PageKind> = {
  2: "index_inner",
  5: "table_inner",
  10: "index_leaf",
  13: "table_leaf",
}

/** A page of a b-tree whose header and cell pointers are plausible. */
export interface BtreePage {
  kind: PageKind
  /** Where its cells begin. */
  cells: number[]
  /** The pages below it; none of a leaf. */
  children: number[]
}

export interface SqliteCell {
  /** Undefined in an index. */
  rowid: number | undefined
  payload_bytes: number
  /** What the page itself has of the payload. */
  local: Uint8Array
  /** The page with the rest; 0 where there is none. */
  overflow: number
}

const FILE_HEADER_BYTES = 100

/** Undefined for bytes that are no page of a b-tree. `is_first`: it stands behind the header of the file. */
export function btreePage(page: Buffer, usable: number, is_first = false): BtreePage | undefined {
  const at = is_first ? FILE_HEADER_BYTES : 0
  const kind = KINDS[page[at] ?? 0]
  if (kind === undefined) return undefined
  const is_inner = kind.endsWith("inner")
  const head = at + (is_inner ? 12 : 8)
  const count = page.readUInt16BE(at + 3)
  if (head + 2 * count > usable) return undefined
  const cells: number[] = []
  for (let cell = 0; cell < count; cell++) {
    const begin = page.readUInt16BE(head + 2 * cell)
    if (begin < head + 2 * count || begin >= usable) return undefined
    cells.push(begin)
  }
  if (!is_inner) return { kind, cells, children: [] }
  const left = cells.map((cell) => (cell + 4 <= usable ? page.readUInt32BE(cell) : 0))
  return { kind, cells, children: [...left, page.readUInt32BE(at + 8)] }
}

/** The cell of a table's leaf, or of any page of an index. Undefined where it reaches beyond the page. */
export function cellAt(
  page: Buffer,
  begin: number,
  { kind }: BtreePage,
  usable: number,
): SqliteCell | undefined {
  if (kind === "table_inner") return undefined
  const is_table = kind === "table_leaf"
  const length = varint(page, kind === "index_inner" ? begin + 4 : begin)
  const rowid = length && is_table ? varint(page, length.next) : undefined
  if (!length || (is_table && !rowid)) return undefined
  const start = rowid?.next ?? length.next
  const payload_bytes = Number(length.value)
  const most = is_table ? usable - 35 : Math.floor(((usable - 12) * 64) / 255) - 23
  const local_bytes = localBytes(payload_bytes, most, usable)
  const has_rest = local_bytes < payload_bytes
  const end = start + local_bytes + (has_rest ? 4 : 0)
  if (!Number.isSafeInteger(payload_bytes) || end > usable) return undefined
  return {
    rowid: rowid && Number(rowid.value),
    payload_bytes,
    local: page.subarray(start, start + local_bytes),
    overflow: has_rest ? page.readUInt32BE(start + local_bytes) : 0,
  }
}

function localBytes(payload: number, most: number, usable: number): number {
  if (payload <= most) return payload
  const least = Math.floor(((usable - 12) * 32) / 255) - 23
  const fitting = least + ((payload - least) % (usable - 4))
  return fitting <= most ? fitting : least
}

function varint(bytes: Uint8Array, at: number): { value: bigint; next: number } | undefined {
  let value = 0n
  for (let count = 0; count < 9; count++) {
    const byte = bytes[at + count]
    if (byte === undefined) return undefined
    if (count === 8) return { value: BigInt.asIntN(64, (value << 8n) | BigInt(byte)), next: at + 9 }
    value = (value << 7n) | BigInt(byte & 0x7f)
    if (byte < 0x80) return { value, next: at + count + 1 }
  }
  return undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The values of a record. Undefined for bytes that are none: a length is wrong, or a text is not UTF-8. */
export function recordOf(payload: Buffer): SqliteValue[] | undefined {
  const head = varint(payload, 0)
  if (!head || head.value > payload.length || head.value < head.next) return undefined
  const values: SqliteValue[] = []
  let at = Number(head.value)
  for (let next = head.next; next < Number(head.value); ) {
    const type = varint(payload, next)
    if (!type || type.value < 0n) return undefined
    next = type.next
    const bytes = bytesOfType(Number(type.value))
    if (bytes === undefined || at + bytes > payload.length) return undefined
    const value = decoded(Number(type.value), payload.subarray(at, at + bytes))
    if (value === undefined) return undefined
    values.push(value)
    at += bytes
  }
  return at === payload.length ? values : undefined
}

const INTEGER_BYTES = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0]

function bytesOfType(type: number): number | undefined {
  if (type < INTEGER_BYTES.length) return INTEGER_BYTES[type]
  if (type < 12) return undefined
  return type % 2 === 0 ? (type - 12) / 2 : (type - 13) / 2
}

function decoded(type: number, bytes: Buffer): SqliteValue | undefined {
  if (type === 0) return null
  if (type === 7) return bytes.readDoubleBE(0)
  if (type === 8 || type === 9) return type - 8
  if (type < 7)
    return type === 6 ? exact(bytes.readBigInt64BE(0)) : bytes.readIntBE(0, bytes.length)
  if (type % 2 === 0) return Uint8Array.from(bytes)
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

const exact = (value: bigint) => (Number.isSafeInteger(Number(value)) ? Number(value) : value)
