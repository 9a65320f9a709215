/** Where somebody stands in a long list. Only the rows on the screen are ever drawn. */
export interface Place {
  /** Null: the list is empty, or nothing was chosen yet. */
  selected: string | null
  /** Of the first row that is seen. */
  top: number
  /** Stays at the newest row, whatever comes. */
  follows: boolean
}

export const BEGINNING: Place = { selected: null, top: 0, follows: true }

type Items = readonly { id: string }[]

export const indexOf = (items: Items, { selected }: Place): number =>
  items.findIndex(({ id }) => id === selected)

export const chosen = <Item extends { id: string }>(items: readonly Item[], place: Place) =>
  items[indexOf(items, place)]

/** Moves by so many rows, and stays inside of the list. `rows` is how many are seen at once. */
export function moved(place: Place, items: Items, by: number, rows: number): Place {
  const index = Math.max(0, indexOf(items, place)) + by
  return at(place, items, index, rows, false)
}

/** The newest row, and whatever will be the newest. */
export const followed = (items: Items, rows: number): Place => at(BEGINNING, items, 0, rows, true)

/**
 * The same row at the same height, though others came before it or went. A row that is gone is
 * followed by the one that took its place.
 */
export function kept(place: Place, before: Items, after: Items, rows: number): Place {
  if (place.follows) return followed(after, rows)
  const was = indexOf(before, place)
  const is = indexOf(after, place)
  const index = is >= 0 ? is : Math.max(0, was)
  const above = Math.max(0, was - place.top)
  return at({ ...place, top: index - above }, after, index, rows, false)
}

function at(place: Place, items: Items, index: number, rows: number, follows: boolean): Place {
  const inside = Math.max(0, Math.min(items.length - 1, index))
  const least = Math.max(0, inside - rows + 1)
  const most = Math.min(inside, Math.max(0, items.length - rows))
  const top = Math.max(least, Math.min(most, place.top))
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
