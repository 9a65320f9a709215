import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import {
  type BtreePage,
  btreePage,
  cellAt,
  recordOf,
  type SqliteCell,
  type SqliteValue,
} from "../../lib/sqlite-format"

const MAGIC = "SQLite format 3\0"
const USUAL_PAGE_BYTES = 4096
/** An entry of the pointer map: a kind, and the page above (file format, section 1.8). */
const ENTRY_BYTES = 5
const [ROOT, FREE, OVERFLOW_FIRST, OVERFLOW_NEXT, BELOW] = [1, 2, 3, 4, 5]
/** A tree with more levels has more pages than a file can have. */
const MOST_LEVELS = 20
/** SQLite keeps this byte for its locks, and puts nothing into its page. */
const LOCK_BYTE = 0x40000000
/** A damaged header may tell of billions of pages: 64 GB of them are counted. */
const MOST_MISSING = 2 ** 24

interface MapEntry {
  kind: number
  parent: number
}

export interface FoundRow {
  /** Undefined in an index. */
  rowid: number | undefined
  values: SqliteValue[]
}

/** A cell of a page. Without values it cannot be read whole. */
export interface FoundCell {
  rowid: number | undefined
  values: SqliteValue[] | undefined
}

/**
 * An SQLite file read page by page, without SQLite: each page that can be read is read, whatever became
 * of the pages above it. To which table a page belongs is told by the pages that point to it, and by the
 * pointer map, which our files have because of `auto_vacuum`.
 */
export class DamagedFile {
  /** Whole pages that the file has. */
  readonly pages: number
  /** Pages that it should have by its header: a file that is cut off has less. */
  readonly promised: number
  readonly #file: number
  readonly #page_bytes: number
  readonly #usable: number
  /** The number of pages in the header. Without a sound header, all that the file has. */
  readonly #told: number
  readonly #has_map: boolean
  readonly #free: Set<number>
  /** By page: the inner page that points to it. */
  readonly #above: Uint32Array
  readonly #maps = new Map<number, (MapEntry | undefined)[]>()
  /** By overflow page: 1 where a row was read through it. */
  readonly #used: Uint8Array
  /** By overflow page: the page of the tree that its chain begins in, once that is known. */
  readonly #heads: Uint32Array

  constructor(path: string) {
    this.#file = openSync(path, "r")
    const head = Buffer.alloc(100)
    readSync(this.#file, head, 0, head.length, 0)
    const is_sound = head.subarray(0, MAGIC.length).equals(Buffer.from(MAGIC))
    this.#page_bytes = is_sound ? pageBytes(head.readUInt16BE(16)) : USUAL_PAGE_BYTES
    this.#usable = this.#page_bytes - (is_sound ? (head[20] ?? 0) : 0)
    this.pages = Math.floor(fstatSync(this.#file).size / this.#page_bytes)
    this.#told = is_sound ? head.readUInt32BE(28) : this.pages
    this.promised = Math.max(this.pages, Math.min(this.#told, this.pages + MOST_MISSING))
    this.#has_map = !is_sound || head.readUInt32BE(52) !== 0
    this.#free = is_sound ? this.#freePages(head.readUInt32BE(32)) : new Set()
    this.#above = new Uint32Array(this.promised + 1)
    this.#used = new Uint8Array(this.promised + 1)
    this.#heads = new Uint32Array(this.promised + 1)
    for (let number = 1; number <= this.pages; number++) {
      for (const child of this.btree(number)?.children ?? []) {
        if (child > 1 && child <= this.promised) this.#above[child] = number
      }
    }
  }

  close(): void {
    closeSync(this.#file)
  }

  /** The page as a part of a table or index; undefined for every other page, and for a damaged one. */
  btree(number: number): BtreePage | undefined {
    if (this.#isMap(number)) return undefined
    return btreePage(this.#read(number), this.#usable, number === 1)
  }

  /** The first page of the tree that the page belongs to; undefined where it is not known, or free. */
  rootOf(number: number): number | undefined {
    let at = number
    for (let level = 0; level < MOST_LEVELS; level++) {
      if (at === 1) return 1
      const above = this.#above[at] ?? 0
      const entry = this.#entry(at)
      // Without an entry of the map, a page that nothing points to may be a root.
      if (above === 0 && (entry?.kind ?? ROOT) === ROOT) return at
      const next = above > 0 ? above : entry?.kind === BELOW ? entry.parent : 0
      if (next === 0) return undefined
      at = next
    }
    return undefined
  }

  /** As `rootOf`, also of a page with the rest of a long row. */
  ownerOf(number: number): number | undefined {
    let at = number
    for (let steps = 0; steps < this.promised; steps++) {
      const known = this.#heads[at] ?? 0
      const { kind, parent } = this.#entry(at) ?? { kind: ROOT, parent: 0 }
      if (known === 0 && kind !== OVERFLOW_FIRST && kind !== OVERFLOW_NEXT) break
      at = known > 0 ? known : parent
      if (known > 0) break
    }
    if (at !== number) this.#heads[number] = at
    return this.rootOf(at)
  }

  /** Whether SQLite keeps no content in the page: the pointer map, its lock page, and free pages. */
  isSpare(number: number): boolean {
    if (this.#isMap(number) || number === LOCK_BYTE / this.#page_bytes + 1) return true
    if (this.#free.has(number) || this.#entry(number)?.kind === FREE) return true
    return number > this.#told && this.#read(number).every((byte) => byte === 0)
  }

  /** Whether a row that was read has its rest in the page. */
  isUsed(number: number): boolean {
    return this.#used[number] === 1
  }

  /** The rows of a table's leaf, or the entries of an index's page, that can be read whole. */
  *rowsOf(number: number, tree: BtreePage): Generator<FoundRow> {
    for (const { rowid, values } of this.cellsOf(number, tree)) if (values) yield { rowid, values }
  }

  /** The same with those that cannot be read whole. */
  *cellsOf(number: number, tree: BtreePage): Generator<FoundCell> {
    const page = this.#read(number)
    for (const begin of tree.cells) {
      const cell = cellAt(page, begin, tree, this.#usable)
      const payload = cell && this.#payload(number, cell)
      yield { rowid: cell?.rowid, values: payload && recordOf(payload) }
    }
  }

  /** With what lies in overflow pages. Undefined where one of them is damaged. */
  #payload(number: number, { local, payload_bytes, overflow }: SqliteCell): Buffer | undefined {
    // A chain of damaged pages may lead in a circle.
    if (payload_bytes > this.pages * this.#page_bytes) return undefined
    const parts: Uint8Array[] = [local]
    const chain: number[] = []
    let missing = payload_bytes - local.length
    let above = number
    let kind = OVERFLOW_FIRST
    for (let at = overflow; missing > 0; kind = OVERFLOW_NEXT) {
      if (at < 2 || at > this.pages || this.#isMap(at)) return undefined
      const entry = this.#entry(at)
      if (entry && (entry.kind !== kind || entry.parent !== above)) return undefined
      const page = this.#read(at)
      if (page.every((byte) => byte === 0)) return undefined // no content of ours has so many
      const taken = Math.min(missing, this.#usable - 4)
      parts.push(page.subarray(4, 4 + taken))
      chain.push(at)
      missing -= taken
      const next = page.readUInt32BE(0)
      if (missing === 0 && next !== 0) return undefined
      above = at
      at = next
    }
    if (overflow !== 0 && payload_bytes === local.length) return undefined
    for (const at of chain) this.#used[at] = 1
    return Buffer.concat(parts)
  }

  #read(number: number): Buffer {
    const page = Buffer.alloc(this.#page_bytes)
    readSync(this.#file, page, 0, this.#page_bytes, (number - 1) * this.#page_bytes)
    return page
  }

  /** The list of free pages (file format, section 1.5), as far as it can be read. */
  #freePages(first: number): Set<number> {
    const free = new Set<number>()
    for (let at = first; at > 1 && at <= this.pages && !free.has(at); ) {
      free.add(at)
      const trunk = this.#read(at)
      const count = Math.min(trunk.readUInt32BE(4), this.#usable / 4 - 2)
      for (let leaf = 0; leaf < count; leaf++) free.add(trunk.readUInt32BE(8 + leaf * 4))
      at = trunk.readUInt32BE(0)
    }
    return free
  }

  #isMap(number: number): boolean {
    return this.#has_map && number >= 2 && this.#mapOf(number) === number
  }

  /** The page of the pointer map that has the entry of a page. */
  #mapOf(number: number): number {
    const span = Math.floor(this.#usable / ENTRY_BYTES) + 1
    const map = Math.floor((number - 2) / span) * span + 2
    return map === LOCK_BYTE / this.#page_bytes + 1 ? map + 1 : map
  }

  #entry(number: number): MapEntry | undefined {
    if (number < 3 || !this.#has_map) return undefined
    const map = this.#mapOf(number)
    const entries = this.#maps.get(map) ?? this.#entries(map)
    this.#maps.set(map, entries)
    return entries[number - map - 1]
  }

  /** All entries of a page of the map; none of one that is damaged. */
  #entries(map: number): (MapEntry | undefined)[] {
    const page = this.#read(map)
    const count = Math.min(Math.floor(this.#usable / ENTRY_BYTES), this.promised - map)
    const entries: MapEntry[] = []
    for (let at = 0; at < count; at++) {
      const kind = page[at * ENTRY_BYTES] ?? 0
      const parent = page.readUInt32BE(at * ENTRY_BYTES + 1)
      const is_alone = kind === ROOT || kind === FREE
      const is_lock_page = map + 1 + at === LOCK_BYTE / this.#page_bytes + 1
      const is_sound =
        kind >= 1 && kind <= 5 && parent <= this.promised && is_alone === (parent === 0)
      if (!is_sound && !is_lock_page) return []
      entries.push({ kind, parent })
    }
    return entries
  }
}

const pageBytes = (stored: number) => {
  const bytes = stored === 1 ? 65_536 : stored
  return bytes >= 512 && Number.isInteger(Math.log2(bytes)) ? bytes : USUAL_PAGE_BYTES
}
