/** The API reads no deeper into a list by page number. */
const DEEPEST_ROW = 10_000

export const PAGE_ROWS = 100

/** So many rows before and behind those in view are there before a person scrolls to them. */
const NEIGHBOURS = 50

/** The rows to load for those in view. At the beginning these are enough: not everybody scrolls. */
export const withNeighbours = ({ from, to }: { from: number; to: number }): [number, number] =>
  from === 0 ? [from, to] : [Math.max(0, from - NEIGHBOURS), to + NEIGHBOURS]

interface ListPage<Row> {
  rows: readonly Row[]
  total: number
}

/**
 * The rows of a long list as far as they are loaded, newest first, by their place. Pages come in any order,
 * because somebody may drag the scroll bar to the end at once.
 */
export class MailPages<Row extends { id: string }> {
  /** By their places; undefined where nobody looked yet. */
  #rows: (Row | undefined)[] = []
  readonly #asked = new Set<number>()
  /** Rows that exist. */
  total = 0

  /** Rows that can be shown; further ones are reached by a search. */
  get count(): number {
    return Math.min(this.total, DEEPEST_ROW)
  }

  at(place: number): Row | undefined {
    return this.#rows[place]
  }

  placeOf(id: string): number | undefined {
    const place = this.#rows.findIndex((row) => row?.id === id)
    return place === -1 ? undefined : place
  }

  /** The numbers of pages, from 1, that these places need and that nobody asked for yet. */
  claimMissing(from: number, to: number): number[] {
    const pages: number[] = []
    for (let place = from; place < Math.min(to, this.count); place++) {
      const page = Math.floor(place / PAGE_ROWS) + 1
      if (this.#rows[place] || this.#asked.has(page)) continue
      this.#asked.add(page)
      pages.push(page)
    }
    return pages
  }

  /** A page could not be loaded, so that it may be asked for again. */
  release(page: number): void {
    this.#asked.delete(page)
  }

  put(page: number, { rows, total }: ListPage<Row>): void {
    if (total !== this.total) this.#begin([], total) // the list moved meanwhile
    this.#asked.delete(page)
    for (const [at, row] of rows.entries()) this.#rows[(page - 1) * PAGE_ROWS + at] = row
  }

  /**
   * Takes the first page as it is now. Where rows were only added, the others move down and stay. Returns the
   * number of new rows, or undefined where the list changed in another way and begins anew.
   */
  merge({ rows, total }: ListPage<Row>): number | undefined {
    const first = this.#rows[0]
    const added = first ? rows.findIndex(({ id }) => id === first.id) : -1
    const is_longer = added >= 0 && total === this.total + added
    const kept = is_longer ? this.#rows.slice(rows.length - added) : []
    this.#begin([...rows, ...kept], total)
    return is_longer ? added : undefined
  }

  change(id: string, change: Partial<Row>): void {
    this.#rows = this.#rows.map((row) => (row?.id === id ? { ...row, ...change } : row))
  }

  /** The row goes, and those behind it move up. */
  remove(id: string): void {
    const gone = this.placeOf(id)
    if (gone !== undefined) this.#begin(this.#rows.toSpliced(gone, 1), this.total - 1)
  }

  #begin(rows: (Row | undefined)[], total: number): void {
    this.#rows = rows
    this.total = total
    this.#asked.clear()
  }
}
