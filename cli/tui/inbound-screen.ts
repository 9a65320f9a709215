import type { Components } from "../../src/client/components"
import { counted, number } from "../lib/cells"
import { address } from "../lib/email-text"
import { inboundText, receivedColumns } from "../lib/inbound-text"
import { shortId } from "../lib/table"
import { clockSecond } from "../lib/time"
import { back, copy, key, moving, neighbours, scrolling } from "./keys"
import { drawList } from "./list-lines"
import { chosen, rowsOf, withDetail, withList } from "./lists"
import { ask, type Key, type Screen, type State, said, step } from "./state"
import { textOfHtml } from "./text-of-html"

type InboundSummary = Components["InboundEmailSummary"]

const { AGE: _, ...columns } = receivedColumns

const list = drawList("inbound", () => ({
  TIME: ({ created_at }: InboundSummary) => clockSecond(created_at),
  ...columns,
  ANSWERS: {
    cell: ({ replied_to_message_id: id }: InboundSummary) => (id ? shortId(id) : ""),
    least: 8,
    spare: 3,
  },
}))

/** How many there are, in one line. */
function info(state: State): string {
  const all = rowsOf(state, "inbound")
  const unverified = all.filter(({ verified }) => verified === false).length
  const newest = counted(all.length, "newest mail")
  return unverified > 0 ? `${newest}   ${number(unverified)} not verified` : newest
}

const redeliver: Key = {
  ...key("R", "redeliver", "send the event of this mail to the endpoints again (asks first)"),
  word: "redeliver",
  press(state) {
    const row = chosen(state, "inbound")
    if (!row) return step(state)
    const text = `Send the event of the mail from ${address(row.from) || "<>"} again?`
    return ask(state, text, { do: "redeliver", id: row.id })
  },
}

/** Opens the message on its own screen, also where its list does not have it. */
const answered: Key = {
  ...key("m", "answered", "open the message that this mail answers or reports on"),
  word: "answered",
  press(state) {
    const row = chosen(state, "inbound")
    if (!row) return step(state)
    const { replied_to_message_id: id } = row
    if (id === null) return said(state, "this mail answers no message of the project")
    const position = { ...state.lists.messages.position, selected: id, follows: false }
    const there = withList({ ...state, screen: "messages" }, "messages", { position })
    const tab = "Timeline"
    const detail = { id, of: null, tab, top: 0, found: null, problem: null } as const
    return step(withDetail(there, "messages", detail), { do: "load_message", id, tab })
  },
}

const inList: Key[] = [
  moving,
  key("⏎", "detail", "open the mail: verdicts, spam score, report and text"),
  ...[answered, redeliver, copy()],
]

const inMail: Key[] = [
  ...[back("the list"), scrolling, answered, redeliver, ...neighbours("mail"), copy()],
]

export const inboundScreen: Screen = {
  load: () => [{ do: "load_inbound" }],
  info,
  lists: [list],
  none: () => "no mail came in yet: belfry domains update DOMAIN --receiving on",
  detail: {
    opens: "inbound",
    title: ({ id }) => `received mail ${id}`,
    under: ({ kind }: Components["InboundEmail"]) => kind,
    text(mail: Components["InboundEmail"], paint) {
      const { text_body, html_body, stripped_text } = mail
      const body = text_body ?? (html_body && textOfHtml(html_body)) ?? stripped_text
      return inboundText({ ...mail, text_body: body }, paint)
    },
    load: ({ id }) => ({ do: "load_inbound_mail", id }),
  },
  keys: ({ details }) => (details.inbound ? inMail : inList),
  actions: [answered, redeliver, copy()],
}
