import type { Components } from "../../src/client/components"
import { counted, number } from "../lib/cells"
import { inboundText, receivedColumns } from "../lib/inbound-text"
import { address, shortId } from "../lib/table"
import { clockSecond } from "../lib/time"
import { action, back, copy, key, moving, neighbours, scrolling } from "./keys"
import { chosen, opened, rowsOf, withList } from "./lists"
import { ask, change, type Key, type ListForm, type Screen, type State, said, step } from "./state"

type InboundSummary = Components["InboundEmailSummary"]

const { AGE: _, ...columns } = receivedColumns

const inbound: ListForm<InboundSummary> = {
  route: "GET /v1/inbound-emails",
  columns: () => ({
    TIME: ({ created_at }) => clockSecond(created_at),
    ...columns,
    ANSWERS: {
      cell: ({ replied_to_message_id: id }) => (id ? shortId(id) : ""),
      least: 8,
      spare: 3,
    },
  }),
}

function info(state: State): string {
  const all = rowsOf(state, "inbound")
  const unverified = all.filter(({ verified }) => verified === false).length
  const newest = counted(all.length, "newest mail")
  return unverified > 0 ? `${newest}   ${number(unverified)} not verified` : newest
}

const REDELIVER = "send the event of this mail to the endpoints again (asks first)"

const redeliver = action("R", "redeliver", REDELIVER, (state) => {
  const row = chosen(state, "inbound")
  if (!row) return step(state)
  const text = `Send the event of the mail from ${address(row.from) || "<>"} again?`
  const name = "POST /v1/inbound-emails/{inbound_id}/redeliver"
  const sent = change(name, { params: { inbound_id: row.id } }, ({ data: { deliveries } }) => {
    const verb = deliveries.length === 1 ? "is" : "are"
    return `${counted(deliveries.length, "delivery", "deliveries")} ${verb} sent again`
  })
  return ask(state, text, sent)
})

const ANSWERED = "open the message that this mail answers or reports on"

/** Opens the message on its own screen, also where its list does not have it. */
const answered = action("m", "answered", ANSWERED, (state) => {
  const row = chosen(state, "inbound")
  if (!row) return step(state)
  const { replied_to_message_id: id } = row
  if (id === null) return said(state, "this mail answers no message of the project")
  const position = { ...state.lists.messages.position, selected: id, follows: false }
  return opened(withList(state, "messages", { position }), "messages", id)
})

const inList: Key[] = [
  moving,
  key("⏎", "detail", "open the mail: verdicts, spam score, report and text"),
  ...[answered, redeliver, copy()],
]

const inMail: Key[] = [
  ...[back("the list"), scrolling, answered, redeliver, ...neighbours("mail"), copy()],
]

export const inboundScreen: Screen = {
  info,
  lists: { inbound },
  none: () =>
    "no mail came in yet: belfry domains update DOMAIN --receiving on; under up write to in.mailbox.test",
  detail: {
    opens: "inbound",
    title: ({ id }) => `received mail ${id}`,
    under: ({ kind }: Components["InboundEmail"]) => kind,
    text: (mail: Components["InboundEmail"], paint) =>
      inboundText({ ...mail, text_body: mail.text_body ?? mail.stripped_text }, paint),
    read: "GET /v1/inbound-emails/{inbound_id}",
  },
  keys: ({ details }) => (details.inbound ? inMail : inList),
  actions: [answered, redeliver, copy()],
}
