import type { Paint } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { number, spanText, until } from "./cells"
import { messageLines } from "./details"
import { NO_FILTER } from "./filter"
import {
  chosen,
  followed,
  indexOf,
  layoutOf,
  moved,
  stepsOf,
  tableRows,
  turnedDetail,
} from "./layout"
import type { MessageRow } from "./message-rows"
import {
  type MessageDetail,
  type MessagesState,
  type State,
  type StateStep,
  step,
  tabs,
  whether,
  withMessages,
} from "./state"
import { type MonitorColumn, statusBrush, statusWord, tableLines } from "./table-lines"
import { withFilter, withShown } from "./update"

const columns: MonitorColumn<MessageRow>[] = [
  { title: "TIME", width: 8, cell: ({ created_at }) => clockTime(iso(created_at)).slice(0, 8) },
  { title: "ID", width: 8, from: 100, cell: ({ id }) => id.slice(-8) }, // the random part
  {
    title: "CH",
    width: 5,
    from: 140,
    cell: ({ channel }) => (channel === "email" ? "mail" : channel),
  },
  { title: "TO", width: 0, share: 1, cell: ({ to }) => to },
  { title: "SUBJECT", width: 0, share: 1, cell: ({ subject }) => subject },
  {
    title: "STATUS",
    width: 12,
    cell: ({ status, is_held }) => (is_held ? "held" : statusWord(status)),
    brush: ({ status }) => statusBrush(status),
  },
  { title: "TRY", width: 3, right: true, cell: ({ attempts }) => String(attempts) },
  { title: "AGE", width: 9, right: true, cell: ageOf },
]

const iso = (milliseconds: number) => new Date(milliseconds).toISOString()

/** How long it took, or, of what is still open, how long it has taken so far, or when it is due. */
function ageOf({ created_at, changed_at, status, scheduled_at }: MessageRow, now: number): string {
  const is_open = status === "queued" || status === "sending"
  if (is_open && scheduled_at !== null && scheduled_at > now) return until(iso(scheduled_at), now)
  return spanText((is_open ? now : changed_at) - created_at)
}

/** The table of messages, each line exactly `width` cells. */
export function listLines(state: State, width: number, paint: Paint): string[] {
  const { messages, now } = state
  const { height } = layoutOf(state)
  const { selected, top } = messages.position
  const has_focus = messages.detail === null
  const rows = messages.shown
  return tableLines({ columns, rows, width, height, top, selected, now, paint, has_focus })
}

/** What is seen, of how many, and whether it moves. */
export function listInfo({ messages }: State): string {
  const { shown, rows, filter, paused, unseen, position, older } = messages
  const all = `${number(rows.length)}${older === "none" ? "" : "+"}`
  const noun = all === "1" ? "message" : "messages"
  const many =
    filter.text === ""
      ? `${all} ${noun}`
      : `filter: ${filter.text}   ${number(shown.length)} of ${all}`
  const moves = paused ? `paused, ${number(unseen)} new` : position.follows ? "following" : ""
  return [many, older === "loading" ? "loading…" : "", moves].filter(Boolean).join("   ")
}

/** Rows left below the reader when older ones are fetched. */
const AHEAD = 50

/** Keys of the Messages screen: in the list, or in the message that is opened. */
export function pressOnMessages(state: State, key: string): StateStep {
  const { messages } = state
  if (messages.detail) return pressInDetail(state, messages.detail, key)
  const rows = tableRows(layoutOf(state).height)
  const by = stepsOf(key, rows)
  if (by !== undefined) {
    const position = moved(messages.position, messages.shown, by, rows)
    return withOlderAsked(withMessages(state, { position }))
  }
  switch (key) {
    case " ":
      return step({ ...state, messages: pausedOrNot(state) })
    case "f":
      return step({ ...state, messages: followedOrNot(state, rows) })
    case "<enter>":
      return withDetail(state, "Timeline")
    case "<escape>":
      return messages.filter.text === "" ? step(state) : withFilter(state, NO_FILTER)
    default:
      return pressOnOne(state, key)
  }
}

function withOlderAsked(state: State): StateStep {
  const { older, position, shown, filter } = state.messages
  const left = shown.length - indexOf(shown, position)
  if (older !== "more" || left > AHEAD) return step(state)
  return step(withMessages(state, { older: "loading" }), { do: "load_older", filter })
}

function pausedOrNot(state: State): MessagesState {
  const { messages } = state
  if (!messages.paused) return { ...messages, paused: true, unseen: 0 }
  return withShown({ ...messages, paused: false, unseen: 0 }, state)
}

function followedOrNot(state: State, rows: number): MessagesState {
  const { messages } = state
  if (messages.position.follows)
    return { ...messages, position: { ...messages.position, follows: false } }
  const running = messages.paused ? pausedOrNot(state) : messages
  return { ...running, position: followed(running.shown, rows) }
}

function withDetail(state: State, tab: MessageDetail["tab"]): StateStep {
  const { shown, position } = state.messages
  const row = chosen(shown, position)
  if (!row) return step(state)
  const detail = { id: row.id, tab, top: 0, parts: {} }
  // An open message stays selected when newer ones arrive.
  const held = { ...position, follows: false }
  return step(withMessages(state, { position: held, detail }), {
    do: "load_message",
    id: row.id,
    tab,
  })
}

/** Keys that do the same in the list and in the detail. */
function pressOnOne(state: State, key: string): StateStep {
  const row = chosen(state.messages.shown, state.messages.position)
  if (!row) return step(state)
  if (key === "y") return step(state, { do: "copy", text: row.id })
  if (key !== "r") return step(state)
  const text = `Send ${row.id.slice(0, 8)}…${row.id.slice(-4)} to ${row.to} again, with its copies?`
  return step({ ...state, question: whether(text, { do: "resend", id: row.id }) })
}

function pressInDetail(state: State, detail: MessageDetail, key: string): StateStep {
  const turned_detail = turnedDetail(state, detail, key, messageLines)
  if (turned_detail !== undefined) return step(withMessages(state, { detail: turned_detail }))
  switch (key) {
    case "<tab>":
    case "<right>":
    case "l":
      return turned(state, detail, 1)
    case "<left>":
    case "h":
      return turned(state, detail, -1)
    case "n":
      return neighbour(state, detail, 1)
    case "p":
      return neighbour(state, detail, -1)
    default:
      return pressOnOne(state, key)
  }
}

function turned(state: State, detail: MessageDetail, by: number): StateStep {
  const at = (tabs.indexOf(detail.tab) + by + tabs.length) % tabs.length
  const tab = tabs[at] ?? "Timeline"
  const messages = { ...state.messages, detail: { ...detail, tab, top: 0 } }
  return step({ ...state, messages }, { do: "load_message", id: detail.id, tab })
}

function neighbour(state: State, detail: MessageDetail, by: number): StateStep {
  const { messages } = state
  const position = moved(messages.position, messages.shown, by, tableRows(layoutOf(state).height))
  return withDetail(withMessages(state, { position }), detail.tab)
}
