import { fitted, head, number, percent, sparkline, widthOf, wrapped } from "../lib/cells"
import { type Columns, tableLines } from "../lib/table"
import { cleanLine, type Paint, painter } from "../lib/terminal"
import { span } from "../lib/time"
import { detailOf, heightsOf, layoutOf, rowsOf } from "./lists"
import { perSecond } from "./message-rows"
import { backlog, everywhere, keysOf, screenOf } from "./screens"
import {
  type Detail,
  type Key,
  type ListName,
  listsOf,
  type PageScreen,
  type PromptState,
  type Question,
  type Screen,
  type ScreenName,
  type State,
  screens,
  type Tab,
  tabs,
} from "./state"

const SPARK_SECONDS = 12
const NARROW_SPARK_SECONDS = 5
const NARROW_COLUMNS = 100

/** `┌ belfry · acme/prod ── active ─ 182 msg/s ▂▃▅▇▆ ─ …┐`: as much of it as there is room for. */
export function statusLine(state: State, paint: Paint): string {
  const { columns, sending } = state
  const parts: [string, (keyof Paint)?][] = [[` ${cleanLine(`belfry · ${state.title}`)} `, "bold"]]
  if (sending.status) {
    const why = sending.reason ? ` (${sending.reason})` : ""
    const brush = sending.status === "active" ? "green" : "red"
    parts.push([` ${cleanLine(sending.status + why)} `, brush])
  }
  for (const text of figures(state)) parts.push([` ${text} `])
  let line = paint.dim("┌")
  let left = columns - 2
  for (const [index, [text, brush]] of parts.entries()) {
    const shown = index === 0 ? head(text, left) : text
    const size = widthOf(shown) + (index === 0 ? 0 : 1)
    if (size > left) continue
    line += (index === 0 ? "" : paint.dim("─")) + (brush ? paint[brush](shown) : shown)
    left -= size
  }
  return line + paint.dim(`${"─".repeat(left)}┐`)
}

function figures({ rates, pages: { queue }, columns }: State): string[] {
  const { settled, bounced, complained } = rates
  const length = columns < NARROW_COLUMNS ? NARROW_SPARK_SECONDS : SPARK_SECONDS
  const seconds = rates.seconds.slice(-1 - length, -1)
  const before = Array.from({ length: length - seconds.length }, () => 0)
  const spark = sparkline([...before, ...seconds])
  const rate = perSecond(rates)
  const shown = rate > 0 && rate < 10 ? rate.toFixed(1) : number(rate)
  const list = [`${shown} msg/s ${spark}`]
  if (queue.found) {
    const { count, oldest_seconds } = backlog(queue.found)
    const oldest = count > 0 ? ` (oldest ${span(oldest_seconds)})` : ""
    list.push(`queue ${number(count)}${oldest}`)
  }
  if (settled === 0) return list
  return [
    ...list,
    `bounce ${percent(bounced / settled)}`,
    `complaint ${percent(complained / settled)}`,
  ]
}

const links = {
  connecting: { word: "○ opening", brush: "yellow" },
  live: { word: "● live", brush: "green" },
  polling: { word: "● polling", brush: "green" },
  lost: { word: "○ retrying", brush: "red" },
} as const

/** The screens by their number keys, and how news arrive. The first way to name them that fits is taken. */
export function tabLine({ screen, link, columns }: State, paint: Paint): string {
  const { word, brush } = links[link]
  const room = columns - 4 - LONGEST_LINK - 1
  const named = (gap: string, pad: string, { has_others = true, is_short = false } = {}) =>
    screens.map((name, at) => {
      const word = (is_short && SHORT[name]) || name
      const title = `${at + 1}${gap}${word[0]?.toUpperCase()}${word.slice(1)}`
      return name === screen ? `[${title}]` : `${pad}${has_others ? title : at + 1}${pad}`
    })
  const ways = [
    ...[named(" ", " "), named("", ""), named("", "", { is_short: true })],
    named(" ", " ", { has_others: false }),
  ]
  const names = ways.find((way) => widthOf(way.join(" ")) <= room) ?? ways.at(-1) ?? []
  const space = " ".repeat(columns - 4 - widthOf(names.join(" ")) - widthOf(word))
  const shown = names.map((name) => (name.startsWith("[") ? paint.inverse(name) : name))
  return `${shown.join(" ")}${space}${paint[brush](word)}`
}

/** Where eighty columns are all there is. */
const SHORT: Partial<Record<ScreenName, string>> = { webhooks: "hooks", reputation: "reput" }

const LONGEST_LINK = Math.max(...Object.values(links).map(({ word }) => widthOf(word)))

export const bordered = (line: string, paint: Paint): string =>
  `${paint.dim("│")} ${line} ${paint.dim("│")}`

/** One line above the keys: what is asked or typed, else what has just happened, else what is seen. */
export function infoLine(state: State, paint: Paint): string {
  const width = state.columns - 4
  const { question, prompt, notice } = state
  if (question) return paint.yellow(questionLine(question, width))
  if (prompt) return promptLine(prompt, width, paint)
  if (notice) return paint.cyan(fitted(cleanLine(notice.text), width))
  const info = state.problems[state.screen] ?? screenOf(state).info(state)
  return paint.dim(fitted(cleanLine(info), width))
}

/** What can be answered is always seen: a long address gives way to it. */
function questionLine({ text, choices }: Question, width: number): string {
  const answers = choices.map(({ key, word }) => [key, word].filter(Boolean).join(" "))
  const end = `  ${[...answers, "n"].join(" / ")}`
  const asked = cleanLine(text)
  const room = width - widthOf(end)
  return fitted(widthOf(asked) > room ? `${head(asked, room - 1)}…${end}` : `${asked}${end}`, width)
}

const prompts = {
  filter: ["/", "status:bounced to:*@x.test since:1h tag:y -word   ⏎ applies, Esc leaves"],
  command: [":", "⏎ runs it, Esc leaves"],
  replay: ["replay since: ", "held, failed or all   ⏎ continues, Esc leaves"],
  subscriber: ["subscriber: ", "id or external id   ⏎ opens it, Esc leaves"],
  topics: ["topics with: ", "part of key or name   ⏎ applies, Esc leaves"],
  users: ["users: ", "application:shop status:suspended ann   ⏎ applies, Esc leaves"],
} as const

/** The end of a long line is what is seen: there the typing happens. */
function promptLine({ asks, text, problem }: PromptState, width: number, paint: Paint): string {
  const [begin, hint] = prompts[asks]
  const shown = cleanLine(text)
  const cut = tail(shown, width - begin.length - 2)
  const line = `${begin}${cut}`
  const left = width - widthOf(line) - 1
  const more = fitted(`   ${cleanLine(problem ?? hint)}`, left)
  return `${line}▏${problem ? paint.red(more) : paint.dim(more)}`
}

function tail(text: string, width: number): string {
  let shown = text
  while (widthOf(shown) > width) shown = shown.slice(1)
  return shown
}

/** The keys that do something now, as many as there is room for; help and quit are always told. */
export function keyLine(state: State, paint: Paint): string {
  const last = "? help  q quit"
  let room = state.columns - 6 - last.length
  const shown: string[] = []
  for (const { key, short } of keysOf(state)) {
    const text = `${key} ${short}`
    const size = widthOf(text) + 2
    if (short === "" || size > room) continue
    shown.push(text)
    room -= size
  }
  const line = [...shown, last].join("  ")
  return `${paint.dim("└")} ${line} ${paint.dim(`${"─".repeat(Math.max(0, state.columns - 4 - widthOf(line)))}┘`)}`
}

/** Everything between tabs and the last two lines, each line as wide as the space between borders. */
export function bodyLines(state: State, paint: Paint, colour: boolean): string[] {
  const { width, height, is_wide, list_width } = layoutOf(state)
  if (state.help) return helpLines(state, width, height, paint)
  const detail = detailOf(state)
  if (detail) {
    const opened = openedLines(state, detail, paint, colour)
    if (!is_wide) return opened
    const left = listScreen(state, list_width, paint)
    return left.map((line, at) => `${line} ${paint.dim("│")} ${opened[at] ?? ""}`)
  }
  if (listsOf[state.screen].length > 0) return listScreen(state, width, paint)
  const { top } = state.pages[state.screen as PageScreen]
  return filled(detailLines(state, width, colour).slice(top, top + height), width, height)
}

/** The lists of a screen, with a line between two of them. */
function listScreen(state: State, width: number, paint: Paint): string[] {
  const names = listsOf[state.screen]
  const [upper = [], lower] = names.map((name, at) => listLines(state, name, at, width, paint))
  if (!lower) return upper
  const { rows } = state.lists[names[0] ?? "messages"]
  // What belongs to a row of the upper list is not there without one.
  if (!rows?.length) return filled(upper, width, layoutOf(state).height)
  return [...upper, paint.dim("─".repeat(width)), ...lower]
}

const MARK = "▸"

/** The head of a list and the rows that are seen; only these are looked at. Without rows it says why. */
function listLines(
  state: State,
  name: ListName,
  at: number,
  width: number,
  paint: Paint,
): string[] {
  const { screen, problems } = state
  const { lists, none } = screenOf(state)
  const height = heightsOf(state, screen)[at] ?? 0
  const { rows: all, position } = state.lists[name]
  const rows = rowsOf(state, name).slice(position.top, position.top + height - 1)
  const columns = (lists?.[name]?.columns(state) ?? {}) as Columns<(typeof rows)[number]>
  const [titles = "", ...lines] = tableLines(rows, columns, width - 2, paint, true)
  const problem = at === 0 ? problems[screen] : undefined
  const why = problem ?? (all === null ? "loading…" : (none?.(state, name) ?? ""))
  const has_focus = at === (state.lower[screen] ? 1 : 0) && detailOf(state) === undefined
  const marked = lines.map((line, index) => {
    if (rows[index]?.id !== position.selected) return `  ${line}`
    const text = `${MARK} ${Bun.stripANSI(line)}`
    return has_focus ? paint.inverse(text) : paint.bold(text)
  })
  const shown = all?.length ? marked : [fitted(`  ${cleanLine(why)}`, width)]
  return filled([`  ${titles}`, ...shown], width, height)
}

function filled(lines: readonly string[], width: number, height: number): string[] {
  const blank = " ".repeat(width)
  return Array.from({ length: height }, (_, at) => lines[at] ?? blank)
}

/** What is opened: its name and where in it one is, its tabs or its kind, and its lines. */
function openedLines(state: State, detail: Detail, paint: Paint, colour: boolean): string[] {
  const { detail_width: width, detail_rows: rows } = layoutOf(state)
  const form = screenOf(state).detail
  const lines = detailLines(state, width, colour)
  const last = Math.min(lines.length, detail.top + rows)
  const where = lines.length > rows ? `${detail.top + 1}–${last} of ${lines.length}` : ""
  const name = cleanLine(form?.title(detail) ?? "")
  const title = fitted(name, Math.max(0, width - widthOf(where) - 1))
  const names = tabs.map((tab) => (tab === detail.tab ? paint.bold(`[${tab}]`) : ` ${tab} `))
  const kind = detail.found && form?.under ? form.under(detail.found as never) : ""
  const under = form?.under ? paint.dim(fitted(cleanLine(kind), width)) : names.join(" ")
  return [
    `${paint.bold(title)} ${paint.dim(where)}`,
    fitted(under, width),
    ...filled(lines.slice(detail.top, last), width, rows),
  ]
}

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
        ? screen.page?.text(found as never, paint, width)
        : screen.detail?.text(found as never, paint, width, tab)
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

function helpLines(state: State, width: number, height: number, paint: Paint): string[] {
  const lines = [
    paint.bold(fitted("Keys on this screen", width)),
    ...keysOf(state).flatMap((key) => helpLine(key, width, paint)),
    " ".repeat(width),
    paint.bold(fitted("Keys on all screens", width)),
    ...everywhere.flatMap((key) => helpLine(key, width, paint)),
  ]
  return filled(lines, width, height)
}

const helpLine = ({ key, long }: Key, width: number, paint: Paint): string[] =>
  wrapped(long, width - 10).map(
    (text, at) => `  ${paint.cyan(fitted(at === 0 ? key : "", 7))} ${fitted(text, width - 10)}`,
  )
