import type { Components } from "../../src/client/components"
import { number } from "../lib/cells"
import type { Client } from "../lib/client"
import {
  attemptText,
  emailColumns,
  emailText,
  eventText,
  isHeld,
  trackingText,
} from "../lib/email-text"
import { reportLines } from "../lib/inbound-text"
import { inboxText } from "../lib/inbox-text"
import { pushText } from "../lib/push-text"
import { smsText } from "../lib/sms-text"
import { cleanLine, cleanText, type Paint } from "../lib/terminal"
import { age, clockSecond, clockTime, tookText } from "../lib/time"
import { type MessageFilter, NO_FILTER, shortChannel } from "./filter"
import { action, back, copy, key, moving, neighbours, scrolling } from "./keys"
import { chosen, followed, indexOf, loadOf, rowsOf, visibleRows, withList, withRows } from "./lists"
import { counted, type MessageRow, mergeUpdates, type RowUpdate } from "./message-rows"
import { PAGE, readable } from "./reading"
import {
  ask,
  change,
  type Key,
  type ListForm,
  type MessageParts,
  type Opening,
  type Screen,
  type State,
  type StateStep,
  said,
  step,
  type Tab,
} from "./state"

const iso = (milliseconds: number) => new Date(milliseconds).toISOString()

/** How long it took, or, of what is still open, how long it has taken so far, or when it is due. */
function ageOf({ created_at, changed_at, status, scheduled_at }: MessageRow, now: number): string {
  const is_open = status === "queued" || status === "sending"
  if (is_open && scheduled_at !== null && scheduled_at > now) return age(iso(scheduled_at), now)
  return tookText((is_open ? now : changed_at) - created_at)
}

const messages: ListForm<MessageRow> = {
  columns: ({ now }) => ({
    TIME: ({ created_at }) => clockSecond(iso(created_at)),
    CH: { cell: ({ channel }) => shortChannel(channel), spare: 10 },
    ...emailColumns,
    AGE: { cell: (row) => ageOf(row, now), right: true, least: 9 },
  }),
}

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

/** The rows with what is said now. An opened message that it is about is read again. */
export function heardFacts(state: State, facts: readonly RowUpdate[]): StateStep {
  const { rows, counts } = mergeUpdates(state.messages.rows, facts)
  const { paused, unseen } = state.messages
  const messages = { ...state.messages, rows, unseen: paused ? unseen + counts.added : 0 }
  const next = withShown({ ...state, rates: counted(state.rates, counts, state.now), messages })
  const detail = state.details.messages
  const is_open = detail !== undefined && facts.some(({ id }) => id === detail.id)
  if (!is_open || !["Timeline", "Events", "Tracking"].includes(detail.tab)) return step(next)
  return step(next, loadOf("messages", detail))
}

/** Nothing is held since a restore any more, also where no event has told of a message yet. */
export function withoutHeld(state: State): State {
  const { messages } = state
  if (!messages.rows.some(({ status_reason }) => isHeld(status_reason))) return state
  const rows = messages.rows.map((row) =>
    isHeld(row.status_reason) ? { ...row, status_reason: "" } : row,
  )
  return withShown({ ...state, messages: { ...messages, rows } })
}

/** With a page of older messages, which was asked for with the filter of this text. */
export function withOlder(
  state: State,
  { facts, more, filter }: { facts: readonly RowUpdate[]; more: boolean; filter: string },
): State {
  const { rows } = mergeUpdates(state.messages.rows, facts, false)
  // A page that was asked for with another filter says nothing about the end of this list.
  const is_same = filter === state.messages.filter.text
  const older = is_same ? (more ? "more" : "none") : state.messages.older
  return withShown({ ...state, messages: { ...state.messages, rows, older } })
}

/** Filters again, unless paused. The selected row stays where it is. */
export function withShown(state: State): State {
  const { paused, filter, rows } = state.messages
  if (paused) return state
  const shown = filter.text === "" ? rows : rows.filter((row) => filter.matches(row, state.now))
  return withRows(state, "messages", shown)
}

/** What is here already is filtered at once; the server is asked for what is not. */
export function withFilter(state: State, filter: MessageFilter): StateStep {
  const running = { filter, paused: false, unseen: 0, older: "loading" as const }
  const messages = { ...state.messages, ...running }
  const next = withShown({ ...state, screen: "messages", messages })
  return step(next, { do: "load_older", filter })
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

const nameOf = ({ id }: MessageRow) => `${id.slice(0, 8)}…${id.slice(-4)}`

/** It waits for a time that somebody chose. */
const isScheduled = ({ status, scheduled_at }: MessageRow, now: number): boolean =>
  status === "queued" && scheduled_at !== null && scheduled_at > now

const resend = action("r", "resend", "send this message again (asks first)", (state) => {
  const row = chosen(state, "messages")
  if (!row) return step(state)
  if (row.channel !== "email") return said(state, "only an email can be sent again")
  const due = isScheduled(row, state.now) ? age(iso(row.scheduled_at ?? 0), state.now) : undefined
  const text =
    due === undefined
      ? `Send ${nameOf(row)} to ${row.to} again, with its copies?`
      : `It is due ${due}. Send a copy to ${row.to} now? Only :cancel stops the first.`
  const input = { params: { email_id: row.id }, body: {} }
  const done = ({ data }: { data: { id: string } }) => `sent again as ${data.id}`
  return ask(state, text, change("POST /v1/emails/{email_id}/resend", input, done))
})

const cancel = {
  ...action("c", "cancel", "cancel a message that waits or is scheduled (asks first)", (state) => {
    const row = chosen(state, "messages")
    if (!row) return step(state)
    if (row.status !== "queued")
      return said(state, `only a queued message can be cancelled; this one is ${row.status}`)
    const asked = cancelOf(row, () => `cancelled ${nameOf(row)}`)
    return ask(state, `Cancel ${nameOf(row)} to ${row.to}? It will not be sent.`, asked)
  }),
  short: "", // the line of keys is full
}

function cancelOf({ channel, id }: MessageRow, done: () => string) {
  if (channel === "sms")
    return change("POST /v1/sms/{sms_id}/cancel", { params: { sms_id: id } }, done)
  if (channel === "push")
    return change("POST /v1/push/{push_id}/cancel", { params: { push_id: id } }, done)
  return change("POST /v1/emails/{email_id}/cancel", { params: { email_id: id } }, done)
}

const pause = action("Space", "pause", "pause the list, or continue it", (state) =>
  step(pausedOrNot(state)),
)

const FOLLOW = "follow the newest message, or stop following"
const follow = action("f", "follow", FOLLOW, (state) => step(followedOrNot(state)))

const FILTER = "filter: status:bounced to:*@x.test since:1h tag:y template:n subject:z -word word"

const inList: Key[] = [
  moving,
  key("⏎", "detail", "open the message: timeline, headers, text, raw, events"),
  key("/", "filter", FILTER),
  pause,
  follow,
  resend,
  cancel,
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
  cancel,
  copy(),
]

const SHOWN_CHARACTERS = 200_000

/** What stands on a tab; undefined while it is not read yet. */
export function messageText(
  parts: MessageParts,
  paint: Paint,
  _: number,
  tab: Tab,
): string | undefined {
  const { email, sms, push, inbox, attempts = [], reports = [] } = parts
  const { raw, content, events, tracking } = parts
  if (sms) return textOf(sms, tab, paint)
  if (push) return pushTextOf(push, tab, paint)
  if (inbox) return inboxTextOf(inbox, tab, paint)
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
      return content && wholeText(content.text, paint)
    case "Raw":
      return raw === undefined ? undefined : wholeText(raw, paint)
    case "Events":
      return events?.events.map((event) => eventLines(event, paint).join("\n")).join("\n")
    case "Tracking":
      return tracking && trackingText(tracking, paint)
  }
}

/** A text is short: one request brings all of it, and it has neither headers nor links. */
function textOf(sms: Components["Sms"], tab: Tab, paint: Paint): string {
  if (tab === "Timeline" || tab === "Events") return smsText(sms, paint)
  return tab === "Text" ? wholeText(sms.body, paint) : paint.dim("a text has none")
}

function pushTextOf(message: Components["PushMessage"], tab: Tab, paint: Paint): string {
  if (tab === "Timeline" || tab === "Events") return pushText(message, paint)
  return tab === "Text" ? wholeText(message.body, paint) : paint.dim("a push message has none")
}

function inboxTextOf(message: Components["InboxMessage"], tab: Tab, paint: Paint): string {
  if (tab === "Timeline") return inboxText(message, paint)
  return tab === "Text"
    ? wholeText(message.body, paint)
    : paint.dim("a message in an inbox has none")
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

async function partsOf(client: Client, { id, of, tab }: Opening): Promise<MessageParts> {
  if (of === "sms") {
    return { sms: (await client.call("GET /v1/sms/{sms_id}", { params: { sms_id: id } })).data }
  }
  if (of === "push") {
    return { push: (await client.call("GET /v1/push/{push_id}", { params: { push_id: id } })).data }
  }
  if (of === "in_app") {
    const params = { inbox_id: id }
    return { inbox: (await client.call("GET /v1/inbox/{inbox_id}", { params })).data }
  }
  const input = { params: { email_id: id } }
  switch (tab) {
    case "Timeline": {
      const [found, attempts] = await Promise.all([
        client.call("GET /v1/emails/{email_id}", input),
        client.call("GET /v1/emails/{email_id}/attempts", input),
      ])
      const reports = await reportsOn(client, found.data)
      return { email: found.data, attempts: attempts.data, reports }
    }
    case "Events":
      return { events: (await client.call("GET /v1/emails/{email_id}/events", input)).data }
    case "Tracking":
      return { tracking: (await client.call("GET /v1/emails/{email_id}/tracking", input)).data }
    case "Text":
      return { content: (await client.call("GET /v1/emails/{email_id}/content", input)).data }
    default: {
      const bytes = await client.call("GET /v1/emails/{email_id}/raw", input)
      return { raw: new TextDecoder().decode(bytes) }
    }
  }
}

const REPORTED = /^email\.(soft_)?bounced$/

/** Servers report on a message, at the latest when it has bounced. A key may not read received mail. */
async function reportsOn(client: Client, { id, thread_id, timeline }: Components["Email"]) {
  if (!timeline.some(({ type }) => REPORTED.test(type))) return []
  const query = { thread_id: thread_id ?? id, kind: "bounce", ...PAGE } as const
  const answer = await readable(client.call("GET /v1/inbound-emails", { query }), () => true)
  const mails = answer?.data ?? []
  return mails.filter(({ replied_to_message_id }) => replied_to_message_id === id).reverse()
}

/** So long a list may lag. What it does not have then was removed. */
const UNTOLD_MILLISECONDS = 60_000

const isUntold = ({ channel, subject, created_at }: MessageRow, now: number): boolean =>
  channel !== "email" && subject === "" && now - created_at < UNTOLD_MILLISECONDS

export const messagesScreen: Screen = {
  // No event tells which template a mail was made from, nor what any other message says.
  loads({ messages: { filter, rows }, details, now }) {
    if (details.messages) return []
    const is_of_template = filter.query.template_id !== undefined
    const is_untold = rows.slice(0, PAGE.per_page).some((row) => row.is_new && isUntold(row, now))
    return [
      ...(is_of_template ? [{ do: "load_newest" as const, filter }] : []),
      ...(is_untold ? [{ do: "load_newest" as const, filter: NO_FILTER }] : []),
    ]
  },
  info,
  lists: { messages },
  none: ({ messages: { filter } }) =>
    filter.text === "" ? "no message yet" : "no message passes the filter: Esc removes it",
  moved: withOlderAsked,
  detail: {
    opens: "messages",
    title: ({ id }) => id,
    text: messageText,
    read: partsOf,
  },
  keys: ({ details }) => (details.messages ? inDetail : inList),
  actions: [resend, cancel, pause, follow, copy()],
}
