import { cleanLine, type Paint } from "../lib/terminal"
import { fitted, head, sparkline, widthOf } from "./cells"
import type { Brush } from "./columns"
import { keysOf } from "./keys"
import { listInfo } from "./message-list"
import { backlog, queueInfo } from "./queue-lines"
import { perSecond } from "./rates"
import { ageText, number, percent } from "./spans"
import { type Prompt, type Question, type State, screens } from "./state"
import { webhookInfo } from "./webhook-lists"

const SPARK_SECONDS = 12
const NARROW_SPARK_SECONDS = 5
const NARROW_COLUMNS = 100

/** `┌ belfry · acme/prod ── active ─ 182 msg/s ▂▃▅▇▆ ─ …┐`: as much of it as there is room for. */
export function statusLine(state: State, paint: Paint): string {
  const { columns, sending } = state
  const parts: [string, Brush?][] = [[` ${cleanLine(`belfry · ${state.title}`)} `, "bold"]]
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

function figures({ rates, queue, columns }: State): string[] {
  const { settled, bounced, complained } = rates
  const length = columns < NARROW_COLUMNS ? NARROW_SPARK_SECONDS : SPARK_SECONDS
  const seconds = rates.seconds.slice(-1 - length, -1)
  const before = Array.from({ length: length - seconds.length }, () => 0)
  const spark = sparkline([...before, ...seconds])
  const rate = perSecond(rates)
  const shown = rate > 0 && rate < 10 ? rate.toFixed(1) : number(rate)
  const list = [`${shown} msg/s ${spark}`]
  if (queue.work) {
    const { count, oldest_seconds } = backlog(queue.work)
    const oldest = count > 0 ? ` (oldest ${ageText(oldest_seconds)})` : ""
    list.push(`queue ${number(count)}${oldest}`)
  }
  if (settled === 0) return list
  return [
    ...list,
    `bounce ${percent(bounced, settled)}`,
    `complaint ${percent(complained, settled)}`,
  ]
}

const links = {
  connecting: ["○ connecting", "yellow"],
  live: ["● live", "green"],
  polling: ["● live (polling)", "green"],
  lost: ["○ reconnecting", "red"],
} as const

/** The screens by their number keys, and how news arrive. */
export function tabLine({ screen, link, columns }: State, paint: Paint): string {
  const [word, brush] = links[link]
  const names = screens.map((name, at) => `${at + 1} ${name[0]?.toUpperCase()}${name.slice(1)}`)
  const shown = names.map((name, at) =>
    screens[at] === screen ? paint.inverse(`[${name}]`) : ` ${name} `,
  )
  const size = names.reduce((sum, name) => sum + name.length + 3, -1)
  const gap = columns - 4 - size - widthOf(word)
  return `${shown.join(" ")}${" ".repeat(Math.max(1, gap))}${paint[brush](word)}`
}

export const bordered = (line: string, paint: Paint): string =>
  `${paint.dim("│")} ${line} ${paint.dim("│")}`

/** One line above the keys: what is asked or typed, else what has just happened, else what is seen. */
export function infoLine(state: State, paint: Paint): string {
  const width = state.columns - 4
  const { question, prompt, notice } = state
  if (question) return paint.yellow(questionLine(question, width))
  if (prompt) return promptLine(prompt, width, paint)
  if (notice) return paint.cyan(fitted(cleanLine(notice.text), width))
  return paint.dim(fitted(cleanLine(infoOf(state)), width))
}

/** What can be answered is always seen: a long address gives way to it. */
function questionLine({ text, choices }: Question, width: number): string {
  const answers = choices.map(({ key, word }) => [key, word].filter(Boolean).join(" "))
  const end = `  ${[...answers, "n"].join(" / ")}`
  const asked = cleanLine(text)
  const room = width - widthOf(end)
  return fitted(widthOf(asked) > room ? `${head(asked, room - 1)}…${end}` : `${asked}${end}`, width)
}

function infoOf(state: State): string {
  if (state.screen === "messages") return listInfo(state)
  return state.screen === "webhooks" ? webhookInfo(state) : queueInfo(state)
}

const asked = { filter: "/", command: ":", replay: "replay since: " }
const hints = {
  filter: "status:bounced to:*@x.test since:1h tag:y -word   ⏎ applies, Esc leaves",
  command: "⏎ runs it, Esc leaves",
  replay: "held, failed or all   ⏎ continues, Esc leaves",
}

/** The end of a long line is what is seen: there the typing happens. */
function promptLine({ asks, text, problem }: Prompt, width: number, paint: Paint): string {
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
