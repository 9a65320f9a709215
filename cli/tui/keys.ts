import type { Components } from "../../src/client/components"
import { chosen } from "./list"
import type { State, Webhooks } from "./state"

type Webhook = Components["Webhook"]

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

const moving = key("↑↓", "move", "move by a row: ↑↓ or j k; by a page: PgUp PgDn; g first, G last")

const copy = key("y", "copy id", "copy the id to the clipboard of this terminal")

const messages: Key[] = [
  moving,
  key("⏎", "detail", "open the message: timeline, headers, text, raw, events"),
  key("/", "filter", "filter: status:bounced to:*@x.test since:1h tag:y subject:z -word word"),
  key("Space", "pause", "pause the list, or continue it"),
  key("f", "follow", "follow the newest message, or stop following"),
  key("r", "resend", "send this message again (asks first)"),
  copy,
]

const detail: Key[] = [
  key("Esc", "back", "go back to the list"),
  key("←→", "tab", "open another tab: ← → or Tab"),
  key("↑↓", "scroll", "scroll the text"),
  key("n", "next", "open the next message"),
  key("p", "previous", "open the previous message"),
  key("r", "resend", "send this message again (asks first)"),
  copy,
]

const test = change("t", "test", "send a test event to this endpoint")
const replay = change(
  "R",
  "replay",
  "send held or failed events again, from a given time (asks first)",
)
const retry = change("r", "retry", "attempt this delivery again now (asks first)")

/** The line of keys names what may be done now; the help tells all three. */
function switchesOf(endpoint: Webhook | undefined): { first: Key; others: Key[] } {
  const is_off = endpoint !== undefined && endpoint.status !== "active"
  const short = (word: string, is_now: boolean) => (is_now ? word : "")
  const enable = change(
    "e",
    short("enable", is_off),
    "enable this endpoint, with or without its held events (asks first)",
  )
  const pause = change(
    "p",
    short("pause", !is_off),
    "pause it: its events are held for 7 days (asks first)",
  )
  const disable = change(
    "d",
    short("disable", !is_off),
    "disable it for good: its events are held for 7 days (asks first)",
  )
  return is_off
    ? { first: enable, others: [pause, disable] }
    : { first: pause, others: [disable, enable] }
}

function endpoints(endpoint: Webhook | undefined): Key[] {
  const { first, others } = switchesOf(endpoint)
  const down = key(
    "Tab",
    "deliveries",
    "move between endpoints and deliveries; ⏎ goes down, Esc up",
  )
  return [moving, down, test, first, replay, ...others, copy]
}

function deliveries(endpoint: Webhook | undefined): Key[] {
  const { first, others } = switchesOf(endpoint)
  const opening = key("⏎", "detail", "open the delivery: request, answer, timing, next attempt")
  const up = key("Tab", "endpoints", "move between endpoints and deliveries")
  return [moving, opening, retry, replay, first, test, up, ...others, copy]
}

const delivery: Key[] = [
  key("Esc", "back", "go back to the deliveries"),
  key("↑↓", "scroll", "scroll the text"),
  retry,
  key("n", "next", "open the next delivery"),
  key("p", "previous", "open the previous delivery"),
  copy,
]

const queue: Key[] = [key("↑↓", "scroll", "scroll the text")]

/** Keys of every screen; the line of keys ends with the last two anyway. */
export const everywhere: Key[] = [
  key("1 2 3", "", "open Messages, Webhooks or Queue"),
  key(
    ":",
    "",
    "type a command: messages, webhooks, queue, filter, clear, replay, resend, retry, test, copy, enable, disable, follow, pause, help, quit",
  ),
  key("Esc", "", "go back; in the list: remove the filter. Ctrl-L redraws the screen"),
  key("?", "", "show this help"),
  key("q", "", "quit, as Ctrl-C does"),
]

/** What the keys do on the present screen, the most useful first. Forbidden actions are left out. */
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
