import type { AnswerOf, AnyInput, OperationInput, OperationName } from "../../src/client/client"
import type { Components } from "../../src/client/components"
import type { ProgressSample, Publish } from "../commands/topics-publish"
import type { Client } from "../lib/client"
import type { Columns } from "../lib/table"
import type { Paint } from "../lib/terminal"
import type { ServerRun } from "../local/held"
import { type MessageFilter, NO_FILTER } from "./filter"
import { type MessageRow, NO_RATES, type Rates } from "./message-rows"

/** In the order of their number keys. */
export const screens = [
  ...(["messages", "webhooks", "queue", "inbound"] as const),
  ...(["reputation", "audience", "box", "users"] as const),
] as const
export type ScreenName = (typeof screens)[number]

export const tabs = ["Timeline", "Headers", "Text", "Raw", "Events", "Tracking"] as const
export type Tab = (typeof tabs)[number]

/** How news arrive: by the socket, by asking again and again, or not at all. */
export type Link = "connecting" | "live" | "polling" | "lost"

export interface Rows {
  messages: MessageRow
  endpoints: Components["Webhook"]
  deliveries: Components["Delivery"]
  inbound: Components["InboundEmailSummary"]
  /** Those with an open publish first. */
  topics: Components["Topic"]
  publishes: Publish
  users: Components["User"]
}

export type ListName = keyof Rows

/** From top to bottom. What is in the lower list belongs to the row that is chosen above. */
export const listsOf: Readonly<Record<ScreenName, readonly ListName[]>> = {
  messages: ["messages"],
  webhooks: ["endpoints", "deliveries"],
  inbound: ["inbound"],
  audience: ["topics", "publishes"],
  users: ["users"],
  queue: [],
  reputation: [],
  box: [],
}

/** The selected row of a long list, and the first row on the screen. Only visible rows are drawn. */
export interface ListPosition {
  /** Null: the list is empty, or nothing was chosen yet. */
  selected: string | null
  /** Of the first row that is seen. */
  top: number
  /** Stays at the newest row when rows are added. */
  follows: boolean
}

export const TOP_OF_LIST: ListPosition = { selected: null, top: 0, follows: true }

export interface ListState<Row> {
  /** Null: not read yet. */
  rows: readonly Row[] | null
  position: ListPosition
  /** The row above that these belong to, by its `nameOf`. */
  of: string | null
}

export interface MessageParts {
  email?: Components["Email"]
  /** In the place of all others, of a message of the channel `sms`. */
  sms?: Components["Sms"]
  /** The same for the channel `push`. */
  push?: Components["PushMessage"]
  /** The same for the channel `in_app`. */
  inbox?: Components["InboxMessage"]
  attempts?: Components["EmailAttempt"][]
  events?: Components["EmailEvents"]
  tracking?: Components["EmailTracking"]
  content?: Components["EmailContent"]
  raw?: string
  /** Reports of other servers about the message (DSN). */
  reports?: Components["InboundEmailSummary"][]
}

/** What is fetched about one subscriber. What the key may not read is undefined. */
export interface SubscriberFacts {
  subscriber: Components["Subscriber"]
  reachability: Components["Reachability"] | undefined
  topics: readonly Components["SubscribedTopic"][] | undefined
  consents: readonly Components["Consent"][] | undefined
  devices: readonly Components["Device"][] | undefined
  messages: readonly Components["EmailSummary"][] | undefined
}

/** What is fetched about one end user. */
export interface UserFacts {
  user: Components["User"]
  sessions: readonly Components["UserSession"][]
  /** The newest ones. */
  organizations: readonly Components["Organization"][]
  /** The newest mails of sign-ins; undefined where the user has no address, or the key may not read them. */
  mails: readonly Components["EmailSummary"][] | undefined
}

/** What is opened on a screen, by what is fetched for it. */
export interface Opened {
  messages: MessageParts
  webhooks: Components["DeliveryDetail"]
  inbound: Components["InboundEmail"]
  audience: SubscriberFacts
  users: UserFacts
}

export interface Detail<Found = object> {
  /** Of a subscriber its external id, as it was typed, or its id. */
  id: string
  /** The endpoint of a delivery; the channel of a message that is no email. */
  of: string | null
  tab: Tab
  /** Of the first line that is seen. */
  top: number
  found: Found | null
  problem: string | null
}

/** What the monitor knows about the machine. Parts for operators are undefined for others. */
export interface BoxFacts {
  checks: Components["DoctorReport"]["checks"]
  backups: readonly Components["Backup"][] | undefined
  /** Work of a restored copy; null where nothing is held. */
  held: Components["Queue"] | null | undefined
  /** What models were asked for this month, and what it cost. */
  ai?: Components["AiUsage"] | undefined
  /** Which server it is, for orders on its own machine. */
  server?: ServerRun | undefined
}

/** Screens that are a text, by what is fetched for them. */
export interface Pages {
  queue: Components["OpenWork"]
  reputation: Components["Reputation"]
  box: BoxFacts
}

export type PageScreen = keyof Pages

interface Page<Found> {
  found: Found | null
  top: number
}

/** What the list of messages shows is in `lists`; while paused that of this moment. */
interface MessagesState {
  rows: readonly MessageRow[]
  filter: MessageFilter
  paused: boolean
  unseen: number
  older: "more" | "loading" | "none"
}

interface AudienceState {
  more: boolean
  search: string
  /** The publishes that are not over, by the key of their topic, as of the last look at it. */
  open: Readonly<Record<string, readonly Publish[]>>
  /** Where the next look at publishes begins in the list of the server. */
  next_look: number
  /** What was done at the last looks, by publish: how fast those that run are. */
  samples: Readonly<Record<string, readonly ProgressSample[]>>
}

export interface PromptState {
  asks: "filter" | "command" | "replay" | "subscriber" | "topics" | "users"
  text: string
  problem: string | null
  /** The filter that Esc brings back, while another one is typed and acts at once. */
  before?: MessageFilter
}

/** A request that changes something, and what is said when it is done. */
interface Change {
  do: "change"
  name: OperationName
  input: AnyInput
  done(answer: unknown): string
}

export const change = <Name extends OperationName>(
  name: Name,
  input: OperationInput<Name>[0],
  done: (answer: AnswerOf<Name>) => string,
): Change => ({ do: "change", name, input: input as AnyInput, done: done as Change["done"] })

type RequestedAction = Change | { do: "drop_held"; server: ServerRun }

export interface Question {
  text: string
  /** Each is one clear yes; every other key is none. A word says what it means, where there is more than one. */
  choices: readonly { key: string; word: string; action: RequestedAction }[]
}

export interface State {
  columns: number
  lines: number
  /** Epoch milliseconds, as of the last tick. */
  now: number
  screen: ScreenName
  title: string
  sending: { status: string; reason: string }
  link: Link
  rates: Rates
  lists: { readonly [Name in ListName]: ListState<Rows[Name]> }
  /** The screens on which keys go to the lower list. */
  lower: Partial<Record<ScreenName, boolean>>
  details: { readonly [Name in keyof Opened]?: Detail<Opened[Name]> | undefined }
  pages: { readonly [Name in PageScreen]: Page<Pages[Name]> }
  /** Why a screen could not be read at the last look. */
  problems: Partial<Record<ScreenName, string | undefined>>
  messages: MessagesState
  audience: AudienceState
  /** The filter of users, and whether the server has more of them. */
  users: { search: string; more: boolean }
  /** Why the key may not change webhooks; null while the server has not refused. */
  read_only: string | null
  prompt: PromptState | null
  question: Question | null
  help: boolean
  notice: { text: string; at: number } | null
}

export const UNREAD = { rows: null, position: TOP_OF_LIST, of: null }
const NO_PAGE = { found: null, top: 0 }

export function initialState(columns: number, lines: number, now: number, title: string): State {
  return {
    ...{ columns, lines, now, title, screen: "messages", link: "connecting", rates: NO_RATES },
    sending: { status: "", reason: "" },
    lists: {
      messages: { ...UNREAD, rows: [] },
      ...{ endpoints: UNREAD, deliveries: UNREAD, inbound: UNREAD },
      ...{ topics: UNREAD, publishes: UNREAD, users: UNREAD },
    },
    lower: {},
    details: {},
    pages: { queue: NO_PAGE, reputation: NO_PAGE, box: NO_PAGE },
    problems: {},
    messages: { rows: [], filter: NO_FILTER, paused: false, unseen: 0, older: "loading" },
    audience: { more: false, search: "", open: {}, next_look: 0, samples: {} },
    users: { search: "", more: false },
    ...{ read_only: null, prompt: null, question: null, help: false, notice: null },
  }
}

export type Load =
  | { do: "load_list"; list: ListName; of?: string }
  | { do: "load_page"; screen: PageScreen }
  | ({ do: "load_detail"; screen: keyof Opened } & Opening)
  | { do: "load_older" | "load_newest"; filter: MessageFilter }

/** What is to be done outside of the state. */
export type Intent =
  | RequestedAction
  | Load
  | { do: "ask_drop"; server: ServerRun }
  | { do: "copy"; text: string }
  | { do: "redraw" | "quit" }

export interface StateStep {
  state: State
  intents: Intent[]
}

export const step = (state: State, ...intents: Intent[]): StateStep => ({ state, intents })

/** One line that says what has just happened. */
export const said = (state: State, text: string): StateStep =>
  step({ ...state, notice: { text, at: state.now } })

/** Asks a question with one yes, on the key y. */
export const ask = (state: State, text: string, action: RequestedAction): StateStep =>
  step({ ...state, question: whether(text, action) })

export const whether = (text: string, action: RequestedAction): Question => ({
  text,
  choices: [{ key: "y", word: "", action }],
})

/** What a key does, and how it is told. A key without `press` does what it does on all screens. */
export interface Key {
  key: string
  /** Two words for the line of keys; empty: told in the help only. */
  short: string
  /** Empty: not told. */
  long: string
  /** The command behind `:` that does the same. */
  word?: string
  /** Whether it changes something, which not every API key may. */
  changes?: true
  press?: Press
}

export type Press = (state: State) => StateStep

interface ListAnswer {
  data: object
  meta: { has_more?: boolean }
}

/** A list with the columns of the CLI, and its route: of the lower one of two with the row above as parameter. */
export interface ListForm<Row = never> {
  columns(state: State): Columns<Row>
  route?: OperationName | ((client: Client, of: string) => Promise<ListAnswer>)
  query?: (of: string) => object
}

type ListForms = { readonly [Name in ListName]?: ListForm<Rows[Name]> }

export type Opening = Pick<Detail, "id" | "of" | "tab">

/** A route, whose parameters are the names of what is opened; or more than one request. */
export type RecordSource = OperationName | ((client: Client, opened: Opening) => Promise<object>)

/** What a screen shows, as the CLI describes it, and what its keys do. */
export interface Screen {
  /** What is asked for while it is seen, if that is not its page or its upper list. */
  loads?(state: State): Load[]
  info(state: State): string
  lists?: ListForms
  none?(state: State, list: ListName): string
  /** After a key moved in its only list. */
  moved?(state: State): StateStep
  /** A screen without lists: its text. */
  page?: {
    read: RecordSource
    text: (found: never, paint: Paint, width: number) => string
  }
  detail?: {
    /** The list whose rows are opened by Enter. */
    opens?: ListName
    title(detail: Detail): string
    /** Below the title; where it has tabs, they stand there. */
    under?: (found: never) => string
    /** Undefined: not read yet. */
    text: (found: never, paint: Paint, width: number, tab: Tab) => string | undefined
    read: RecordSource
  }
  /** What the keys do now, the most useful first. */
  keys(state: State): readonly Key[]
  /** The keys that are commands, too, wherever on this screen they are typed. */
  actions: readonly Key[]
}
