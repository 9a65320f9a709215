import type { Components } from "../../src/client/components"
import { chosen } from "./layout"
import type { AudienceState, State, WebhooksState } from "./state"

type Webhook = Components["Webhook"]

export interface KeyHelp {
  key: string
  /** Two words for the line of keys; empty: told in the help only. */
  short: string
  long: string
  /** Whether it changes something, which not every API key may. */
  changes?: true
}

const key = (name: string, short: string, long: string): KeyHelp => ({ key: name, short, long })
const change = (...words: Parameters<typeof key>): KeyHelp => ({ ...key(...words), changes: true })

const moving = key("↑↓", "move", "move by a row: ↑↓ or j k; by a page: PgUp PgDn; g first, G last")

const copy = key("y", "copy id", "copy the id to the clipboard of this terminal")

const messages: KeyHelp[] = [
  moving,
  key("⏎", "detail", "open the message: timeline, headers, text, raw, events"),
  key(
    "/",
    "filter",
    "filter: status:bounced to:*@x.test since:1h tag:y template:n subject:z -word word",
  ),
  key("Space", "pause", "pause the list, or continue it"),
  key("f", "follow", "follow the newest message, or stop following"),
  key("r", "resend", "send this message again (asks first)"),
  copy,
]

const detail: KeyHelp[] = [
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
function switchesOf(endpoint: Webhook | undefined): { first: KeyHelp; others: KeyHelp[] } {
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

function endpoints(endpoint: Webhook | undefined): KeyHelp[] {
  const { first, others } = switchesOf(endpoint)
  const down = key(
    "Tab",
    "deliveries",
    "move between endpoints and deliveries; ⏎ goes down, Esc up",
  )
  return [moving, down, test, first, replay, ...others, copy]
}

function deliveries(endpoint: Webhook | undefined): KeyHelp[] {
  const { first, others } = switchesOf(endpoint)
  const opening = key("⏎", "detail", "open the delivery: request, answer, timing, next attempt")
  const up = key("Tab", "endpoints", "move between endpoints and deliveries")
  return [moving, opening, retry, replay, first, test, up, ...others, copy]
}

const delivery: KeyHelp[] = [
  key("Esc", "back", "go back to the deliveries"),
  key("↑↓", "scroll", "scroll the text"),
  retry,
  key("n", "next", "open the next delivery"),
  key("p", "previous", "open the previous delivery"),
  copy,
]

const redeliver = key(
  "R",
  "redeliver",
  "send the event of this mail to the endpoints again (asks first)",
)
const answered = key("m", "answered", "open the message that this mail answers or reports on")

const inbound: KeyHelp[] = [
  moving,
  key("⏎", "detail", "open the mail: verdicts, spam score, report and text"),
  answered,
  redeliver,
  copy,
]

const inboundMail: KeyHelp[] = [
  key("Esc", "back", "go back to the list"),
  key("↑↓", "scroll", "scroll the text"),
  answered,
  redeliver,
  key("n", "next", "open the next mail"),
  key("p", "previous", "open the previous mail"),
  copy,
]

const cancel = key("c", "cancel", "cancel the rest of this publish (asks first)")

const subscriber = key(
  "s",
  "subscriber",
  "open a subscriber: reachability, consents and last messages",
)

const opened: KeyHelp[] = [
  key("Esc", "back", "go back to topics and publishes"),
  key("↑↓", "scroll", "scroll the text"),
  subscriber,
  copy,
]

const search = key("/", "search", "show only topics with this text in key, name or description")

const topics: KeyHelp[] = [
  moving,
  subscriber,
  key("Tab", "publishes", "move between topics and publishes; ⏎ goes down, Esc up"),
  search,
  copy,
]

const publishes: KeyHelp[] = [
  moving,
  cancel,
  key("Tab", "topics", "move between topics and publishes"),
  subscriber,
  search,
  copy,
]

const box: KeyHelp[] = [
  key("↑↓", "scroll", "scroll the text"),
  key("r", "release", "send everything that is held since a restore (asks first)"),
  key(
    "D",
    "drop",
    "drop everything that is held (asks first); elsewhere, copy the command for its machine",
  ),
  key("b", "backup", "make a backup now (asks first)"),
]

const queue: KeyHelp[] = [key("↑↓", "scroll", "scroll the text")]

/** Keys of every screen; the line of keys ends with the last two anyway. */
export const everywhere: KeyHelp[] = [
  key("1 to 7", "", "open the screen with this number"),
  key(
    ":",
    "",
    "type messages webhooks queue inbound reputation audience box filter clear replay help quit. Or: resend redeliver answered retry test copy enable disable cancel follow pause release drop backup",
  ),
  key("Esc", "", "go back; in the list: remove the filter. Ctrl-L redraws the screen"),
  key("? q", "", "show this help; quit, as Ctrl-C does"),
]

/** What the keys do on the present screen, the most useful first. Forbidden actions are left out. */
export function keysOf(state: State): KeyHelp[] {
  const { screen, messages: list, webhooks } = state
  if (screen === "messages") return list.detail ? detail : messages
  if (screen === "queue" || screen === "reputation") return queue
  if (screen === "inbound") return state.inbound.detail ? inboundMail : inbound
  if (screen === "audience") return keysOnAudience(state.audience)
  if (screen === "box") return box
  const keys = keysOnWebhooks(webhooks)
  return webhooks.read_only === null ? keys : keys.filter(({ changes }) => !changes)
}

function keysOnAudience({ detail: subscriber, focus }: AudienceState): KeyHelp[] {
  if (subscriber) return opened
  return focus === "topics" ? topics : publishes
}

function keysOnWebhooks({
  endpoints: list,
  position,
  focus,
  detail: opened,
}: WebhooksState): KeyHelp[] {
  if (opened) return delivery
  const endpoint = chosen(list ?? [], position)
  const keys = focus === "endpoints" ? endpoints(endpoint) : deliveries(endpoint)
  // Without an endpoint, as before the first answer, they do nothing yet.
  return endpoint ? keys : keys.map((one) => ({ ...one, short: "" }))
}

/** Keys that ink names, as `press` knows them. */
const NAMED_KEYS = {
  ...{ upArrow: "<up>", downArrow: "<down>", leftArrow: "<left>", rightArrow: "<right>" },
  ...{ pageUp: "<pageup>", pageDown: "<pagedown>", home: "<home>", end: "<end>" },
  ...{ return: "<enter>", escape: "<escape>", tab: "<tab>" },
  ...{ backspace: "<backspace>", delete: "<delete>" },
}

/** What ink says of a key; each is true or left out. */
type InkKey = Partial<Record<keyof typeof NAMED_KEYS | "ctrl" | "meta", boolean>>

const controls: Partial<Record<string, string>> = {
  "\r": "<enter>",
  "\n": "<enter>",
  "\t": "<tab>",
  "\u001b": "<escape>",
  "\u007f": "<backspace>",
  "\b": "<backspace>",
  "\u0003": "<ctrl-c>",
  "\u000c": "<ctrl-l>",
  "\u0015": "<ctrl-u>",
  "\u0017": "<ctrl-w>",
}

/**
 * The keys of one piece of input, by the names that `press` knows. Fast typing, or a paste,
 * arrives as several characters at once; those that are no text and no key are left out.
 */
export function keysFrom(input: string, key: InkKey): string[] {
  // Esc pressed twice, which a busy machine or a slow line hands over together.
  if (key.escape && key.meta) return ["<escape>", "<escape>"]
  const name = Object.entries(NAMED_KEYS).find(([flag]) => key[flag as keyof InkKey])?.[1]
  if (name) return [name]
  if (key.ctrl) return [`<ctrl-${input}>`]
  if (key.meta) return [...input].length === 1 ? [`<alt-${input}>`] : []
  return [...input].flatMap((one) => controls[one] ?? (/\p{Cc}/u.test(one) ? [] : [one]))
}
