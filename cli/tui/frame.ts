import { fitted, head, number, percent, sparkline, widthOf, wrapped } from "../lib/cells"
import { cleanLine, type Paint } from "../lib/terminal"
import { span } from "../lib/time"
import { detailLines } from "./detail-lines"
import { layoutOf } from "./layout"
import { filled, told } from "./list-lines"
import { detailOf, heightsOf } from "./lists"
import { perSecond } from "./message-rows"
import { backlog } from "./queue-screen"
import { everywhere, keysOf, screenOf } from "./screens"
import {
  type Detail,
  type Key,
  listsOf,
  type PageScreen,
  type PromptState,
  type Question,
  type State,
  screens,
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

/** How news arrive, in full and for a narrow terminal. */
const links = {
  connecting: { long: "○ connecting", short: "○ opening", brush: "yellow" },
  live: { long: "● live", short: "● live", brush: "green" },
  polling: { long: "● live (polling)", short: "● polling", brush: "green" },
  lost: { long: "○ reconnecting", short: "○ retrying", brush: "red" },
} as const

/** How the screens are named: the first way that fits is taken. */
const TAB_STYLES = [
  { named: "all", gap: " ", pad: " ", between: " ", link: "long" },
  { named: "all", gap: " ", pad: " ", between: "", link: "long" },
  { named: "all", gap: " ", pad: "", between: " ", link: "long" },
  { named: "all", gap: " ", pad: "", between: " ", link: "short" },
  { named: "all", gap: "", pad: "", between: " ", link: "short" },
  { named: "present", gap: " ", pad: " ", between: " ", link: "long" },
] as const

type TabStyle = (typeof TAB_STYLES)[number]

const NARROWEST: TabStyle = { named: "present", gap: " ", pad: " ", between: " ", link: "long" }

/** The screens by their number keys, and how news arrive. */
export function tabLine({ screen, link, columns }: State, paint: Paint): string {
  const room = columns - 4
  const namesFor = ({ named, gap, pad }: TabStyle) =>
    screens.map((name, at) => {
      const is_present = name === screen
      const title = `${at + 1}${gap}${name[0]?.toUpperCase()}${name.slice(1)}`
      if (is_present) return `[${title}]`
      return `${pad}${named === "all" ? title : at + 1}${pad}`
    })
  const sizeOf = (style: TabStyle) => widthOf(namesFor(style).join(style.between))
  const fits = (style: TabStyle) => sizeOf(style) + 1 + longestLink(style.link) <= room
  const style = TAB_STYLES.find(fits) ?? NARROWEST
  const shown = namesFor(style).map((name) => (name.startsWith("[") ? paint.inverse(name) : name))
  const { brush, [style.link]: word } = links[link]
  const left = room - sizeOf(style) - 1 // the narrowest shows the beginning of the word
  const state = widthOf(word) > left ? fitted(word, left) : word
  const space = room - sizeOf(style) - widthOf(state)
  return `${shown.join(style.between)}${" ".repeat(space)}${paint[brush](state)}`
}

const longestLink = (form: "long" | "short") =>
  Math.max(...Object.values(links).map((link) => widthOf(link[form])))

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

const asked = {
  ...{ filter: "/", command: ":", replay: "replay since: ", subscriber: "subscriber: " },
  topics: "topics with: ",
}
const hints = {
  filter: "status:bounced to:*@x.test since:1h tag:y -word   ⏎ applies, Esc leaves",
  command: "⏎ runs it, Esc leaves",
  replay: "held, failed or all   ⏎ continues, Esc leaves",
  subscriber: "id or external id   ⏎ opens it, Esc leaves",
  topics: "part of key or name   ⏎ applies, Esc leaves",
}

/** The end of a long line is what is seen: there the typing happens. */
function promptLine({ asks, text, problem }: PromptState, width: number, paint: Paint): string {
  const begin = asked[asks]
  const shown = cleanLine(text)
  const cut = tail(shown, width - begin.length - 2)
  const line = `${begin}${cut}`
  const left = width - widthOf(line) - 1
  const more = fitted(`   ${cleanLine(problem ?? hints[asks])}`, left)
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

/** The lists of a screen, with a line between two of them. Without rows it says why there are none. */
function listScreen(state: State, width: number, paint: Paint): string[] {
  const { lists: drawn = [], none } = screenOf(state)
  const has_detail = detailOf(state) !== undefined
  const heights = heightsOf(state, state.screen)
  const names = listsOf[state.screen]
  const focused = state.lower[state.screen] ? 1 : 0
  const parts = names.map((name, at) => {
    const height = heights[at] ?? 0
    const has_focus = at === focused && !has_detail
    const lines = drawn[at]?.(state, { width, height, has_focus }, paint) ?? []
    const { rows } = state.lists[name]
    if (rows !== null && rows.length > 0) return lines
    const problem = at === 0 ? state.problems[state.screen] : undefined
    const why = problem ?? (rows === null ? "loading…" : (none?.(state, name) ?? ""))
    return told(lines[0] ?? "", why, width, height)
  })
  const [upper = [], lower] = parts
  if (!lower) return upper
  const { rows } = state.lists[names[0] ?? "messages"]
  // What belongs to a row of the upper list is not there without one.
  if (!rows?.length) return filled(upper, width, layoutOf(state).height)
  return [...upper, paint.dim("─".repeat(width)), ...lower]
}

/** What is opened: its name and where in it one is, its tabs or its kind, and its lines. */
function openedLines(state: State, detail: Detail, paint: Paint, colour: boolean): string[] {
  const { detail_width: width, height } = layoutOf(state)
  const form = screenOf(state).detail
  const lines = detailLines(state, width, colour)
  const rows = height - 2
  const last = Math.min(lines.length, detail.top + rows)
  const where = lines.length > rows ? `${detail.top + 1}–${last} of ${lines.length}` : ""
  const name = cleanLine(form?.title(detail) ?? "")
  const title = fitted(name, Math.max(0, width - widthOf(where) - 1))
  const names = tabs.map((tab) => (tab === detail.tab ? paint.bold(`[${tab}]`) : ` ${tab} `))
  const kind = detail.found && form?.under ? form.under(detail.found) : ""
  const under = form?.under ? paint.dim(fitted(cleanLine(kind), width)) : names.join(" ")
  return [
    `${paint.bold(title)} ${paint.dim(where)}`,
    fitted(under, width),
    ...filled(lines.slice(detail.top, last), width, rows),
  ]
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
