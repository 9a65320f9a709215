import type { Paint } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { type Brush, type Column, tableLines } from "./columns"
import { layoutOf } from "./layout"
import type { MessageRow } from "./message-rows"
import { number, spanText } from "./spans"
import type { State } from "./state"

const good = ["sent", "delivered"]
const bad = ["bounced", "complained", "failed"]

/** Colour never says more than the word and its mark. */
export const statusBrush = (status: string): Brush =>
  good.includes(status) ? "green" : bad.includes(status) ? "red" : "yellow"

export const statusWord = (status: string): string =>
  bad.includes(status) ? `${status} ✗` : status

const columns: Column<MessageRow>[] = [
  { title: "TIME", width: 8, cell: ({ created_at }) => clockTime(iso(created_at)).slice(0, 8) },
  { title: "ID", width: 8, from: 100, cell: ({ id }) => id.slice(-8) }, // the random part
  {
    title: "CH",
    width: 5,
    from: 140,
    cell: ({ channel }) => (channel === "email" ? "mail" : channel),
  },
  { title: "TO", width: 0, share: 5, cell: ({ to }) => to },
  { title: "SUBJECT", width: 0, share: 6, cell: ({ subject }) => subject },
  {
    title: "STATUS",
    width: 12,
    cell: ({ status }) => statusWord(status),
    brush: ({ status }) => statusBrush(status),
  },
  { title: "TRY", width: 3, right: true, cell: ({ attempts }) => String(attempts) },
  { title: "AGE", width: 6, right: true, cell: ageOf },
]

const iso = (milliseconds: number) => new Date(milliseconds).toISOString()

/** How long it took, or, of what is still open, how long it has taken so far. */
function ageOf({ created_at, changed_at, status }: MessageRow, now: number): string {
  const is_open = status === "queued" || status === "sending"
  return spanText((is_open ? now : changed_at) - created_at)
}

/** The table of messages, each line exactly `width` cells. */
export function listLines(state: State, width: number, paint: Paint): string[] {
  const { messages, now } = state
  const { height } = layoutOf(state)
  const { selected, top } = messages.place
  const has_focus = messages.detail === null
  const rows = messages.shown
  return tableLines({ columns, rows, width, height, top, selected, now, paint, has_focus })
}

/** What is seen, of how many, and whether it moves. */
export function listInfo({ messages }: State): string {
  const { shown, rows, filter, paused, unseen, place, older } = messages
  const all = `${number(rows.length)}${older === "none" ? "" : "+"}`
  const noun = all === "1" ? "message" : "messages"
  const many =
    filter.text === ""
      ? `${all} ${noun}`
      : `filter: ${filter.text}   ${number(shown.length)} of ${all}`
  const moves = paused ? `paused, ${number(unseen)} new` : place.follows ? "following" : ""
  return [many, older === "loading" ? "loading…" : "", moves].filter(Boolean).join("   ")
}
