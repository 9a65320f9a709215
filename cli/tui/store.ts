import { millis } from "../lib/time"
import { withPublishes, withTopics } from "./audience-screen"
import {
  loadsBelow,
  rowsOf,
  screenOfList,
  withDetail,
  withLower,
  withRows,
  withUpper,
} from "./lists"
import { type RowUpdate, upTo } from "./message-rows"
import { heardFacts, withOlder, withoutHeld, withShown } from "./messages-screen"
import { press } from "./press"
import {
  type Detail,
  type Intent,
  type ListName,
  listsOf,
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

/** However fast keys come: a screen is drawn at most ten times a second. */
export const FRAME_MILLISECONDS = 100

/** What only scrolls by is read no better at ten times a second than at five. */
const NEWS_MILLISECONDS = 200

/**
 * The collector looks at young objects after each group of news, and at all objects after this many
 * groups.
 */
const WHOLE_LOOK = 15

export interface MonitorStore {
  /** The state as it was when it was last told to draw. */
  drawn(): State
  state(): State
  subscribe(listener: () => void): () => void
  dispatch(news: News): void
  press(key: string): void
  /** Collected, and looked at together with the next frame. */
  facts(facts: readonly RowUpdate[]): void
  /** Ends its timers. */
  close(): void
}

/** Holds the state, lets `act` do what comes of it, and rations the redraws. */
export function openStore(first: State, act: (intent: Intent) => void): MonitorStore {
  let state = first
  let drawn = first
  let collected: RowUpdate[] = []
  let timer: Timer | undefined
  let last_draw = 0
  let due = 0
  let batches = 0
  const listeners = new Set<() => void>()

  const apply = ({ state: next, intents }: StateStep) => {
    state = next
    for (const intent of intents) act(intent)
  }
  const draw = () => {
    timer = undefined
    last_draw = millis()
    if (collected.length > 0) {
      const facts = collected
      collected = []
      apply(applyNews(state, { is: "facts", facts }))
      // Thousands of frames a second make much garbage. The runtime alone would let a hundred
      // megabytes gather first.
      batches += 1
      Bun.gc(batches % WHOLE_LOOK === 0)
    }
    if (drawn === state) return
    drawn = state
    for (const listener of listeners) listener()
  }
  const soon = (milliseconds: number) => {
    const now = millis()
    const at = Math.max(now, last_draw + milliseconds)
    if (timer !== undefined && due <= at) return
    clearTimeout(timer)
    due = at
    timer = setTimeout(draw, at - now)
  }
  const second = setInterval(() => {
    apply(applyNews(state, { is: "tick", now: millis() }))
    soon(NEWS_MILLISECONDS)
  }, 1000)

  return {
    drawn: () => drawn,
    state: () => state,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    dispatch(news) {
      apply(applyNews(state, news))
      soon(NEWS_MILLISECONDS)
    },
    press(key) {
      apply(press(state, key))
      soon(FRAME_MILLISECONDS)
    },
    facts(facts) {
      collected.push(...facts)
      soon(NEWS_MILLISECONDS)
    },
    close() {
      clearTimeout(timer)
      clearInterval(second)
    },
  }
}

/** Everything that changes the state, except keys. */
export type News =
  | { is: "facts"; facts: readonly RowUpdate[] }
  | { is: "older"; facts: readonly RowUpdate[]; more: boolean; filter: string }
  | { is: "tick"; now: number }
  | { is: "resized"; columns: number; lines: number }
  | { is: "known"; of: Partial<Pick<State, "link" | "title" | "sending">> }
  | RowsNews
  | { is: "page"; screen: PageScreen; found: Pages[PageScreen] }
  | DetailNews
  | { is: "problem"; screen: ScreenName; problem: string }
  | { is: "read_only"; why: string }
  | { is: "asked"; screen: ScreenName; question: Question }
  | { is: "notice"; text: string }

interface RowsNews {
  is: "rows"
  list: ListName
  /** The row above that they belong to; of topics the search that found them. */
  of?: string
  rows: readonly Rows[ListName][]
  /** Whether the server has more of them. */
  more?: boolean
}

interface DetailNews {
  is: "detail"
  screen: keyof Opened
  id: string
  tab: Tab
  found: Opened[keyof Opened] | null
  problem?: string
}

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
    case "known":
      return step({ ...state, ...news.of })
    case "rows":
      return withRead(state, news)
    case "page":
      return step(withPage(state, news.screen, news.found))
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

function withRead(before: State, news: RowsNews): StateStep {
  const { list, rows, of = "" } = news
  const screen = screenOfList(list)
  const [upper, lower] = listsOf[screen]
  if (news.list === "publishes") return step(withPublishes(before, of, rows as Rows["publishes"][]))
  if (list !== upper) return step(withLower(before, list, of, rows))
  const state = read(before, screen)
  if (news.list === "topics")
    return withTopics(state, of, rows as Rows["topics"][], news.more === true)
  if (news.list === "users") {
    if (of !== state.users.search) return step(state) // another filter found them
    const users = { ...state.users, more: news.more === true }
    return step(withRows({ ...state, users }, list, rows))
  }
  if (!lower) return step(withRows(state, list, rows))
  const next = withUpper(state, list, rows)
  return step(next, ...loadsBelow(next, screen))
}

function withPage(state: State, screen: PageScreen, found: Pages[PageScreen]): State {
  const pages = { ...state.pages, [screen]: { ...state.pages[screen], found } }
  const next = read({ ...state, pages }, screen)
  return next.pages.box.found?.held === null ? withoutHeld(next) : next
}

/** What is read of another record than the opened one came too late. Parts of a message come one by one. */
function withFound(state: State, { screen, id, tab, found, problem }: DetailNews): State {
  const detail: Detail | undefined = state.details[screen]
  if (detail?.id !== id) return state
  const is_seen = tab === detail.tab
  const parts = found ? { ...detail.found, ...found } : detail.found
  const next = { ...detail, found: parts, problem: is_seen ? (problem ?? null) : detail.problem }
  return withDetail(state, screen, next)
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
