import type { Components } from "../../src/client/components"
import type { ProgressSample, Publish } from "../lib/publish-progress"
import type { ServerRun } from "../local/held"
import { type MessageFilter, NO_FILTER } from "./filter"
import { type ListPosition, TOP_OF_LIST } from "./layout"
import type { MessageRow } from "./message-rows"
import { NO_RATES, type Rates } from "./message-rows"

type EmailAttempt = Components["EmailAttempt"]
type EmailContent = Components["EmailContent"]
type Delivery = Components["Delivery"]
type DeliveryDetail = Components["DeliveryDetail"]
type Email = Components["Email"]
type EmailEvents = Components["EmailEvents"]
type Webhook = Components["Webhook"]
type OpenWork = Components["OpenWork"]
type InboundEmail = Components["InboundEmail"]
type Reputation = Components["Reputation"]
type InboundSummary = Components["InboundEmailSummary"]
type Topic = Components["Topic"]

/** In the order of their number keys. */
export const screens = [
  "messages",
  "webhooks",
  "queue",
  "inbound",
  "reputation",
  "audience",
  "box",
] as const
type ScreenName = (typeof screens)[number]

export const tabs = ["Timeline", "Headers", "Text", "Raw", "Events", "Tracking"] as const
export type Tab = (typeof tabs)[number]

/** How news arrive: by the socket, by asking again and again, or not at all. */
export type Link = "connecting" | "live" | "polling" | "lost"

/** What is fetched about one message. What is not there yet, or not any more, is left out. */
export interface MessageParts {
  email?: Email
  attempts?: EmailAttempt[]
  events?: EmailEvents
  tracking?: Components["EmailTracking"]
  content?: EmailContent
  raw?: string
  /** Reports of other servers about the message (DSN). */
  reports?: InboundSummary[]
  /** Why a tab could not be loaded. */
  problems?: Partial<Record<Tab, string>>
}

export interface MessageDetail {
  id: string
  tab: Tab
  /** Of the first line that is seen. */
  top: number
  parts: MessageParts
}

export interface MessagesState {
  rows: readonly MessageRow[]
  /** Those that the filter lets through; while paused those of that moment. */
  shown: readonly MessageRow[]
  position: ListPosition
  filter: MessageFilter
  paused: boolean
  /** What came while paused. */
  unseen: number
  older: "more" | "loading" | "none"
  detail: MessageDetail | null
}

export interface DeliveryView {
  webhook_id: string
  id: string
  top: number
  found: DeliveryDetail | null
  problem: string | null
}

export interface WebhooksState {
  /** Null: not read yet. */
  endpoints: readonly Webhook[] | null
  problem: string | null
  position: ListPosition
  focus: "endpoints" | "deliveries"
  deliveries_of: string | null
  deliveries: readonly Delivery[]
  delivery_position: ListPosition
  detail: DeliveryView | null
  /** Why the key may not change anything here; null while the server has not refused. */
  read_only: string | null
}

interface QueueState {
  work: OpenWork | null
  problem: string | null
  top: number
}

/** What the monitor knows about the machine. Parts for operators are undefined for others. */
export interface BoxFacts {
  checks: Components["DoctorReport"]["checks"]
  backups: readonly Components["Backup"][] | undefined
  /** Work of a restored copy; null where nothing is held. */
  held: Components["Queue"] | null | undefined
  /** Which server it is, for orders on its own machine. */
  server?: ServerRun | undefined
}

interface BoxState {
  found: BoxFacts | null
  problem: string | null
  top: number
}

interface ReputationState {
  found: Reputation | null
  problem: string | null
  top: number
}

export interface InboundView {
  id: string
  top: number
  found: InboundEmail | null
  problem: string | null
}

export interface InboundState {
  /** Null: not read yet. */
  mails: readonly InboundSummary[] | null
  problem: string | null
  position: ListPosition
  detail: InboundView | null
}

/** What is fetched about one subscriber. What the key may not read is undefined. */
export interface SubscriberFacts {
  subscriber: Components["Subscriber"]
  reachability: Components["Reachability"] | undefined
  topics: readonly Components["SubscribedTopic"][] | undefined
  consents: readonly Components["Consent"][] | undefined
  messages: readonly Components["EmailSummary"][] | undefined
}

export interface SubscriberView {
  /** Its id or its external id, as it was typed. */
  name: string
  /** Of the first line that is seen. */
  top: number
  found: SubscriberFacts | null
  problem: string | null
}

export interface AudienceState {
  /** Those with an open publish first. Null: not read yet. */
  topics: readonly Topic[] | null
  /** Whether the server has more of them. */
  more: boolean
  /** What is looked for in topics; "" for all of them. */
  search: string
  /** The publishes that are not over, by the key of their topic, as of the last look at it. */
  open: Readonly<Record<string, readonly Publish[]>>
  /** Where the next look at publishes begins in the list of the server. */
  next_look: number
  problem: string | null
  position: ListPosition
  focus: "topics" | "publishes"
  /** The key of the topic whose publishes are here. */
  publishes_of: string | null
  publishes: readonly Publish[]
  publish_position: ListPosition
  /** What was done at the last looks, by publish: how fast those that run are. */
  samples: Readonly<Record<string, readonly ProgressSample[]>>
  detail: SubscriberView | null
}

/** One line that is being typed. */
export interface PromptState {
  asks: "filter" | "command" | "replay" | "subscriber" | "topics"
  text: string
  problem: string | null
  /** The filter that Esc brings back, while another one is typed and acts at once. */
  before?: MessageFilter
}

/** Which events of the past are sent again. */
export const replay_portions = ["held", "failed", "all"] as const
type ReplayPortion = (typeof replay_portions)[number]

/** Done by a key that asked first. */
type AskedAction =
  | { do: "resend"; id: string }
  | { do: "redeliver"; id: string }
  | { do: "retry"; webhook_id: string; id: string }
  | { do: "replay"; webhook_id: string; since: string; status: ReplayPortion }
  | { do: "enable"; webhook_id: string; replay: "held" | "none" }
  | { do: "disable" | "pause"; webhook_id: string }
  | { do: "cancel_publish"; topic_key: string; id: string }
  | { do: "release_held" }
  | { do: "drop_held"; server: ServerRun }
  | { do: "make_backup" }

/** One clear yes to a question. Every other key is none. */
interface Choice {
  key: string
  /** What it means, where there is more than one. */
  word: string
  action: AskedAction
}

export interface Question {
  text: string
  choices: readonly Choice[]
}

export interface State {
  columns: number
  lines: number
  /** Epoch milliseconds, as of the last tick. */
  now: number
  screen: ScreenName
  /** The server, account and project that are shown. */
  title: string
  sending: { status: string; reason: string }
  link: Link
  rates: Rates
  messages: MessagesState
  webhooks: WebhooksState
  queue: QueueState
  inbound: InboundState
  reputation: ReputationState
  audience: AudienceState
  box: BoxState
  prompt: PromptState | null
  question: Question | null
  help: boolean
  notice: { text: string; at: number } | null
}

export function initialState(columns: number, lines: number, now: number, title: string): State {
  return {
    columns,
    lines,
    now,
    screen: "messages",
    title,
    sending: { status: "", reason: "" },
    link: "connecting",
    rates: NO_RATES,
    messages: {
      rows: [],
      shown: [],
      position: TOP_OF_LIST,
      filter: NO_FILTER,
      paused: false,
      unseen: 0,
      older: "loading",
      detail: null,
    },
    webhooks: {
      endpoints: null,
      problem: null,
      position: TOP_OF_LIST,
      focus: "endpoints",
      deliveries_of: null,
      deliveries: [],
      delivery_position: TOP_OF_LIST,
      detail: null,
      read_only: null,
    },
    queue: { work: null, problem: null, top: 0 },
    reputation: { found: null, problem: null, top: 0 },
    inbound: { mails: null, problem: null, position: TOP_OF_LIST, detail: null },
    audience: {
      topics: null,
      more: false,
      search: "",
      open: {},
      next_look: 0,
      problem: null,
      position: TOP_OF_LIST,
      focus: "topics",
      publishes_of: null,
      publishes: [],
      publish_position: TOP_OF_LIST,
      samples: {},
      detail: null,
    },
    box: { found: null, problem: null, top: 0 },
    prompt: null,
    question: null,
    help: false,
    notice: null,
  }
}

/** What is to be done outside of the state. */
export type Intent =
  | AskedAction
  | { do: "load_message"; id: string; tab: Tab }
  | { do: "load_older"; filter: MessageFilter }
  | { do: "load_newest"; filter: MessageFilter }
  | { do: "load_endpoints" }
  | { do: "load_deliveries"; webhook_id: string }
  | { do: "load_delivery"; webhook_id: string; id: string }
  | { do: "load_queue" }
  | { do: "load_inbound" }
  | { do: "load_reputation" }
  | { do: "load_box" }
  | { do: "ask_drop"; server: ServerRun }
  | { do: "load_inbound_mail"; id: string }
  | { do: "load_topics"; search?: string }
  | { do: "load_publishes"; topic_key: string }
  | { do: "load_subscriber"; name: string }
  | { do: "test"; webhook_id: string }
  | { do: "copy"; text: string }
  | { do: "redraw" }
  | { do: "quit" }

export interface StateStep {
  state: State
  intents: Intent[]
}

/** A question with one yes, on the key y. */
export const whether = (text: string, action: AskedAction): Question => ({
  text,
  choices: [{ key: "y", word: "", action }],
})

export const step = (state: State, ...intents: Intent[]): StateStep => ({ state, intents })

export const withMessages = (state: State, changes: Partial<MessagesState>): State => ({
  ...state,
  messages: { ...state.messages, ...changes },
})

export const withWebhooks = (state: State, changes: Partial<WebhooksState>): State => ({
  ...state,
  webhooks: { ...state.webhooks, ...changes },
})

export const withAudience = (state: State, changes: Partial<AudienceState>): State => ({
  ...state,
  audience: { ...state.audience, ...changes },
})

export const withInbound = (state: State, changes: Partial<InboundState>): State => ({
  ...state,
  inbound: { ...state.inbound, ...changes },
})

/** Where the first line is after a key of scrolling. */
export function scrolled(top: number, lines: number, key: string): number {
  if (key === "j" || key === "<down>") return Math.min(Math.max(0, lines - 1), top + 1)
  return key === "k" || key === "<up>" ? Math.max(0, top - 1) : top
}
