import { cleanLine, type Paint } from "../lib/terminal"
import { fitted, widthOf, wrapped } from "./cells"
import { deliveryLines } from "./delivery-lines"
import { messageLines } from "./detail-lines"
import { everywhere, type Key, keysOf } from "./keys"
import { layoutOf } from "./layout"
import { listLines } from "./message-list"
import { queueLines } from "./queue-lines"
import { type State, tabs } from "./state"
import { webhookLines } from "./webhook-lists"

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
  }
}

/** What is opened of the list: a message or a delivery; undefined when nothing is. */
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

const helpLine = ({ key, long }: Key, width: number, paint: Paint): string[] =>
  wrapped(long, width - 10).map(
    (text, at) => `  ${paint.cyan(fitted(at === 0 ? key : "", 7))} ${fitted(text, width - 10)}`,
  )
