import type { Components } from "../../src/client/components"
import { isOver, type Publish, totalsOf, withSample } from "../lib/publish-progress"
import { kept, type ListPosition, moved, TOP_OF_LIST } from "./layout"
import { chosen, rowsOf, visibleRows, withDetail, withList, withLower } from "./lists"
import { type Intent, type State, type StateStep, step } from "./state"

type Topic = Components["Topic"]

interface TopicsNews {
  is: "topics"
  search: string
  rows: readonly Topic[]
  /** Whether the server has more of them. */
  more: boolean
}

interface PublishesNews {
  is: "publishes"
  topic_key: string
  rows: readonly Publish[]
}

export type AudienceNews = TopicsNews | PublishesNews

/** Asks for the topics that the search finds. */
export const loadTopics = ({ audience: { search } }: State): Intent =>
  search === "" ? { do: "load_topics" } : { do: "load_topics", search }

/** Asks for the newest publishes to a topic. */
export const loadPublishes = (topic_key: string): Intent => ({ do: "load_publishes", topic_key })

const UNREAD = { rows: null, position: TOP_OF_LIST, of: null }

/** Shows the topics with this text, or all of them for "". */
export function searchTopics(state: State, search: string): StateStep {
  const audience = { ...state.audience, more: false, search, next_look: 0, samples: {} }
  const lists = { ...state.lists, topics: UNREAD, publishes: UNREAD }
  const emptied = { lower: { ...state.lower, audience: false }, problems: {} }
  const begun = { ...state, screen: "audience" as const, audience, lists, ...emptied }
  return step(withDetail(begun, "audience", undefined), loadTopics(begun))
}

/**
 * A new topic does not change the selection. The publishes of the chosen one are asked for, and those of some
 * others, so that open ones are marked. What another search found came too late.
 */
export function withTopics(state: State, { search, rows, more }: TopicsNews): StateStep {
  if (search !== state.audience.search) return step(state)
  const { keys, next_look } = nextLooks(state, rows)
  const marked = { ...state, audience: { ...state.audience, more, next_look } }
  const next = withTopicRows(marked, rows)
  const topic = chosen(next, "topics")
  const asked = new Set([...(topic ? [topic.key] : []), ...keys])
  return step(next, ...[...asked].map(loadPublishes))
}

/** About as many topics as a large terminal shows are looked at when the list is new. */
const FIRST_LOOKS = 20

/** Later a few at a time, because a plan limits the requests of a minute. */
const LOOKS = 2

function nextLooks({ audience: { next_look }, lists }: State, read: readonly Topic[]) {
  if (read.length === 0) return { keys: [], next_look }
  const looks = Math.min(read.length, lists.topics.rows === null ? FIRST_LOOKS : LOOKS)
  const all = Array.from({ length: looks }, (_, at) => read[(next_look + at) % read.length])
  const keys = all.flatMap((topic) => topic?.key ?? [])
  return { keys, next_look: (next_look + looks) % read.length }
}

/** Those with an open publish first. A list at its top stays there, so that these are seen. */
function withTopicRows(state: State, read: readonly Topic[]): State {
  const isOpen = ({ key }: Topic) => (state.audience.open[key] ?? []).length > 0
  const topics = [...read.filter(isOpen), ...read.filter((topic) => !isOpen(topic))]
  const before = state.lists.topics.position
  const next = withList(state, "topics", { rows: topics })
  const seen = visibleRows(next, "topics")
  const held = { ...before, follows: before.selected === null }
  const place: ListPosition = {
    ...kept(held, rowsOf(state, "topics"), topics, seen),
    follows: false,
  }
  const position = before.top === 0 ? moved({ ...place, top: 0 }, topics, 0, seen) : place
  return withList(next, "topics", { position })
}

/** Publishes to another topic than the chosen one only mark it. */
export function withPublishes(before: State, { topic_key, rows }: PublishesNews): State {
  const running = rows.filter((publish) => !isOver(publish))
  const open = { ...before.audience.open, [topic_key]: running }
  const marked = { ...before, audience: { ...before.audience, open } }
  const { topics } = marked.lists
  const state = topics.rows ? withTopicRows(marked, topics.rows) : marked
  const topic = chosen(state, "topics")
  if (topic?.key !== topic_key) return state
  const samples = samplesOf(state, running)
  const next = { ...state, audience: { ...state.audience, samples } }
  return withLower(next, "topics", "publishes", topic.id, rows)
}

function samplesOf({ audience: { samples }, now }: State, running: readonly Publish[]) {
  return Object.fromEntries(
    running.map((publish) => {
      const sample = { at: now, done: totalsOf(publish).done }
      return [publish.id, withSample(samples[publish.id] ?? [], sample)]
    }),
  )
}
