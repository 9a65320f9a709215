import { fitted, wrapped } from "../lib/cells"
import { cleanLine, painter } from "../lib/terminal"
import { detailOf } from "./lists"
import { screenOf } from "./screens"
import type { Detail, PageScreen, Screen, State, Tab } from "./state"

/** All lines of what is opened, or of a screen that is a text, each exactly `width` cells. */
export function detailLines(state: State, width: number, colour: boolean): string[] {
  const screen = screenOf(state)
  const detail = detailOf(state)
  const minute = Math.floor(state.now / 60_000)
  if (detail) {
    return linesOf(screen, detail.found, detail.problem, detail.tab, width, colour, minute)
  }
  const { found } = state.pages[state.screen as PageScreen]
  const problem = found ? null : (state.problems[state.screen] ?? null)
  return linesOf(screen, found, problem, undefined, width, colour, minute)
}

/** A screen is drawn again and again while what is opened in it stays the same. Ages change by the minute. */
const linesOf = remembered(
  (
    screen: Screen,
    found: Detail["found"],
    problem: string | null,
    tab: Tab | undefined,
    width: number,
    colour: boolean,
    _: number,
  ) => {
    const paint = painter(colour)
    const text = () =>
      tab === undefined
        ? screen.page?.(found ?? {}, paint, width)
        : screen.detail?.text(found ?? {}, paint, width, tab)
    const lines = problem
      ? paint.yellow(cleanLine(problem))
      : ((found && text()) ?? paint.dim("loading…"))
    return wrapped(lines, width).map((line) => fitted(line, width))
  },
)

/** The same function, which answers its last call again as long as it gets the same arguments. */
function remembered<Args extends readonly unknown[], Result>(
  make: (...args: Args) => Result,
): (...args: Args) => Result {
  let last: { args: Args; result: Result } | undefined
  return (...args) => {
    const is_same = last?.args.every((value, at) => Object.is(value, args[at]))
    if (!last || !is_same) last = { args, result: make(...args) }
    return last.result
  }
}
