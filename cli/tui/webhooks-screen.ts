import type { Components } from "../../src/client/components"
import { deliveryColumns, deliveryText } from "../commands/deliveries"
import { webhookColumns } from "../commands/webhooks"
import { bar, counted, number } from "../lib/cells"
import { shortId } from "../lib/table"
import { clockSecond } from "../lib/time"
import { back, copy, key, moving, neighbours, scrolling, untold } from "./keys"
import { drawList } from "./list-lines"
import { chosen, rowsOf } from "./lists"
import {
  ask,
  type Key,
  type Rows,
  type Screen,
  type State,
  type StateStep,
  said,
  step,
} from "./state"

type Webhook = Components["Webhook"]

/** Failed attempts in a row that switch an endpoint off (contract 30, 2). */
const BREAKER = 10

const { AGE: _, FAILED: __, ...endpointColumns } = webhookColumns

const endpoints = drawList("endpoints", () => ({
  ...endpointColumns,
  BREAKER: {
    cell: ({ consecutive_failures: failures }: Webhook) =>
      `${bar(failures / BREAKER, BREAKER)} ${failures}/${BREAKER}`,
    paint: (text, { consecutive_failures: failures }, paint) =>
      failures >= 8 ? paint.red(text) : failures >= 5 ? paint.yellow(text) : text,
    least: 16,
    spare: 1,
  },
  "LAST OK": { cell: ({ last_success_at }) => clockSecond(last_success_at), least: 8, spare: 2 },
}))

const { AGE: ___, ...columns } = deliveryColumns

const deliveries = drawList("deliveries", () => ({
  TIME: ({ created_at }: Rows["deliveries"]) => clockSecond(created_at),
  ...columns,
  // A receiver knows the id of the event.
  ID: { cell: ({ event_id }: Rows["deliveries"]) => shortId(event_id), spare: 9 },
}))

/** How many there are, in one line. */
function info(state: State): string {
  const all = rowsOf(state, "endpoints")
  const off = all.filter(({ status }) => status !== "active").length
  const some = off > 0 ? `, ${off} off` : ""
  const below = rowsOf(state, "deliveries").length
  return `${counted(all.length, "endpoint")}${some}   ${below} newest deliveries`
}

const delivery = (state: State) => (state.lower.webhooks ? chosen(state, "deliveries") : undefined)

/** A change of the chosen endpoint, which is refused without a scope that may write. */
const change = (
  name: string,
  word: string,
  long: string,
  press: (state: State, endpoint: Webhook) => StateStep,
): Key => ({
  ...key(name, word, long),
  ...{ word, changes: true },
  press(state) {
    const endpoint = chosen(state, "endpoints")
    if (!endpoint) return step(state)
    return state.read_only === null ? press(state, endpoint) : said(state, state.read_only)
  },
})

const test = change("t", "test", "send a test event to this endpoint", (state, { id }) =>
  step(state, { do: "test", webhook_id: id }),
)

const REPLAY = "send held or failed events again, from a given time (asks first)"

const replay = change("R", "replay", REPLAY, (state) =>
  step({ ...state, prompt: { asks: "replay", text: "1h held", problem: null } }),
)

const retry = change("r", "retry", "attempt this delivery again now (asks first)", (state) => {
  const found = delivery(state)
  if (!found) return said(state, "choose a delivery first: press Tab")
  const { webhook_id, id, event_type } = found
  return ask(state, `Attempt the delivery of ${event_type} again?`, { do: "retry", webhook_id, id })
})

/** Held events leave at once, or wait for a replay: the question asks for one of the two. */
const enable = change(
  "e",
  "enable",
  "enable this endpoint, with or without its held events (asks first)",
  (state, { id: webhook_id, url, status, held_count }) => {
    if (status === "active") {
      return said(state, "the endpoint is active: p pauses it, d disables it")
    }
    const enabled = (portion: "held" | "none") =>
      ({ do: "enable", webhook_id, replay: portion }) as const
    if (held_count === 0) return ask(state, `Enable ${url}?`, enabled("none"))
    const choices = [
      { key: "y", word: "send them", action: enabled("held") },
      { key: "o", word: "only enable", action: enabled("none") },
    ]
    const text = `Enable it and send ${number(held_count)} held events? ${url}`
    return step({ ...state, question: { text, choices } })
  },
)

const off = (name: string, word: "pause" | "disable", long: string) =>
  change(name, word, `${long}: its events are held for 7 days (asks first)`, (state, endpoint) => {
    if (endpoint.status !== "active") return said(state, "the endpoint is off: e enables it")
    const verb = word === "pause" ? "Pause" : "Disable"
    const text = `${verb} it, and hold its events for 7 days? ${endpoint.url}`
    return ask(state, text, { do: word, webhook_id: endpoint.id })
  })

const pause = off("p", "pause", "pause it")
const disable = off("d", "disable", "disable it for good")

const copied = copy(
  (state) => state.details.webhooks?.id ?? (delivery(state) ?? chosen(state, "endpoints"))?.id,
)

/** The line of keys names what may be done now; the help tells all three switches. */
function keys(state: State): readonly Key[] {
  if (state.details.webhooks) {
    const told = [back("the deliveries"), scrolling, retry, ...neighbours("delivery"), copied]
    return [...told, ...[test, replay, enable, disable].map(untold)]
  }
  const endpoint = chosen(state, "endpoints")
  const inHelp = (one: Key): Key => ({ ...one, short: "" })
  const is_off = endpoint !== undefined && endpoint.status !== "active"
  const first = is_off ? enable : pause
  const others = is_off ? [pause, disable].map(inHelp) : [disable, inHelp(enable)]
  const tab = (to: string) =>
    key("Tab", to, "move between endpoints and deliveries; ⏎ goes down, Esc up")
  const opening = key("⏎", "detail", "open the delivery: request, answer, timing, next attempt")
  const told = state.lower.webhooks
    ? [moving, opening, retry, replay, first, test, tab("endpoints"), ...others, copied]
    : [moving, tab("deliveries"), test, first, replay, ...others, copied, untold(retry)]
  // Without an endpoint, as before the first answer, they do nothing yet.
  return endpoint ? told : told.map(inHelp)
}

export const webhooksScreen: Screen = {
  load: ({ details: { webhooks: opened } }) => [
    { do: "load_endpoints" },
    ...(opened
      ? [{ do: "load_delivery", webhook_id: opened.of ?? "", id: opened.id } as const]
      : []),
  ],
  info,
  lists: [endpoints, deliveries],
  none: (_, list) =>
    list === "endpoints"
      ? "there is no endpoint yet: belfry webhooks create https://… --event '*'"
      : "no delivery to this endpoint yet",
  below(state) {
    const webhook_id = state.lists.endpoints.position.selected
    return webhook_id === null ? [] : [{ do: "load_deliveries", webhook_id }]
  },
  detail: {
    opens: "deliveries",
    title: ({ id }) => `delivery ${id}`,
    under: ({ event_type }: Components["DeliveryDetail"]) => event_type,
    text: (found: Components["DeliveryDetail"], paint) => deliveryText(found, paint),
    load: ({ id, of }) => ({ do: "load_delivery", webhook_id: of ?? "", id }),
  },
  keys,
  actions: [test, replay, retry, enable, pause, disable, copied],
}
