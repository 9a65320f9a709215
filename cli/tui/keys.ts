import type { Webhook } from "../webhooks/records"
import { chosen } from "./list"
import type { State, Webhooks } from "./state"

export interface Key {
  key: string
  /** Two words for the line of keys; empty: told in the help only. */
  short: string
  long: string
  /** Whether it changes something, which not every API key may. */
  changes?: true
}

const key = (name: string, short: string, long: string): Key => ({ key: name, short, long })
const change = (...words: Parameters<typeof key>): Key => ({ ...key(...words), changes: true })

const moving = key("↑↓", "move", "↑↓ or j k, PgUp PgDn, g first, G last")

const copy = key("y", "copy id", "copy the id to the clipboard of this terminal")

const messages: Key[] = [
  moving,
  key("⏎", "detail", "open the message: timeline, headers, text, raw, events"),
  key("/", "filter", "filter: status:bounced to:*@x.test since:1h tag:y subject:z -word word"),
  key("Space", "pause", "hold the list still, and let it go on"),
  key("f", "follow", "stay with the newest message, or stop it"),
  key("r", "resend", "send this message again, after asking"),
  copy,
]

const detail: Key[] = [
  key("Esc", "back", "back to the list"),
  key("←→", "tab", "← → or Tab: the next of its tabs"),
  key("↑↓", "scroll", "scroll"),
  key("n", "next", "the next message, without going back"),
  key("p", "previous", "the message before"),
  key("r", "resend", "send this message again, after asking"),
  copy,
]

const test = change("t", "test", "send a test event to this endpoint")
const replay = change(
  "R",
  "replay",
  "send what was held or failed since a time again, after asking",
)
const retry = change("r", "retry", "one more attempt at once, after asking")

/** The line of keys names what may be done now; the help tells all three. */
function switchesOf(endpoint: Webhook | undefined): { first: Key; others: Key[] } {
  const is_off = endpoint !== undefined && endpoint.status !== "active"
  const short = (word: string, is_now: boolean) => (is_now ? word : "")
  const enable = change(
    "e",
    short("enable", is_off),
    "enable this endpoint, with or without what it holds, after asking",
  )
  const pause = change(
    "p",
    short("pause", !is_off),
    "pause it: its events are held for 7 days; after asking",
  )
  const disable = change("d", short("disable", !is_off), "disable it: the same, meant for good")
  return is_off
    ? { first: enable, others: [pause, disable] }
    : { first: pause, others: [disable, enable] }
}

function endpoints(endpoint: Webhook | undefined): Key[] {
  const { first, others } = switchesOf(endpoint)
  const down = key("Tab", "deliveries", "go between endpoints and deliveries; ⏎ goes down, Esc up")
  return [moving, down, test, first, replay, ...others, copy]
}

function deliveries(endpoint: Webhook | undefined): Key[] {
  const { first, others } = switchesOf(endpoint)
  const opening = key("⏎", "detail", "request, answer, timing and the next try")
  const up = key("Tab", "endpoints", "go between endpoints and deliveries")
  return [moving, opening, retry, replay, first, test, up, ...others, copy]
}

const delivery: Key[] = [
  key("Esc", "back", "back to the deliveries"),
  key("↑↓", "scroll", "scroll"),
  retry,
  key("n", "next", "the next delivery"),
  key("p", "previous", "the delivery before"),
  copy,
]

const queue: Key[] = [key("↑↓", "scroll", "scroll")]

/** Keys of every screen; the line of keys ends with the last two anyway. */
export const everywhere: Key[] = [
  key("1 2 3", "", "Messages, Webhooks, Queue"),
  key(
    ":",
    "",
    "a command: messages, webhooks, queue, filter, clear, replay, resend, retry, test, copy, enable, disable, follow, pause, help, quit",
  ),
  key("Esc", "", "back; in the list: no filter. Ctrl-L draws the screen again"),
  key("?", "", "this help"),
  key("q", "", "quit; so does Ctrl-C"),
]

/** What keys do where the reader is now, the most useful first; what he may not do is left out. */
export function keysOf(state: State): Key[] {
  const { screen, messages: list, webhooks } = state
  if (screen === "messages") return list.detail ? detail : messages
  if (screen === "queue") return queue
  const keys = keysOnWebhooks(webhooks)
  return webhooks.read_only === null ? keys : keys.filter(({ changes }) => !changes)
}

function keysOnWebhooks({ endpoints: list, place, focus, detail: opened }: Webhooks): Key[] {
  if (opened) return delivery
  const endpoint = chosen(list ?? [], place)
  return focus === "endpoints" ? endpoints(endpoint) : deliveries(endpoint)
}
