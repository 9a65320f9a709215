import type { Components } from "../../src/client/components"
import { deliveryLines } from "./delivery-lines"
import { detailRows, layoutOf, tableRows, webhookHeights } from "./layout"
import { chosen, moved, scrolled, stepsOf } from "./list"
import { number } from "./spans"
import { type DeliveryView, type State, type Step, step, type Webhooks, whether } from "./state"

type Webhook = Components["Webhook"]

/** Keys of the Webhooks screen: on endpoints, on deliveries, or in the one that is opened. */
export function pressOnWebhooks(state: State, key: string): Step {
  const { webhooks } = state
  if (webhooks.detail) return pressInDelivery(state, webhooks.detail, key)
  const [upper, lower] = webhookHeights(layoutOf(state).height, webhooks.endpoints?.length ?? 0)
  const rows = tableRows(webhooks.focus === "endpoints" ? upper : lower)
  const by = stepsOf(key, rows)
  if (by !== undefined) return movedBy(state, by, rows)
  const focused = (focus: Webhooks["focus"]) => step({ ...state, webhooks: { ...webhooks, focus } })
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

function movedBy(state: State, by: number, rows: number): Step {
  const { webhooks } = state
  if (webhooks.focus === "deliveries") {
    const delivery_place = moved(webhooks.delivery_place, webhooks.deliveries, by, rows)
    return step({ ...state, webhooks: { ...webhooks, delivery_place } })
  }
  const place = moved(webhooks.place, webhooks.endpoints ?? [], by, rows)
  const next = { ...state, webhooks: { ...webhooks, place } }
  if (place.selected === null || place.selected === webhooks.place.selected) return step(next)
  return step(next, { do: "load_deliveries", webhook_id: place.selected })
}

function withDelivery(state: State): Step {
  const { webhooks } = state
  const found = chosen(webhooks.deliveries, webhooks.delivery_place)
  if (!found) return step(state)
  const { id, webhook_id } = found
  const detail = { id, webhook_id, top: 0, found: null, problem: null }
  const delivery_place = { ...webhooks.delivery_place, follows: false }
  const next = { ...state, webhooks: { ...webhooks, detail, delivery_place } }
  return step(next, { do: "load_delivery", webhook_id, id })
}

/** Keys for the chosen endpoint or delivery, wherever they are pressed. */
export function pressOnEither(state: State, key: string): Step {
  const { webhooks } = state
  const endpoint = chosen(webhooks.endpoints ?? [], webhooks.place)
  if (!endpoint) return step(state)
  const in_deliveries = webhooks.focus === "deliveries"
  const delivery = in_deliveries ? chosen(webhooks.deliveries, webhooks.delivery_place) : undefined
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
function askEnable(state: State, { id: webhook_id, url, status, held_count }: Webhook): Step {
  if (status === "active") return said(state, "the endpoint is active: p pauses it, d disables it")
  const enable = (replay: "held" | "none") => ({ do: "enable" as const, webhook_id, replay })
  if (held_count === 0) {
    return step({ ...state, question: whether(`Enable ${url}?`, enable("none")) })
  }
  const choices = [
    { key: "y", word: "send them", deed: enable("held") },
    { key: "o", word: "only enable", deed: enable("none") },
  ]
  const text = `Enable it and send ${number(held_count)} held events? ${url}`
  return step({ ...state, question: { text, choices } })
}

function askOff(state: State, { id, url, status }: Webhook, verb: "disable" | "pause"): Step {
  if (status !== "active") return said(state, "the endpoint is off: e enables it")
  const word = verb === "pause" ? "Pause" : "Disable"
  const text = `${word} it, and hold its events for 7 days? ${url}`
  return step({ ...state, question: whether(text, { do: verb, webhook_id: id }) })
}

function askRetry(state: State, webhook_id: string, id: string): Step {
  const { webhooks } = state
  const what = webhooks.deliveries.find((delivery) => delivery.id === id)?.event_type ?? id
  const text = `Attempt the delivery of ${what} again?`
  return step({ ...state, question: whether(text, { do: "retry", webhook_id, id }) })
}

function pressInDelivery(state: State, detail: DeliveryView, key: string): Step {
  const { height, detail_width } = layoutOf(state)
  const rows = detailRows(height)
  const show = (next: DeliveryView | null) =>
    step({ ...state, webhooks: { ...state.webhooks, detail: next } })
  const by = stepsOf(key, rows)
  if (by !== undefined) {
    const lines = deliveryLines(detail, detail_width, false).length
    return show({ ...detail, top: scrolled(detail.top, by, lines, rows) })
  }
  switch (key) {
    case "<escape>":
    case "<backspace>":
      return show(null)
    case "n":
    case "p":
      return neighbour(state, key === "n" ? 1 : -1)
    default:
      return pressOnEither(state, key)
  }
}

function neighbour(state: State, by: number): Step {
  const { webhooks } = state
  const [, lower] = webhookHeights(layoutOf(state).height, webhooks.endpoints?.length ?? 0)
  const { delivery_place: place, deliveries } = webhooks
  const delivery_place = moved(place, deliveries, by, tableRows(lower))
  return withDelivery({ ...state, webhooks: { ...webhooks, delivery_place } })
}
