import type { Components } from "../../src/client/components"
import { deliveryColumns, deliveryText } from "../commands/deliveries"
import { webhookColumns } from "../commands/webhooks"
import { bar, counted, number } from "../lib/cells"
import { Failure } from "../lib/errors"
import { shortId } from "../lib/table"
import { clockSecond, moment, tookText } from "../lib/time"
import { action, back, copy, key, moving, neighbours, scrolling, untold } from "./keys"
import { chosen, loadOf, rowsOf } from "./lists"
import {
  ask,
  change,
  type Key,
  type ListForm,
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

const endpoints: ListForm<Webhook> = {
  route: "GET /v1/webhooks",
  columns: () => ({
    ...endpointColumns,
    BREAKER: {
      cell: ({ consecutive_failures: failures }) =>
        `${bar(failures / BREAKER, BREAKER)} ${failures}/${BREAKER}`,
      paint: (text, { consecutive_failures: failures }, paint) =>
        failures >= 8 ? paint.red(text) : failures >= 5 ? paint.yellow(text) : text,
      least: 16,
      spare: 1,
    },
    "LAST OK": { cell: ({ last_success_at }) => clockSecond(last_success_at), least: 8, spare: 2 },
  }),
}

const { AGE: ___, ...columns } = deliveryColumns

const deliveries: ListForm<Rows["deliveries"]> = {
  route: "GET /v1/webhooks/{webhook_id}/deliveries",
  columns: () => ({
    TIME: ({ created_at }) => clockSecond(created_at),
    ...columns,
    // A receiver knows the id of the event.
    ID: { cell: ({ event_id }) => shortId(event_id), spare: 9 },
  }),
}

function info(state: State): string {
  const all = rowsOf(state, "endpoints")
  const off = all.filter(({ status }) => status !== "active").length
  const some = off > 0 ? `, ${off} off` : ""
  const below = rowsOf(state, "deliveries").length
  return `${counted(all.length, "endpoint")}${some}   ${below} newest deliveries`
}

const delivery = (state: State) => (state.lower.webhooks ? chosen(state, "deliveries") : undefined)

const ONE = "POST /v1/webhooks/{webhook_id}"

/** A change of the chosen endpoint, which is refused without a scope that may write. */
const changing = (
  name: string,
  word: string,
  long: string,
  press: (state: State, endpoint: Webhook) => StateStep,
): Key => ({
  ...action(name, word, long, (state) => {
    const endpoint = chosen(state, "endpoints")
    if (!endpoint) return step(state)
    return state.read_only === null ? press(state, endpoint) : said(state, state.read_only)
  }),
  changes: true,
})

const test = changing("t", "test", "send a test event to this endpoint", (state, { id }) =>
  step(
    state,
    change(`${ONE}/test`, { params: { webhook_id: id }, body: {} }, ({ data }) => {
      const { delivered, response_status: status, duration_ms: took, error } = data
      const answer = [status, error].filter(Boolean).join(" ")
      return `test ${delivered ? "delivered" : "failed ✗"}: ${answer} in ${tookText(took ?? 0)}`
    }),
  ),
)

const REPLAY = "send held or failed events again, from a given time (asks first)"

const replay = changing("R", "replay", REPLAY, (state) =>
  step({ ...state, prompt: { asks: "replay", text: "1h held", problem: null } }),
)

const PORTIONS = ["held", "failed", "all"] as const

/** Asks whether the events that were typed, as in `1h held`, are to be sent to the chosen endpoint again. */
export function askReplay(
  state: State,
  text: string,
  refused: (problem: string) => StateStep,
): StateStep {
  const endpoint = chosen(state, "endpoints")
  if (!endpoint) return step(state)
  if (state.read_only !== null) return refused(state.read_only)
  const [since = "", word = "held", ...more] = text.split(/\s+/)
  const status = PORTIONS.find((one) => one === word)
  if (!status || more.length > 0) {
    return refused(`write a time, then ${PORTIONS.join(", ")}, as: 1h held`)
  }
  try {
    const input = {
      params: { webhook_id: endpoint.id },
      body: { since: moment(since, "since"), status },
    }
    const asking = `Send ${status} events since ${since} to ${endpoint.url} again?`
    const done = ({ data }: { data: { id: string } }) => `the replay runs as job ${data.id}`
    return ask(state, asking, change(`${ONE}/replay`, input, done))
  } catch (error) {
    if (error instanceof Failure) return refused(error.message)
    throw error
  }
}

const retry = changing("r", "retry", "attempt this delivery again now (asks first)", (state) => {
  const found = delivery(state)
  if (!found) return said(state, "choose a delivery first: press Tab")
  const { webhook_id, id: delivery_id, event_type } = found
  const input = { params: { webhook_id, delivery_id } }
  const done = () => "the delivery is attempted again"
  return ask(
    state,
    `Attempt the delivery of ${event_type} again?`,
    change(`${ONE}/deliveries/{delivery_id}/retry`, input, done),
  )
})

/** Held events leave at once, or wait for a replay: the question asks for one of the two. */
const enable = changing(
  "e",
  "enable",
  "enable this endpoint, with or without its held events (asks first)",
  (state, { id: webhook_id, url, status, held_count }) => {
    if (status === "active") {
      return said(state, "the endpoint is active: p pauses it, d disables it")
    }
    const enabled = (portion: "held" | "none") =>
      change(`${ONE}/enable`, { params: { webhook_id }, body: { replay: portion } }, ({ data }) => {
        if (portion === "held") return "enabled; the held events are sent now"
        if (data.held_count === 0) return "enabled"
        return `enabled; ${number(data.held_count)} held events wait: R replays them`
      })
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
  changing(
    name,
    word,
    `${long}: its events are held for 7 days (asks first)`,
    (state, endpoint) => {
      if (endpoint.status !== "active") return said(state, "the endpoint is off: e enables it")
      const verb = word === "pause" ? "Pause" : "Disable"
      const text = `${verb} it, and hold its events for 7 days? ${endpoint.url}`
      const done = () => `${word}d; its events are held for 7 days`
      return ask(
        state,
        text,
        change(`${ONE}/${word}`, { params: { webhook_id: endpoint.id } }, done),
      )
    },
  )

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
    key("Tab", to, "move between endpoints and deliveries; ⏎ moves down, Esc moves up")
  const opening = key("⏎", "detail", "open the delivery: request, answer, timing, next attempt")
  const told = state.lower.webhooks
    ? [moving, opening, retry, replay, first, test, tab("endpoints"), ...others, copied]
    : [moving, tab("deliveries"), test, first, replay, ...others, copied, untold(retry)]
  // Without an endpoint, as before the first answer, they do nothing yet.
  return endpoint ? told : told.map(inHelp)
}

export const webhooksScreen: Screen = {
  loads: ({ details: { webhooks: opened } }) => [
    { do: "load_list", list: "endpoints" },
    ...(opened ? [loadOf("webhooks", opened)] : []),
  ],
  info,
  lists: { endpoints, deliveries },
  none: (_, list) =>
    list === "endpoints"
      ? "there is no endpoint yet: belfry webhooks create https://… --event '*'"
      : "no delivery to this endpoint yet",
  detail: {
    opens: "deliveries",
    title: ({ id }) => `delivery ${id}`,
    under: ({ event_type }: Components["DeliveryDetail"]) => event_type,
    text: deliveryText,
    read: "GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id}",
  },
  keys,
  actions: [test, replay, retry, enable, pause, disable, copied],
}
