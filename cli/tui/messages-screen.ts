import type { Components } from "../../src/client/components"
import { number } from "../lib/cells"
import { attemptText, emailColumns, emailText, eventText } from "../lib/email-text"
import { reportLines } from "../lib/inbound-text"
import { cleanLine, cleanText, type Paint } from "../lib/terminal"
import { age, clockSecond, clockTime, tookText } from "../lib/time"
import { trackingText } from "../lib/tracking-text"
import { NO_FILTER } from "./filter"
import { back, copy, key, moving, neighbours, scrolling } from "./keys"
import { followed, indexOf } from "./layout"
import { drawList } from "./list-lines"
import { chosen, rowsOf, visibleRows, withList } from "./lists"
import type { MessageRow } from "./message-rows"
import {
  ask,
  type Key,
  type MessageParts,
  type Screen,
  type State,
  type StateStep,
  step,
  type Tab,
} from "./state"
import { textOfHtml } from "./text-of-html"
import { withFilter, withShown } from "./update"

const iso = (milliseconds: number) => new Date(milliseconds).toISOString()

/** How long it took, or, of what is still open, how long it has taken so far, or when it is due. */
function ageOf({ created_at, changed_at, status, scheduled_at }: MessageRow, now: number): string {
  const is_open = status === "queued" || status === "sending"
  if (is_open && scheduled_at !== null && scheduled_at > now) return age(iso(scheduled_at), now)
  return tookText((is_open ? now : changed_at) - created_at)
}

const list = drawList("messages", ({ now }) => ({
  TIME: ({ created_at }: MessageRow) => clockSecond(iso(created_at)),
  CH: {
    cell: ({ channel }: MessageRow) => (channel === "email" ? "mail" : channel),
    spare: 10,
  },
  ...emailColumns,
  AGE: { cell: (row: MessageRow) => ageOf(row, now), right: true, least: 9 },
}))

/** What is seen, of how many, and whether it moves. */
function info(state: State): string {
  const { rows, filter, paused, unseen, older } = state.messages
  const all = `${number(rows.length)}${older === "none" ? "" : "+"}`
  const many =
    filter.text === ""
      ? `${all} ${all === "1" ? "message" : "messages"}`
      : `filter: ${filter.text}   ${number(rowsOf(state, "messages").length)} of ${all}`
  const { follows } = state.lists.messages.position
  const moves = paused ? `paused, ${number(unseen)} new` : follows ? "following" : ""
  return [many, older === "loading" ? "loading…" : "", moves].filter(Boolean).join("   ")
}

/** Rows left below the reader when older ones are fetched. */
const AHEAD = 50

function withOlderAsked(state: State): StateStep {
  const { older, filter } = state.messages
  const rows = rowsOf(state, "messages")
  const left = rows.length - indexOf(rows, state.lists.messages.position)
  if (older !== "more" || left > AHEAD) return step(state)
  const messages = { ...state.messages, older: "loading" as const }
  return step({ ...state, messages }, { do: "load_older", filter })
}

function pausedOrNot(state: State): State {
  const { messages } = state
  const next = { ...state, messages: { ...messages, paused: !messages.paused, unseen: 0 } }
  return withShown(next)
}

function followedOrNot(state: State): State {
  const { position } = state.lists.messages
  if (position.follows) {
    return withList(state, "messages", { position: { ...position, follows: false } })
  }
  const running = state.messages.paused ? pausedOrNot(state) : state
  const rows = rowsOf(running, "messages")
  return withList(running, "messages", { position: followed(rows, visibleRows(state, "messages")) })
}

const resend: Key = {
  ...key("r", "resend", "send this message again (asks first)"),
  word: "resend",
  press(state) {
    const row = chosen(state, "messages")
    if (!row) return step(state)
    const name = `${row.id.slice(0, 8)}…${row.id.slice(-4)}`
    const text = `Send ${name} to ${row.to} again, with its copies?`
    return ask(state, text, { do: "resend", id: row.id })
  },
}

const pause: Key = {
  ...key("Space", "pause", "pause the list, or continue it"),
  word: "pause",
  press: (state) => step(pausedOrNot(state)),
}

const follow: Key = {
  ...key("f", "follow", "follow the newest message, or stop following"),
  word: "follow",
  press: (state) => step(followedOrNot(state)),
}

const FILTER = "filter: status:bounced to:*@x.test since:1h tag:y template:n subject:z -word word"

const inList: Key[] = [
  moving,
  key("⏎", "detail", "open the message: timeline, headers, text, raw, events"),
  key("/", "filter", FILTER),
  pause,
  follow,
  resend,
  copy(),
  {
    ...key("Esc", "", ""),
    press: (state) =>
      state.messages.filter.text === "" ? step(state) : withFilter(state, NO_FILTER),
  },
]

const inDetail: Key[] = [
  back("the list"),
  key("←→", "tab", "open another tab: ← → or Tab"),
  scrolling,
  ...neighbours("message"),
  resend,
  copy(),
]

/** A longer text is cut. */
const SHOWN_CHARACTERS = 200_000

/** What stands on a tab; undefined while it is not read yet. */
export function messageText(
  parts: MessageParts,
  paint: Paint,
  _: number,
  tab: Tab,
): string | undefined {
  const { email, attempts = [], reports = [], raw, content, events, tracking } = parts
  switch (tab) {
    case "Timeline": {
      if (!email) return undefined
      const tried = attempts.map((one) => attemptText(one, paint)).join("\n")
      const reported = reports.map((mail) => reportText(mail, paint))
      return [emailText(email, paint), tried, ...reported].filter(Boolean).join("\n\n")
    }
    case "Headers":
      return raw === undefined ? undefined : wholeText(raw.split(/\r?\n\r?\n/, 1)[0], paint)
    case "Text":
      return content && wholeText(content.html ? textOfHtml(content.html) : content.text, paint)
    case "Raw":
      return raw === undefined ? undefined : wholeText(raw, paint)
    case "Events":
      return events?.events.map((event) => eventLines(event, paint).join("\n")).join("\n")
    case "Tracking":
      return tracking && trackingText(tracking, paint)
  }
}

/** What a receiving server reported afterwards (RFC 3464). */
function reportText(mail: Components["InboundEmailSummary"], paint: Paint): string {
  const title = paint.bold(`DSN  ${clockTime(mail.created_at)}  ${cleanLine(mail.id)}`)
  return [title, ...reportLines(mail).map((line) => `  ${line}`)].join("\n")
}

function eventLines(event: Components["EmailEvents"]["events"][number], paint: Paint): string[] {
  const { id, bounce_type, bounce_subtype, detail, url, actor, user_agent } = event
  const known = Object.entries(detail ?? {}).filter(([, value]) => value !== null)
  const facts = [
    [bounce_type, bounce_subtype].filter(Boolean).join(" "),
    url ?? "",
    actor ? [actor, user_agent].filter(Boolean).join(", ") : "",
    ...known.map(([name, value]) => `${name}: ${plain(value)}`),
  ].filter(Boolean)
  const lines = facts.map((fact) => `  ${cleanLine(fact)}`)
  return [eventText(event, paint), paint.dim(`  ${cleanLine(id)}`), ...lines]
}

const plain = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))

function wholeText(found: string | null | undefined, paint: Paint): string {
  if (!found) return paint.dim("there is none")
  const rest = found.length - SHOWN_CHARACTERS
  const more = rest > 0 ? `\n${paint.dim(`… ${number(rest)} more characters`)}` : ""
  return cleanText(found.slice(0, SHOWN_CHARACTERS)) + more
}

export const messagesScreen: Screen = {
  // Which template a mail was made from, no event tells.
  load({ messages: { filter }, details }) {
    const is_of_template = filter.query.template_id !== undefined && !details.messages
    return is_of_template ? [{ do: "load_newest", filter }] : []
  },
  info,
  lists: [list],
  none: ({ messages: { filter } }) =>
    filter.text === "" ? "no message yet" : "no message passes the filter: Esc removes it",
  moved: withOlderAsked,
  detail: {
    opens: "messages",
    title: ({ id }) => id,
    text: messageText,
    load: ({ id, tab }) => ({ do: "load_message", id, tab }),
  },
  keys: ({ details }) => (details.messages ? inDetail : inList),
  actions: [resend, pause, follow, copy()],
}
