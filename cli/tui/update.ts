import type { Components } from "../../src/client/components"
import type { Publish } from "../lib/publish-progress"
import { keptAudience, withPublishes, withSubscriber, withTopics } from "./audience-news"
import type { MessageFilter } from "./filter"
import { kept, layoutOf, tableRows, webhookHeights } from "./layout"
import { counted, mergeUpdates, type RowUpdate, upTo } from "./message-rows"
import {
  type BoxFacts,
  type Link,
  type MessageParts,
  type MessagesState,
  type Question,
  type State,
  type StateStep,
  type SubscriberFacts,
  step,
  type Tab,
  withInbound,
  withMessages,
  withWebhooks,
} from "./state"

type Delivery = Components["Delivery"]
type DeliveryDetail = Components["DeliveryDetail"]
type Webhook = Components["Webhook"]
type OpenWork = Components["OpenWork"]
type Reputation = Components["Reputation"]
type InboundEmail = Components["InboundEmail"]
type InboundSummary = Components["InboundEmailSummary"]
type Topic = Components["Topic"]

/** Everything that changes the state, except keys. */
export type News =
  | { is: "facts"; facts: readonly RowUpdate[] }
  | { is: "older"; facts: readonly RowUpdate[]; more: boolean; filter: string }
  | { is: "tick"; now: number }
  | { is: "resized"; columns: number; lines: number }
  | { is: "link"; link: Link }
  | { is: "titled"; title: string }
  | { is: "sending"; status: string; reason: string }
  | { is: "message"; id: string; tab: Tab; parts: MessageParts; problem?: string }
  | { is: "endpoints"; endpoints?: readonly Webhook[]; problem?: string }
  | { is: "deliveries"; webhook_id: string; deliveries: readonly Delivery[] }
  | { is: "delivery"; id: string; found: DeliveryDetail | null; problem?: string }
  | { is: "read_only"; why: string }
  | { is: "queue"; work?: OpenWork; problem?: string }
  | { is: "box"; found?: BoxFacts; problem?: string }
  | { is: "reputation"; found?: Reputation; problem?: string }
  | { is: "inbound"; mails?: readonly InboundSummary[]; problem?: string }
  | { is: "inbound_mail"; id: string; found: InboundEmail | null; problem?: string }
  | { is: "topics"; search?: string; topics?: readonly Topic[]; more?: boolean; problem?: string }
  | { is: "publishes"; topic_key: string; publishes: readonly Publish[] }
  | { is: "subscriber"; name: string; found: SubscriberFacts | null; problem?: string }
  | { is: "asked"; screen: State["screen"]; question: Question }
  | { is: "notice"; text: string }

type NewsOf<Kind extends News["is"]> = Extract<News, { is: Kind }>

/** The state after one piece of news, and what is to be done about it. Changes nothing else. */
export function applyNews(state: State, news: News): StateStep {
  switch (news.is) {
    case "facts":
      return heardFacts(state, news.facts)
    case "older":
      return step({ ...state, messages: withOlder(state, news) })
    case "tick":
      return step(ticked(state, news.now))
    case "resized":
      return step(resized({ ...state, columns: news.columns, lines: news.lines }))
    case "link":
      return step({ ...state, link: news.link })
    case "titled":
      return step({ ...state, title: news.title })
    case "sending":
      return step({ ...state, sending: { status: news.status, reason: news.reason } })
    case "notice":
      return step({ ...state, notice: { text: news.text, at: state.now } })
    case "asked": {
      // What a person has turned to meanwhile is not interrupted.
      const { screen, question, prompt } = state
      const is_free = screen === news.screen && question === null && prompt === null
      return step(is_free ? { ...state, question: news.question } : state)
    }
    case "read_only": {
      const notice = { text: news.why, at: state.now }
      return step({ ...withWebhooks(state, { read_only: news.why }), notice })
    }
    case "queue": {
      const { work = state.queue.work, problem = null } = news
      return step({ ...state, queue: { ...state.queue, work, problem } })
    }
    case "reputation": {
      const { found = state.reputation.found, problem = null } = news
      return step({ ...state, reputation: { ...state.reputation, found, problem } })
    }
    case "box": {
      const { found = state.box.found, problem = null } = news
      const next = { ...state, box: { ...state.box, found, problem } }
      return step(found?.held === null ? { ...next, messages: withoutHeld(next) } : next)
    }
    case "inbound":
      return step(withMails(state, news))
    case "inbound_mail":
      return step(withMail(state, news))
    case "message":
      return step(withParts(state, news))
    case "endpoints":
      return withEndpoints(state, news)
    case "deliveries":
      return step(withDeliveries(state, news))
    case "topics":
      return withTopics(state, news)
    case "publishes":
      return step(withPublishes(state, news))
    case "subscriber":
      return step(withSubscriber(state, news))
    case "delivery":
      return step(withDelivery(state, news))
  }
}

function heardFacts(state: State, facts: readonly RowUpdate[]): StateStep {
  const { rows, counts } = mergeUpdates(state.messages.rows, facts)
  const { detail, paused, unseen } = state.messages
  const messages = { ...state.messages, rows, unseen: paused ? unseen + counts.added : 0 }
  const next = {
    ...state,
    rates: counted(state.rates, counts, state.now),
    messages: withShown(messages, state),
  }
  const is_open = detail !== null && facts.some(({ id }) => id === detail.id)
  if (!is_open || !["Timeline", "Events", "Tracking"].includes(detail.tab)) return step(next)
  return step(next, { do: "load_message", id: detail.id, tab: detail.tab })
}

/** Nothing is held since a restore any more, also where no event has told of a message yet. */
function withoutHeld(state: State): MessagesState {
  const { rows } = state.messages
  if (!rows.some(({ is_held }) => is_held)) return state.messages
  return withShown(
    { ...state.messages, rows: rows.map((row) => ({ ...row, is_held: false })) },
    state,
  )
}

function withOlder(state: State, { facts, more, filter }: NewsOf<"older">): MessagesState {
  const { rows } = mergeUpdates(state.messages.rows, facts, false)
  // A page that was asked for with another filter says nothing about the end of this list.
  const is_same = filter === state.messages.filter.text
  const older = is_same ? (more ? "more" : "none") : state.messages.older
  return withShown({ ...state.messages, rows, older }, state)
}

/** Filters again, unless paused. The selected row stays where it is. */
export function withShown(messages: MessagesState, state: State): MessagesState {
  if (messages.paused) return messages
  const { filter, rows } = messages
  const shown = filter.text === "" ? rows : rows.filter((row) => filter.matches(row, state.now))
  const position = kept(messages.position, messages.shown, shown, tableRows(layoutOf(state).height))
  return { ...messages, shown, position }
}

/** What is here already is filtered at once; the server is asked for what is not. */
export function withFilter(state: State, filter: MessageFilter): StateStep {
  const running = { filter, paused: false, unseen: 0, older: "loading" as const }
  const messages = { ...state.messages, ...running }
  const next = { ...state, screen: "messages" as const, messages: withShown(messages, state) }
  return step(next, { do: "load_older", filter })
}

const NOTICE_MILLISECONDS = 6000

function ticked(state: State, now: number): State {
  const old = state.notice !== null && now - state.notice.at > NOTICE_MILLISECONDS
  const next = { ...state, now, rates: upTo(state.rates, now), notice: old ? null : state.notice }
  // With `since:` rows that are too old leave by themselves.
  return state.messages.filter.query.since === undefined
    ? next
    : { ...next, messages: withShown(state.messages, next) }
}

function resized(state: State): State {
  const { messages, webhooks, inbound } = state
  const { height } = layoutOf(state)
  const mails = inbound.mails ?? []
  const [upper, lower] = webhookHeights(height, webhooks.endpoints?.length ?? 0)
  const { position, shown } = messages
  const { endpoints, deliveries } = webhooks
  const list = endpoints ?? []
  return {
    ...state,
    audience: keptAudience(state),
    messages: { ...messages, position: kept(position, shown, shown, tableRows(height)) },
    inbound: { ...inbound, position: kept(inbound.position, mails, mails, tableRows(height)) },
    webhooks: {
      ...webhooks,
      position: kept(webhooks.position, list, list, tableRows(upper)),
      delivery_position: kept(webhooks.delivery_position, deliveries, deliveries, tableRows(lower)),
    },
  }
}

/** The chosen mail stays chosen when newer ones come; at the top of the list the newest is. */
function withMails(state: State, news: NewsOf<"inbound">): State {
  const before = state.inbound
  const { mails = before.mails, problem = null } = news
  const rows = tableRows(layoutOf(state).height)
  const position = kept(before.position, before.mails ?? [], mails ?? [], rows)
  return withInbound(state, { mails, problem, position })
}

function withMail(state: State, { id, found, problem }: NewsOf<"inbound_mail">): State {
  const { detail } = state.inbound
  if (detail?.id !== id) return state
  const next = { ...detail, found: found ?? detail.found, problem: problem ?? null }
  return withInbound(state, { detail: next })
}

function withParts(state: State, { id, tab, parts, problem }: NewsOf<"message">): State {
  const { detail } = state.messages
  if (detail?.id !== id) return state
  const { [tab]: _, ...others } = detail.parts.problems ?? {}
  const problems = problem === undefined ? others : { ...others, [tab]: problem }
  const next = { ...detail, parts: { ...detail.parts, ...parts, problems } }
  return withMessages(state, { detail: next })
}

function withEndpoints(state: State, news: NewsOf<"endpoints">): StateStep {
  const before = state.webhooks
  const { endpoints = before.endpoints, problem = null } = news
  const [upper] = webhookHeights(layoutOf(state).height, endpoints?.length ?? 0)
  // A new endpoint does not change the selection.
  const held = { ...before.position, follows: before.position.selected === null }
  const position = kept(held, before.endpoints ?? [], endpoints ?? [], tableRows(upper))
  const still = { ...position, follows: false }
  const next = withWebhooks(state, { endpoints, problem, position: still })
  if (position.selected === null) return step(next)
  return step(next, { do: "load_deliveries", webhook_id: position.selected })
}

function withDeliveries(state: State, { webhook_id, deliveries }: NewsOf<"deliveries">): State {
  const { webhooks } = state
  if (webhooks.position.selected !== webhook_id) return state
  const is_same = webhooks.deliveries_of === webhook_id
  const [, lower] = webhookHeights(layoutOf(state).height, webhooks.endpoints?.length ?? 0)
  const before = is_same ? webhooks.deliveries : []
  const position = is_same ? webhooks.delivery_position : { selected: null, top: 0, follows: true }
  const delivery_position = kept(position, before, deliveries, tableRows(lower))
  return withWebhooks(state, { deliveries, deliveries_of: webhook_id, delivery_position })
}

function withDelivery(state: State, { id, found, problem }: NewsOf<"delivery">): State {
  const { detail } = state.webhooks
  if (detail?.id !== id) return state
  const next = { ...detail, found: found ?? detail.found, problem: problem ?? null }
  return withWebhooks(state, { detail: next })
}
