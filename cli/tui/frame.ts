import { cleanLine, type Paint } from "../lib/terminal"
import { audienceInfo, audienceLines } from "./audience-screen"
import { boxInfo, boxLines } from "./box-screen"
import { ageText, fitted, head, number, percent, sparkline, widthOf, wrapped } from "./cells"
import { deliveryLines, inboundLines, messageLines } from "./details"
import { inboundInfo, inboundTable } from "./inbound-screen"
import { everywhere, type KeyHelp, keysOf } from "./keys"
import { layoutOf } from "./layout"
import { perSecond } from "./message-rows"
import { listInfo, listLines } from "./messages-screen"
import { backlog, queueInfo, queueLines } from "./queue-screen"
import { reputationInfo, reputationLines } from "./reputation-screen"
import { type PromptState, type Question, type State, screens, tabs } from "./state"
import { subscriberLines } from "./subscriber-lines"
import type { Brush } from "./table-lines"
import { webhookInfo, webhookLines } from "./webhooks-screen"

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
  return INFO[state.screen](state)
}

const INFO = {
  messages: listInfo,
  webhooks: webhookInfo,
  queue: queueInfo,
  inbound: inboundInfo,
  reputation: reputationInfo,
  audience: audienceInfo,
  box: boxInfo,
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
  const { width, height } = layoutOf(state)
  if (state.help) return helpLines(state, width, height, paint)
  const opened = openedLines(state, paint, colour)
  if (!opened) return screenLines(state, width, paint)
  const { is_wide, list_width } = layoutOf(state)
  if (!is_wide) return opened
  const left = screenLines(state, list_width, paint)
  return left.map((line, at) => `${line} ${paint.dim("│")} ${opened[at] ?? ""}`)
}

function screenLines(state: State, width: number, paint: Paint): string[] {
  switch (state.screen) {
    case "messages":
      return listLines(state, width, paint)
    case "webhooks":
      return webhookLines(state, width, paint)
    case "queue":
      return queueLines(state, width, paint)
    case "reputation":
      return reputationLines(state, width, paint)
    case "inbound":
      return inboundTable(state, width, paint)
    case "audience":
      return audienceLines(state, width, paint)
    case "box":
      return boxLines(state, width, paint)
  }
}

/** What is opened: a message, a received mail, a subscriber or a delivery; undefined when nothing is. */
function openedLines(state: State, paint: Paint, colour: boolean): string[] | undefined {
  const { detail_width: width } = layoutOf(state)
  const message = state.screen === "messages" ? state.messages.detail : null
  if (message) {
    const names = tabs.map((tab) => (tab === message.tab ? paint.bold(`[${tab}]`) : ` ${tab} `))
    const size = tabs.reduce((sum, tab) => sum + tab.length + 3, -1)
    const title = names.join(" ") + " ".repeat(Math.max(0, width - size))
    const lines = messageLines(message, width, colour)
    return withTitle(state, message.id, title, lines, message.top, paint)
  }
  const mail = state.screen === "inbound" ? state.inbound.detail : null
  if (mail) {
    const under = paint.dim(fitted(mail.found ? cleanLine(mail.found.kind) : "", width))
    const lines = inboundLines(mail, width, colour)
    return withTitle(state, `received mail ${mail.id}`, under, lines, mail.top, paint)
  }
  const subscriber = state.screen === "audience" ? state.audience.detail : null
  if (subscriber) {
    const status = subscriber.found?.subscriber.status ?? ""
    const under = paint.dim(fitted(cleanLine(status), width))
    const lines = subscriberLines(subscriber, width, colour)
    const name = `subscriber ${subscriber.name}`
    return withTitle(state, name, under, lines, subscriber.top, paint)
  }
  const delivery = state.screen === "webhooks" ? state.webhooks.detail : null
  if (!delivery) return undefined
  const lines = deliveryLines(delivery, width, colour)
  const under = paint.dim(fitted(delivery.found ? cleanLine(delivery.found.event_type) : "", width))
  return withTitle(state, `delivery ${delivery.id}`, under, lines, delivery.top, paint)
}

function withTitle(
  state: State,
  name: string,
  under: string,
  lines: readonly string[],
  top: number,
  paint: Paint,
): string[] {
  const { detail_width: width, height } = layoutOf(state)
  const rows = height - 2
  const last = Math.min(lines.length, top + rows)
  const where = lines.length > rows ? `${top + 1}–${last} of ${lines.length}` : ""
  const id = fitted(cleanLine(name), Math.max(0, width - widthOf(where) - 1))
  const blank = Array.from({ length: Math.max(0, rows - (last - top)) }, () => " ".repeat(width))
  return [`${paint.bold(id)} ${paint.dim(where)}`, under, ...lines.slice(top, last), ...blank]
}

function helpLines(state: State, width: number, height: number, paint: Paint): string[] {
  const here = keysOf(state)
  const lines = [
    paint.bold(fitted("Keys on this screen", width)),
    ...here.flatMap((key) => helpLine(key, width, paint)),
    " ".repeat(width),
    paint.bold(fitted("Keys on all screens", width)),
    ...everywhere.flatMap((key) => helpLine(key, width, paint)),
  ]
  const blank = Array.from({ length: Math.max(0, height - lines.length) }, () => " ".repeat(width))
  return [...lines, ...blank].slice(0, height)
}

const helpLine = ({ key, long }: KeyHelp, width: number, paint: Paint): string[] =>
  wrapped(long, width - 10).map(
    (text, at) => `  ${paint.cyan(fitted(at === 0 ? key : "", 7))} ${fitted(text, width - 10)}`,
  )
