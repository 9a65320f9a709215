import type { Components } from "../../src/client/components"
import { address } from "../lib/email-text"
import { failedChecks } from "../lib/inbound-text"
import { shortId } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { number } from "./cells"
import { inboundLines } from "./details"
import { chosen, layoutOf, moved, stepsOf, tableRows, turnedDetail } from "./layout"
import {
  type InboundView,
  type State,
  type StateStep,
  step,
  whether,
  withInbound,
  withMessages,
} from "./state"
import { type MonitorColumn, tableLines } from "./table-lines"
import { told } from "./webhooks-screen"

type InboundSummary = Components["InboundEmailSummary"]

const columns: MonitorColumn<InboundSummary>[] = [
  { title: "TIME", width: 8, cell: ({ created_at }) => clockTime(created_at).slice(0, 8) },
  { title: "ID", width: 8, from: 110, cell: ({ id }) => shortId(id) },
  {
    title: "FROM",
    width: 0,
    share: 4,
    cell: ({ from, envelope }) => address(from) || envelope.from || "<>",
  },
  { title: "TO", width: 0, share: 4, from: 80, cell: ({ to_email }) => to_email },
  { title: "SUBJECT", width: 0, share: 5, cell: ({ subject }) => subject ?? "" },
  {
    title: "KIND",
    width: 12,
    cell: ({ kind, status }) => (status === "processed" ? kind : status),
    brush: ({ kind }) => (BAD.includes(kind) ? "red" : undefined),
  },
  {
    title: "CHECKED",
    width: 11,
    cell: ({ verified, ...mail }) => checkedCell(verified, failedChecks(mail)),
    brush: ({ verified }) =>
      verified === null ? undefined : verified ? ("green" as const) : ("red" as const),
  },
  {
    title: "SPAM",
    width: 6,
    from: 100,
    right: true,
    cell: ({ spam }) => (spam.flagged ? `${spam.score} ✗` : String(spam.score)),
    brush: ({ spam }) => (spam.flagged ? "red" : undefined),
  },
  {
    title: "ANSWERS",
    width: 8,
    from: 76,
    cell: ({ replied_to_message_id: id }) => (id ? shortId(id) : ""),
  },
]

const BAD = ["bounce", "complaint"]

/** `verified`, or which of SPF and DMARC failed. */
function checkedCell(verified: boolean | null, failed: readonly string[]): string {
  if (verified === null) return ""
  return verified ? "verified" : `${failed.join(" ")} ✗`
}

/** The table of received mail, each line exactly `width` cells. */
export function inboundTable(state: State, width: number, paint: Paint): string[] {
  const { mails, problem, position, detail } = state.inbound
  const { height } = layoutOf(state)
  if (mails === null || mails.length === 0) {
    return told(problem ?? (mails ? NONE : "loading…"), width, height)
  }
  const { selected, top } = position
  const has_focus = detail === null
  return tableLines({
    ...{ columns, rows: mails, width, height, top, selected, now: state.now, paint, has_focus },
  })
}

const NONE = "no mail came in yet: belfry domains update DOMAIN --receiving on"

/** How many there are, in one line. */
export function inboundInfo({ inbound: { mails, problem } }: State): string {
  if (problem !== null) return problem
  const all = mails ?? []
  const unverified = all.filter(({ verified }) => verified === false).length
  const count = `${number(all.length)} newest ${all.length === 1 ? "mail" : "mails"}`
  return unverified > 0 ? `${count}   ${number(unverified)} not verified` : count
}

/** Keys of the Inbound screen: in the list, or in the mail that is opened. */
export function pressOnInbound(state: State, key: string): StateStep {
  const { mails, position, detail } = state.inbound
  if (detail) return pressInMail(state, detail, key)
  const rows = tableRows(layoutOf(state).height)
  const by = stepsOf(key, rows)
  if (by !== undefined) {
    return step(withInbound(state, { position: moved(position, mails ?? [], by, rows) }))
  }
  return key === "<enter>" ? withMailOpen(state) : pressOnMail(state, key)
}

function withMailOpen(state: State): StateStep {
  const { mails, position } = state.inbound
  const row = chosen(mails ?? [], position)
  if (!row) return step(state)
  const detail = { id: row.id, top: 0, found: null, problem: null }
  // An opened mail stays selected when newer ones come.
  const held = { ...position, follows: false }
  const next = withInbound(state, { position: held, detail })
  return step(next, { do: "load_inbound_mail", id: row.id })
}

/** Keys that do the same in the list and in the opened mail. */
function pressOnMail(state: State, key: string): StateStep {
  const row = chosen(state.inbound.mails ?? [], state.inbound.position)
  if (!row) return step(state)
  switch (key) {
    case "y":
      return step(state, { do: "copy", text: row.id })
    case "m":
      return answeredMessage(state, row)
    case "R": {
      const text = `Send the event of the mail from ${address(row.from) || "<>"} again?`
      return step({ ...state, question: whether(text, { do: "redeliver", id: row.id }) })
    }
    default:
      return step(state)
  }
}

/** Opens the message on its own screen, also where its list does not have it. */
function answeredMessage(state: State, { replied_to_message_id: id }: InboundSummary): StateStep {
  if (id === null) {
    const notice = { text: "this mail answers no message of the project", at: state.now }
    return step({ ...state, notice })
  }
  const position = { ...state.messages.position, selected: id, follows: false }
  const detail = { id, tab: "Timeline" as const, top: 0, parts: {} }
  const next = withMessages({ ...state, screen: "messages" }, { position, detail })
  return step(next, { do: "load_message", id, tab: "Timeline" })
}

function pressInMail(state: State, detail: InboundView, key: string): StateStep {
  const turned_detail = turnedDetail(state, detail, key, inboundLines)
  if (turned_detail !== undefined) return step(withInbound(state, { detail: turned_detail }))
  switch (key) {
    case "n":
    case "p":
      return neighbour(state, key === "n" ? 1 : -1)
    default:
      return pressOnMail(state, key)
  }
}

function neighbour(state: State, by: number): StateStep {
  const { mails, position } = state.inbound
  const next = moved(position, mails ?? [], by, tableRows(layoutOf(state).height))
  return withMailOpen(withInbound(state, { position: next }))
}
