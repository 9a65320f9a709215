import { isHeld } from "../lib/message-status"
import { type AudienceNews, withPublishes, withTopics } from "./audience-news"
import type { MessageFilter } from "./filter"
import { rowsOf, withDetail, withList, withLower, withRows } from "./lists"
import { counted, mergeUpdates, type RowUpdate, upTo } from "./message-rows"
import {
  type Detail,
  type Link,
  type ListName,
  type Opened,
  type PageScreen,
  type Pages,
  type Question,
  type Rows,
  type ScreenName,
  type State,
  type StateStep,
  said,
  step,
  type Tab,
} from "./state"

type DetailNews = {
  [Name in keyof Opened]: {
    is: "detail"
    screen: Name
    id: string
    tab?: Tab
    found: Opened[Name] | null
    problem?: string
  }
}[keyof Opened]

/** Everything that changes the state, except keys. */
export type News =
  | { is: "facts"; facts: readonly RowUpdate[] }
  | { is: "older"; facts: readonly RowUpdate[]; more: boolean; filter: string }
  | { is: "tick"; now: number }
  | { is: "resized"; columns: number; lines: number }
  | { is: "link"; link: Link }
  | { is: "titled"; title: string }
  | { is: "sending"; status: string; reason: string }
  | { is: "endpoints"; rows: readonly Rows["endpoints"][] }
  | { is: "deliveries"; webhook_id: string; rows: readonly Rows["deliveries"][] }
  | { is: "inbound"; rows: readonly Rows["inbound"][] }
  | AudienceNews
  | { [Name in PageScreen]: { is: "page"; screen: Name; found: Pages[Name] } }[PageScreen]
  | DetailNews
  | { is: "problem"; screen: ScreenName; problem: string }
  | { is: "read_only"; why: string }
  | { is: "asked"; screen: ScreenName; question: Question }
  | { is: "notice"; text: string }

type NewsOf<Kind extends News["is"]> = Extract<News, { is: Kind }>

/** The state after one piece of news, and what is to be done about it. Changes nothing else. */
export function applyNews(state: State, news: News): StateStep {
  switch (news.is) {
    case "facts":
      return heardFacts(state, news.facts)
    case "older":
      return step(withOlder(state, news))
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
    case "endpoints":
      return withEndpoints(state, news)
    case "deliveries":
      return step(withLower(state, "endpoints", "deliveries", news.webhook_id, news.rows))
    case "inbound":
      return step(withRows(read(state, "inbound"), "inbound", news.rows))
    case "topics":
      return withTopics(read(state, "audience"), news)
    case "publishes":
      return step(withPublishes(state, news))
    case "page":
      return step(withPage(read(state, news.screen), news))
    case "detail":
      return step(withFound(state, news))
    case "problem":
      return step({ ...state, problems: { ...state.problems, [news.screen]: news.problem } })
    case "read_only":
      return said({ ...state, read_only: news.why }, news.why)
    case "asked": {
      // What a person has turned to meanwhile is not interrupted.
      const { screen, question, prompt } = state
      const is_free = screen === news.screen && question === null && prompt === null
      return step(is_free ? { ...state, question: news.question } : state)
    }
    case "notice":
      return said(state, news.text)
  }
}

const read = (state: State, screen: ScreenName): State => ({
  ...state,
  problems: { ...state.problems, [screen]: undefined },
})

/** In the upper one of two lists a new row does not change the selection. */
function withEndpoints(state: State, { rows }: NewsOf<"endpoints">): StateStep {
  const { position } = state.lists.endpoints
  const held = { ...position, follows: position.selected === null }
  const next = withRows(
    withList(read(state, "webhooks"), "endpoints", { position: held }),
    "endpoints",
    rows,
  )
  const still = { ...next.lists.endpoints.position, follows: false }
  const webhook_id = still.selected
  const load = webhook_id === null ? [] : [{ do: "load_deliveries" as const, webhook_id }]
  return step(withList(next, "endpoints", { position: still }), ...load)
}

function withPage(state: State, { screen, found }: NewsOf<"page">): State {
  const pages = { ...state.pages, [screen]: { ...state.pages[screen], found } }
  const next = { ...state, pages }
  return screen === "box" && found.held === null ? withoutHeld(next) : next
}

/** What is read of another record than the opened one came too late. Parts of a message come one by one. */
function withFound(state: State, { screen, id, tab, found, problem }: DetailNews): State {
  const detail: Detail | undefined = state.details[screen]
  if (detail?.id !== id) return state
  const is_seen = tab === undefined || tab === detail.tab
  const parts = found ? { ...detail.found, ...found } : detail.found
  const next = { ...detail, found: parts, problem: is_seen ? (problem ?? null) : detail.problem }
  return withDetail(state, screen, next)
}

function heardFacts(state: State, facts: readonly RowUpdate[]): StateStep {
  const { rows, counts } = mergeUpdates(state.messages.rows, facts)
  const { paused, unseen } = state.messages
  const messages = { ...state.messages, rows, unseen: paused ? unseen + counts.added : 0 }
  const next = withShown({ ...state, rates: counted(state.rates, counts, state.now), messages })
  const detail = state.details.messages
  const is_open = detail !== undefined && facts.some(({ id }) => id === detail.id)
  if (!is_open || !["Timeline", "Events", "Tracking"].includes(detail.tab)) return step(next)
  return step(next, { do: "load_message", id: detail.id, tab: detail.tab })
}

/** Nothing is held since a restore any more, also where no event has told of a message yet. */
function withoutHeld(state: State): State {
  const { messages } = state
  if (!messages.rows.some(({ status_reason }) => isHeld(status_reason))) return state
  const rows = messages.rows.map((row) =>
    isHeld(row.status_reason) ? { ...row, status_reason: "" } : row,
  )
  return withShown({ ...state, messages: { ...messages, rows } })
}

function withOlder(state: State, { facts, more, filter }: NewsOf<"older">): State {
  const { rows } = mergeUpdates(state.messages.rows, facts, false)
  // A page that was asked for with another filter says nothing about the end of this list.
  const is_same = filter === state.messages.filter.text
  const older = is_same ? (more ? "more" : "none") : state.messages.older
  return withShown({ ...state, messages: { ...state.messages, rows, older } })
}

/** Filters again, unless paused. The selected row stays where it is. */
export function withShown(state: State): State {
  const { paused, filter, rows } = state.messages
  if (paused) return state
  const shown = filter.text === "" ? rows : rows.filter((row) => filter.matches(row, state.now))
  return withRows(state, "messages", shown)
}

/** What is here already is filtered at once; the server is asked for what is not. */
export function withFilter(state: State, filter: MessageFilter): StateStep {
  const running = { filter, paused: false, unseen: 0, older: "loading" as const }
  const messages = { ...state.messages, ...running }
  const next = withShown({ ...state, screen: "messages", messages })
  return step(next, { do: "load_older", filter })
}

const NOTICE_MILLISECONDS = 6000

function ticked(state: State, now: number): State {
  const old = state.notice !== null && now - state.notice.at > NOTICE_MILLISECONDS
  const next = { ...state, now, rates: upTo(state.rates, now), notice: old ? null : state.notice }
  // With `since:` rows that are too old leave by themselves.
  return state.messages.filter.query.since === undefined ? next : withShown(next)
}

/** Each list with its chosen row on the screen. */
function resized(state: State): State {
  const names = Object.keys(state.lists) as ListName[]
  return names.reduce((next, name) => withRows(next, name, rowsOf(next, name)), state)
}
