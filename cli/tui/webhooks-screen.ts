import type { Components } from "../../src/client/components"
import { shortId } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { fitted, meter, number, spanText, until } from "./cells"
import { deliveryLines } from "./details"
import { chosen, layoutOf, moved, stepsOf, tableRows, turnedDetail, webhookHeights } from "./layout"
import {
  type DeliveryView,
  type State,
  type StateStep,
  step,
  type WebhooksState,
  whether,
  withWebhooks,
} from "./state"
import { deliveryBrush, deliveryWord, type MonitorColumn, tableLines } from "./table-lines"

type Delivery = Components["Delivery"]
type Webhook = Components["Webhook"]

/** Failed attempts in a row that switch an endpoint off (contract 30, 2). */
const BREAKER = 10

const endpointColumns: MonitorColumn<Webhook>[] = [
  { title: "ENDPOINT", width: 0, share: 5, cell: ({ url }) => url },
  { title: "EVENTS", width: 0, share: 2, from: 100, cell: ({ events }) => events.join(" ") },
  {
    title: "STATUS",
    width: 17,
    cell: statusOf,
    brush: ({ status }) => (status === "active" ? "green" : "red"),
  },
  {
    title: "BREAKER",
    width: 16,
    cell: ({ consecutive_failures }) => meter(consecutive_failures, BREAKER),
    brush: ({ consecutive_failures: failures }) =>
      failures >= 8 ? "red" : failures >= 5 ? "yellow" : undefined,
  },
  { title: "HELD", width: 6, right: true, cell: ({ held_count }) => number(held_count ?? 0) },
  { title: "LAST OK", width: 8, from: 100, cell: ({ last_success_at: at }) => timeOf(at) },
]

const reasons: Partial<Record<string, string>> = {
  circuit_breaker: "breaker ✗",
  gone: "gone ✗",
  manual: "by hand",
  paused: "paused",
}

function statusOf({ status, disabled_reason }: Webhook): string {
  if (status === "active") return status
  return `off: ${reasons[disabled_reason ?? ""] ?? disabled_reason ?? ""}`
}

const timeOf = (iso: string | null) => (iso ? clockTime(iso).slice(0, 8) : "")

const deliveryColumns: MonitorColumn<Delivery>[] = [
  { title: "TIME", width: 8, cell: ({ created_at }) => timeOf(created_at) },
  { title: "EVENT", width: 0, share: 5, cell: ({ event_type }) => event_type },
  { title: "ID", width: 8, from: 100, cell: ({ event_id }) => shortId(event_id) },
  {
    title: "STATUS",
    width: 11,
    cell: ({ status }) => deliveryWord(status),
    brush: ({ status }) => deliveryBrush(status),
  },
  { title: "ANSWER", width: 0, share: 3, cell: answerOf },
  {
    title: "TOOK",
    width: 6,
    from: 90,
    right: true,
    cell: ({ latency_ms: took }) => (took === null ? "" : spanText(took)),
  },
  {
    title: "TRY",
    width: 5,
    right: true,
    cell: ({ attempts, max_attempts }) => `${attempts}/${max_attempts}`,
  },
  {
    title: "NEXT",
    width: 9,
    cell: nextOf,
  },
]

/** A held delivery is not attempted. It shows how long it is still kept. */
function nextOf({ next_attempt_at, status }: Delivery, now: number): string {
  if (status === "held") return until(next_attempt_at, now).replace(/^in (.*)$/, "$1 left")
  return status === "success" || status === "exhausted" ? "" : until(next_attempt_at, now)
}

function answerOf({ last_response_status, last_error }: Delivery): string {
  const error = last_error === "http_status" && last_response_status !== null ? null : last_error
  return [last_response_status, error].filter(Boolean).join(" ")
}

/** Endpoints above, what goes to the chosen one below; each line exactly `width` cells. */
export function webhookLines(state: State, width: number, paint: Paint): string[] {
  const { webhooks, now } = state
  const { height } = layoutOf(state)
  const { endpoints, problem, position, focus, deliveries, delivery_position, detail } = webhooks
  if (endpoints === null || endpoints.length === 0) {
    return told(problem ?? (endpoints ? NONE : "loading…"), width, height)
  }
  const [upper, lower] = webhookHeights(height, endpoints.length)
  const both = { width, now, paint }
  const above = tableLines({
    ...both,
    columns: endpointColumns,
    rows: endpoints,
    height: upper,
    top: position.top,
    selected: position.selected,
    has_focus: focus === "endpoints" && detail === null,
  })
  const below = tableLines({
    ...both,
    columns: deliveryColumns,
    rows: deliveries,
    height: lower,
    top: delivery_position.top,
    selected: delivery_position.selected,
    has_focus: focus === "deliveries" && detail === null,
  })
  return [...above, paint.dim("─".repeat(width)), ...below]
}

const NONE = "there is no endpoint yet: belfry webhooks create https://… --event '*'"

/** One sentence instead of a table. */
export function told(text: string, width: number, height: number): string[] {
  const blank = " ".repeat(width)
  const rest = Array.from({ length: Math.max(0, height - 2) }, () => blank)
  return [blank, fitted(`  ${cleanLine(text)}`, width), ...rest].slice(0, height)
}

/** How many there are, in one line. */
export function webhookInfo({ webhooks }: State): string {
  const { endpoints, deliveries, problem } = webhooks
  if (problem !== null) return problem
  const off = (endpoints ?? []).filter(({ status }) => status !== "active").length
  const count = endpoints?.length ?? 0
  const many = `${count} ${count === 1 ? "endpoint" : "endpoints"}${off > 0 ? `, ${off} off` : ""}`
  return `${many}   ${deliveries.length} newest deliveries`
}

/** Keys of the Webhooks screen: on endpoints, on deliveries, or in the one that is opened. */
export function pressOnWebhooks(state: State, key: string): StateStep {
  const { webhooks } = state
  if (webhooks.detail) return pressInDelivery(state, webhooks.detail, key)
  const [upper, lower] = webhookHeights(layoutOf(state).height, webhooks.endpoints?.length ?? 0)
  const rows = tableRows(webhooks.focus === "endpoints" ? upper : lower)
  const by = stepsOf(key, rows)
  if (by !== undefined) return movedBy(state, by, rows)
  const focused = (focus: WebhooksState["focus"]) => step(withWebhooks(state, { focus }))
  switch (key) {
    case "<tab>":
      return focused(webhooks.focus === "endpoints" ? "deliveries" : "endpoints")
    case "<escape>":
    case "<left>":
      return focused("endpoints")
    case "<right>":
      return focused("deliveries")
    case "<enter>":
      return webhooks.focus === "endpoints" ? focused("deliveries") : withDelivery(state)
    default:
      return pressOnEither(state, key)
  }
}

function movedBy(state: State, by: number, rows: number): StateStep {
  const { webhooks } = state
  if (webhooks.focus === "deliveries") {
    const delivery_position = moved(webhooks.delivery_position, webhooks.deliveries, by, rows)
    return step(withWebhooks(state, { delivery_position }))
  }
  const position = moved(webhooks.position, webhooks.endpoints ?? [], by, rows)
  const next = withWebhooks(state, { position })
  if (position.selected === null || position.selected === webhooks.position.selected)
    return step(next)
  return step(next, { do: "load_deliveries", webhook_id: position.selected })
}

function withDelivery(state: State): StateStep {
  const { webhooks } = state
  const found = chosen(webhooks.deliveries, webhooks.delivery_position)
  if (!found) return step(state)
  const { id, webhook_id } = found
  const detail = { id, webhook_id, top: 0, found: null, problem: null }
  const delivery_position = { ...webhooks.delivery_position, follows: false }
  const next = withWebhooks(state, { detail, delivery_position })
  return step(next, { do: "load_delivery", webhook_id, id })
}

/** Keys for the chosen endpoint or delivery, wherever they are pressed. */
export function pressOnEither(state: State, key: string): StateStep {
  const { webhooks } = state
  const endpoint = chosen(webhooks.endpoints ?? [], webhooks.position)
  if (!endpoint) return step(state)
  const in_deliveries = webhooks.focus === "deliveries"
  const delivery = in_deliveries
    ? chosen(webhooks.deliveries, webhooks.delivery_position)
    : undefined
  if (key === "y") return step(state, { do: "copy", text: delivery?.id ?? endpoint.id })
  const { read_only } = webhooks
  if (read_only !== null && CHANGING.includes(key)) return said(state, read_only)
  switch (key) {
    case "t":
      return step(state, { do: "test", webhook_id: endpoint.id })
    case "R":
      return step({ ...state, prompt: { asks: "replay", text: "1h held", problem: null } })
    case "r":
      return delivery ? askRetry(state, delivery.webhook_id, delivery.id) : said(state, NO_DELIVERY)
    case "e":
      return askEnable(state, endpoint)
    case "d":
      return askOff(state, endpoint, "disable")
    case "p":
      return askOff(state, endpoint, "pause")
    default:
      return step(state)
  }
}

/** Keys that are refused without a scope that may write. */
const CHANGING = ["t", "R", "r", "e", "d", "p"]

const NO_DELIVERY = "choose a delivery first: press Tab"

const said = (state: State, text: string) => step({ ...state, notice: { text, at: state.now } })

/** Held events leave at once, or wait for a replay: the question asks for one of the two. */
function askEnable(state: State, { id: webhook_id, url, status, held_count }: Webhook): StateStep {
  if (status === "active") return said(state, "the endpoint is active: p pauses it, d disables it")
  const enable = (replay: "held" | "none") => ({ do: "enable" as const, webhook_id, replay })
  if (held_count === 0) {
    return step({ ...state, question: whether(`Enable ${url}?`, enable("none")) })
  }
  const choices = [
    { key: "y", word: "send them", action: enable("held") },
    { key: "o", word: "only enable", action: enable("none") },
  ]
  const text = `Enable it and send ${number(held_count)} held events? ${url}`
  return step({ ...state, question: { text, choices } })
}

function askOff(state: State, { id, url, status }: Webhook, verb: "disable" | "pause"): StateStep {
  if (status !== "active") return said(state, "the endpoint is off: e enables it")
  const word = verb === "pause" ? "Pause" : "Disable"
  const text = `${word} it, and hold its events for 7 days? ${url}`
  return step({ ...state, question: whether(text, { do: verb, webhook_id: id }) })
}

function askRetry(state: State, webhook_id: string, id: string): StateStep {
  const { webhooks } = state
  const what = webhooks.deliveries.find((delivery) => delivery.id === id)?.event_type ?? id
  const text = `Attempt the delivery of ${what} again?`
  return step({ ...state, question: whether(text, { do: "retry", webhook_id, id }) })
}

function pressInDelivery(state: State, detail: DeliveryView, key: string): StateStep {
  const turned_detail = turnedDetail(state, detail, key, deliveryLines)
  if (turned_detail !== undefined) return step(withWebhooks(state, { detail: turned_detail }))
  switch (key) {
    case "n":
    case "p":
      return neighbour(state, key === "n" ? 1 : -1)
    default:
      return pressOnEither(state, key)
  }
}

function neighbour(state: State, by: number): StateStep {
  const { webhooks } = state
  const [, lower] = webhookHeights(layoutOf(state).height, webhooks.endpoints?.length ?? 0)
  const { delivery_position: position, deliveries } = webhooks
  const delivery_position = moved(position, deliveries, by, tableRows(lower))
  return withDelivery(withWebhooks(state, { delivery_position }))
}
