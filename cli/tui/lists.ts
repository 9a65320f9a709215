import { indexOf, kept, layoutOf, sharedHeights, TOP_OF_LIST } from "./layout"
import {
  type Detail,
  type ListName,
  type ListState,
  listsOf,
  type Opened,
  type Rows,
  type ScreenName,
  type State,
  screens,
} from "./state"

export const rowsOf = <Name extends ListName>({ lists }: State, name: Name) =>
  (lists[name].rows ?? []) as readonly Rows[Name][]

/** The selected row. */
export const chosen = <Name extends ListName>(state: State, name: Name): Rows[Name] | undefined => {
  const rows = rowsOf(state, name)
  return rows[indexOf(rows, state.lists[name].position)]
}

/** The list to which keys go; undefined on a screen without one. */
export const focusedList = ({ screen, lower }: State): ListName | undefined =>
  listsOf[screen][lower[screen] ? 1 : 0]

export const detailOf = (state: State): Detail | undefined =>
  state.details[state.screen as keyof Opened]

/** The heights of the lists of a screen, with their heads. */
export function heightsOf(state: State, screen: ScreenName): number[] {
  const { height } = layoutOf(state)
  const [upper, lower] = listsOf[screen]
  return upper && lower ? sharedHeights(height, rowsOf(state, upper).length) : [height]
}

/** How many rows of a list are seen. */
export function visibleRows(state: State, name: ListName): number {
  const screen = screens.find((one) => listsOf[one].includes(name)) ?? "messages"
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

/** Rows that do not belong to the row that is chosen above came too late. */
export function withLower<Name extends ListName>(
  state: State,
  upper: ListName,
  name: Name,
  of: string,
  rows: readonly Rows[Name][],
): State {
  if (state.lists[upper].position.selected !== of) return state
  const is_same = state.lists[name].of === of
  const begun = is_same ? state : withList(state, name, { rows: [], of, position: TOP_OF_LIST })
  return withRows(begun, name, rows)
}
