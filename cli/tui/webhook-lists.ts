import type { Components } from "../../src/client/components"
import { shortId } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { fitted, meter } from "./cells"
import { type Column, tableLines } from "./columns"
import { deliveryBrush, deliveryWord } from "./delivery-lines"
import { layoutOf, webhookHeights } from "./layout"
import { number, spanText, until } from "./spans"
import type { State } from "./state"

type Delivery = Components["Delivery"]
type Webhook = Components["Webhook"]

/** Failed attempts in a row that switch an endpoint off (contract 30, 2). */
const BREAKER = 10

const endpointColumns: Column<Webhook>[] = [
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

const deliveryColumns: Column<Delivery>[] = [
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

/** What is held is not tried: it waits for somebody's word, and not for ever. */
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
  const { endpoints, problem, place, focus, deliveries, delivery_place, detail } = webhooks
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
    top: place.top,
    selected: place.selected,
    has_focus: focus === "endpoints" && detail === null,
  })
  const below = tableLines({
    ...both,
    columns: deliveryColumns,
    rows: deliveries,
    height: lower,
    top: delivery_place.top,
    selected: delivery_place.selected,
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
