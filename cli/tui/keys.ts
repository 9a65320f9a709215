import type { State } from "./state"

export interface Key {
  key: string
  /** Two words for the line of keys; empty: told in the help only. */
  short: string
  long: string
}

const key = (name: string, short: string, long: string): Key => ({ key: name, short, long })

const moving = key("↑↓", "move", "↑↓ or j k, PgUp PgDn, g first, G last")

const messages: Key[] = [
  moving,
  key("⏎", "detail", "open the message: timeline, headers, text, raw, events"),
  key("/", "filter", "filter: status:bounced to:*@x.test since:1h tag:y subject:z -word word"),
  key("Space", "pause", "hold the list still, and let it go on"),
  key("f", "follow", "stay with the newest message, or stop it"),
  key("r", "resend", "send this message again, after asking"),
  key("y", "copy id", "copy the id to the clipboard of this terminal"),
]

const detail: Key[] = [
  key("Esc", "back", "back to the list"),
  key("←→", "tab", "← → or Tab: the next of its tabs"),
  key("↑↓", "scroll", "scroll"),
  key("n", "next", "the next message, without going back"),
  key("p", "previous", "the message before"),
  key("r", "resend", "send this message again, after asking"),
  key("y", "copy id", "copy the id to the clipboard of this terminal"),
]

const endpoints: Key[] = [
  moving,
  key("Tab", "deliveries", "go between endpoints and deliveries; ⏎ goes down, Esc up"),
  key("t", "test", "send a test event to this endpoint"),
  key("R", "replay since", "send events again that were held or failed since a time, after asking"),
  key("y", "copy id", "copy the id to the clipboard of this terminal"),
]

const deliveries: Key[] = [
  moving,
  key("⏎", "detail", "request, answer, timing and the next try"),
  key("r", "retry", "one more attempt at once, after asking"),
  key("R", "replay since", "send events again that were held or failed since a time, after asking"),
  key("t", "test", "send a test event to this endpoint"),
  key("Tab", "endpoints", "go between endpoints and deliveries"),
  key("y", "copy id", "copy the id to the clipboard of this terminal"),
]

const delivery: Key[] = [
  key("Esc", "back", "back to the deliveries"),
  key("↑↓", "scroll", "scroll"),
  key("r", "retry", "one more attempt at once, after asking"),
  key("n", "next", "the next delivery"),
  key("p", "previous", "the delivery before"),
  key("y", "copy id", "copy the id to the clipboard of this terminal"),
]

const queue: Key[] = [key("↑↓", "scroll", "scroll")]

/** Keys of every screen; the line of keys ends with the last two anyway. */
export const everywhere: Key[] = [
  key("1 2 3", "", "Messages, Webhooks, Queue"),
  key(
    ":",
    "",
    "a command: messages, webhooks, queue, filter, clear, replay, resend, retry, test, copy, follow, pause, help, quit",
  ),
  key("Esc", "", "back; in the list: no filter"),
  key("?", "", "this help"),
  key("q", "", "quit; so does Ctrl-C"),
]

/** What keys do where the reader is now, the most useful first. */
export function keysOf({ screen, messages: list, webhooks }: State): Key[] {
  if (screen === "messages") return list.detail ? detail : messages
  if (screen === "queue") return queue
  if (webhooks.detail) return delivery
  return webhooks.focus === "endpoints" ? endpoints : deliveries
}
