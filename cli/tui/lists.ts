import {
  type Detail,
  type ListName,
  type ListPosition,
  type ListState,
  type Load,
  listsOf,
  type Opened,
  type Opening,
  type Rows,
  type ScreenName,
  type State,
  type StateStep,
  screens,
  step,
  TOP_OF_LIST,
} from "./state"

/** Below this size only a note about the size is drawn. */
export const LEAST = { columns: 60, lines: 12 }

/** From here on a list and what is in it stand side by side. */
const WIDE_COLUMNS = 120

/** Borders, tabs, and the line above the keys. */
const FRAME_LINES = 4
const FRAME_COLUMNS = 4

/** Of the space between the borders, and of its two parts while something is opened on the right. */
export function layoutOf({ columns, lines }: Pick<State, "columns" | "lines">) {
  const width = columns - FRAME_COLUMNS
  const height = lines - FRAME_LINES
  const is_wide = columns >= WIDE_COLUMNS
  const list_width = is_wide ? Math.floor(width * 0.5) : width
  const detail_width = is_wide ? width - list_width - 3 : width
  // What is opened has a head of two lines.
  return { width, height, is_wide, list_width, detail_width, detail_rows: height - 2 }
}

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

const { MIN_SAFE_INTEGER: FIRST, MAX_SAFE_INTEGER: LAST } = Number
const BY_ROW = { j: 1, k: -1, g: FIRST, G: LAST }
const BY_ROW_NAMED = { "<down>": 1, "<up>": -1, "<home>": FIRST, "<end>": LAST }
const BY_PAGE = { "<pagedown>": 1, "<ctrl-f>": 1, "<pageup>": -1, "<ctrl-b>": -1, "<ctrl-d>": 0.5 }
const STEPS = new Map(Object.entries({ ...BY_ROW, ...BY_ROW_NAMED }))
const PAGES = new Map(Object.entries(BY_PAGE))

/** How far a key moves, where `page` is a screenful; undefined for keys that do not. */
export function stepsOf(key: string, page: number): number | undefined {
  const pages = PAGES.get(key)
  return pages === undefined ? STEPS.get(key) : Math.ceil(pages * page)
}

export const rowsOf = <Name extends ListName>({ lists }: State, name: Name) =>
  (lists[name].rows ?? []) as readonly Rows[Name][]

export const chosen = <Name extends ListName>(state: State, name: Name): Rows[Name] | undefined => {
  const rows = rowsOf(state, name)
  return rows[indexOf(rows, state.lists[name].position)]
}

/** How paths name a row: a topic has a key. */
const nameOf = (row: Rows[ListName]): string => ("key" in row ? row.key : row.id)

/** Asks for the lower list of the screen, which belongs to the chosen row of the upper one. */
export function loadsBelow(state: State, screen: ScreenName): Load[] {
  const [upper, lower] = listsOf[screen]
  const row = upper && chosen(state, upper)
  return row && lower ? [{ do: "load_list", list: lower, of: nameOf(row) }] : []
}

export const focusedList = ({ screen, lower }: State): ListName | undefined =>
  listsOf[screen][lower[screen] ? 1 : 0]

export const screenOfList = (name: ListName): ScreenName =>
  screens.find((one) => listsOf[one].includes(name)) ?? "messages"

export const detailOf = (state: State): Detail | undefined =>
  state.details[state.screen as keyof Opened]

/** The heights of the lists of a screen, with their heads; between two of them is a line. */
export function heightsOf(state: State, screen: ScreenName): number[] {
  const { height } = layoutOf(state)
  const [upper, lower] = listsOf[screen]
  if (!upper || !lower) return [height]
  const most = Math.floor(height / 2) - 1
  const above = Math.max(3, Math.min(most, rowsOf(state, upper).length + 1))
  return [above, height - above - 1]
}

export function visibleRows(state: State, name: ListName): number {
  const screen = screenOfList(name)
  return Math.max(1, (heightsOf(state, screen)[listsOf[screen].indexOf(name)] ?? 0) - 1)
}

export const withList = <Name extends ListName>(
  state: State,
  name: Name,
  changes: Partial<ListState<Rows[Name]>>,
): State => ({
  ...state,
  lists: { ...state.lists, [name]: { ...state.lists[name], ...changes } },
})

export const withDetail = (
  state: State,
  screen: ScreenName,
  detail: Detail | undefined,
): State => ({ ...state, details: { ...state.details, [screen]: detail } })

export const loadOf = (screen: keyof Opened, { id, of, tab }: Opening): Load => {
  return { do: "load_detail", screen, id, of, tab }
}

/** Opens a record; `tab` is that of a message. */
export function opened(
  state: State,
  screen: keyof Opened,
  id: string,
  { of = null, tab = "Timeline" }: Partial<Opening> = {},
): StateStep {
  const detail = { id, of, tab, top: 0, found: null, problem: null }
  const next = withDetail({ ...state, screen }, screen, detail)
  return step(next, loadOf(screen, detail))
}

/** The list with its rows of now. The chosen row stays chosen; at the top of the list the newest is. */
export function withRows<Name extends ListName>(
  state: State,
  name: Name,
  rows: readonly Rows[Name][],
): State {
  const next = withList(state, name, { rows })
  const { position } = state.lists[name]
  const now = kept(position, rowsOf(state, name), rows, visibleRows(next, name))
  return withList(next, name, { position: now })
}

/** In the upper one of two lists a new row does not change the selection. A list at its top stays there. */
export function withUpper<Name extends ListName>(
  state: State,
  name: Name,
  rows: readonly Rows[Name][],
): State {
  const { position: before } = state.lists[name]
  const held = { ...before, follows: before.selected === null }
  const next = withRows(withList(state, name, { position: held }), name, rows)
  const still = { ...next.lists[name].position, follows: false }
  const atTop = () => moved({ ...still, top: 0 }, rows, 0, visibleRows(next, name))
  return withList(next, name, { position: before.top === 0 ? atTop() : still })
}

/** Rows that do not belong to the row that is chosen above came too late. */
export function withLower<Name extends ListName>(
  state: State,
  name: Name,
  of: string,
  rows: readonly Rows[Name][],
): State {
  const [upper = name] = listsOf[screenOfList(name)]
  const row = chosen(state, upper)
  if (!row || nameOf(row) !== of) return state
  const is_same = state.lists[name].of === of
  const begun = is_same ? state : withList(state, name, { rows: [], of, position: TOP_OF_LIST })
  return withRows(begun, name, rows)
}
