/** Below this size only a note about the size is drawn. */
export const LEAST = { columns: 60, lines: 12 }

/** From here on a list and what is in it stand side by side. */
const WIDE_COLUMNS = 120

/** Borders, tabs, and the line above the keys. */
const FRAME_LINES = 4
const FRAME_COLUMNS = 4

interface Layout {
  /** Of the space between the borders. */
  width: number
  height: number
  is_wide: boolean
  /** Of the left part while something is opened on the right; else all of it. */
  list_width: number
  detail_width: number
}

export function layoutOf({ columns, lines }: { columns: number; lines: number }): Layout {
  const width = columns - FRAME_COLUMNS
  const height = lines - FRAME_LINES
  const is_wide = columns >= WIDE_COLUMNS
  const list_width = is_wide ? Math.floor(width * 0.5) : width
  return {
    width,
    height,
    is_wide,
    list_width,
    detail_width: is_wide ? width - list_width - 3 : width,
  }
}

/** Lines of a detail below its own head of two lines. */
export const detailRows = (height: number): number => Math.max(1, height - 2)

/** The heights of two lists, one above the other, with a line between them. The upper list has `upper_rows` rows. */
export function sharedHeights(height: number, upper_rows: number): [number, number] {
  const most = Math.floor(height / 2) - 1
  const upper = Math.max(3, Math.min(most, upper_rows + 1))
  return [upper, height - upper - 1]
}

/** The selected row of a long list, and the first row on the screen. Only visible rows are drawn. */
export interface ListPosition {
  /** Null: the list is empty, or nothing was chosen yet. */
  selected: string | null
  /** Of the first row that is seen. */
  top: number
  /** Stays at the newest row when rows are added. */
  follows: boolean
}

export const TOP_OF_LIST: ListPosition = { selected: null, top: 0, follows: true }

type Items = readonly { id: string }[]

export const indexOf = (items: Items, { selected }: ListPosition): number =>
  items.findIndex(({ id }) => id === selected)

/**
 * Moves the selection by a number of rows and keeps it inside the list. `rows` is how many rows are
 * visible.
 */
export function moved(
  position: ListPosition,
  items: Items,
  by: number,
  rows: number,
): ListPosition {
  const index = Math.max(0, indexOf(items, position)) + by
  return at(position, items, index, rows, false)
}

/** The newest row, now and after every change. */
export const followed = (items: Items, rows: number): ListPosition =>
  at(TOP_OF_LIST, items, 0, rows, true)

/**
 * The same row at the same height, though others came before it or went. A row that is gone is
 * followed by the one that took its position.
 */
export function kept(
  position: ListPosition,
  before: Items,
  after: Items,
  rows: number,
): ListPosition {
  if (position.follows) return followed(after, rows)
  const was = indexOf(before, position)
  const is = indexOf(after, position)
  const index = is >= 0 ? is : Math.max(0, was)
  const above = Math.max(0, was - position.top)
  return at({ ...position, top: index - above }, after, index, rows, false)
}

function at(
  position: ListPosition,
  items: Items,
  index: number,
  rows: number,
  follows: boolean,
): ListPosition {
  const inside = Math.max(0, Math.min(items.length - 1, index))
  const least = Math.max(0, inside - rows + 1)
  const most = Math.min(inside, Math.max(0, items.length - rows))
  const top = Math.max(least, Math.min(most, position.top))
  return { selected: items[inside]?.id ?? null, top, follows }
}

/** Scrolling of text, which has no chosen line. */
export const scrolled = (top: number, by: number, lines: number, rows: number): number =>
  Math.max(0, Math.min(Math.max(0, lines - rows), top + by))

/** How far a key moves, where `page` is a screenful; undefined for keys that do not. */
export function stepsOf(key: string, page: number): number | undefined {
  switch (key) {
    case "j":
    case "<down>":
      return 1
    case "k":
    case "<up>":
      return -1
    case "<pagedown>":
    case "<ctrl-f>":
      return page
    case "<pageup>":
    case "<ctrl-b>":
      return -page
    case "<ctrl-d>":
      return Math.ceil(page / 2)
    case "<home>":
    case "g":
      return Number.MIN_SAFE_INTEGER
    case "<end>":
    case "G":
      return Number.MAX_SAFE_INTEGER
    default:
      return undefined
  }
}
