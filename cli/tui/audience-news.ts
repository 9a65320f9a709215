import type { Components } from "../../src/client/components"
import { isOver, type Publish, totalsOf, withSample } from "../lib/publish-progress"
import {
  chosen,
  kept,
  type ListPosition,
  layoutOf,
  moved,
  TOP_OF_LIST,
  tableRows,
  webhookHeights,
} from "./layout"
import {
  type AudienceState,
  type Intent,
  type State,
  type StateStep,
  type SubscriberFacts,
  step,
  withAudience,
} from "./state"

type Topic = Components["Topic"]

interface TopicsNews {
  search?: string
  topics?: readonly Topic[]
  more?: boolean
  problem?: string
}

/** Asks for the topics that the search finds. */
export const loadTopics = ({ search }: AudienceState): Intent =>
  search === "" ? { do: "load_topics" } : { do: "load_topics", search }

/** Shows the topics with this text, or all of them for "". */
export function searchTopics(state: State, search: string): StateStep {
  const emptied = { publishes: [], publishes_of: null, samples: {}, detail: null }
  const unread = { topics: null, more: false, problem: null, position: TOP_OF_LIST, next_look: 0 }
  const changes = { ...emptied, ...unread, search, focus: "topics" as const }
  const next = withAudience({ ...state, screen: "audience" }, changes)
  return step(next, loadTopics(next.audience))
}

/**
 * A new topic does not change the selection. The publishes of the chosen one are asked for, and those of some
 * others, so that open ones are marked. What another search found came too late.
 */
export function withTopics(state: State, news: TopicsNews): StateStep {
  const before = state.audience
  if ((news.search ?? "") !== before.search) return step(state)
  const { topics: read = before.topics, more = before.more, problem = null } = news
  const { keys, next_look } = nextLooks(before, news.topics ?? [])
  const topics = read && openFirst(read, before.open)
  const position = keptTopics(state, topics)
  const next = withAudience(state, { topics, more, problem, position, next_look })
  const topic = chosen(topics ?? [], position)
  const asked = new Set([...(topic ? [topic.key] : []), ...keys])
  return step(next, ...[...asked].map((topic_key) => loadPublishes(topic_key)))
}

/** Asks for the newest publishes to a topic. */
export const loadPublishes = (topic_key: string): Intent => ({ do: "load_publishes", topic_key })

/** About as many topics as a large terminal shows are looked at when the list is new. */
const FIRST_LOOKS = 20

/** Later a few at a time, because a plan limits the requests of a minute. */
const LOOKS = 2

function nextLooks({ topics, next_look }: AudienceState, read: readonly Topic[]) {
  if (read.length === 0) return { keys: [], next_look }
  const count = Math.min(read.length, topics === null ? FIRST_LOOKS : LOOKS)
  const all = Array.from({ length: count }, (_, at) => read[(next_look + at) % read.length])
  const keys = all.flatMap((topic) => topic?.key ?? [])
  return { keys, next_look: (next_look + count) % read.length }
}

function openFirst(topics: readonly Topic[], open: AudienceState["open"]): readonly Topic[] {
  const isOpen = ({ key }: Topic) => (open[key] ?? []).length > 0
  return [...topics.filter(isOpen), ...topics.filter((topic) => !isOpen(topic))]
}

/** The chosen topic stays chosen. A list at its top stays there, so that open publishes are seen. */
function keptTopics(state: State, topics: readonly Topic[] | null): ListPosition {
  const { position: before, topics: known } = state.audience
  const after = topics ?? []
  const [upper] = webhookHeights(layoutOf(state).height, after.length)
  const rows = tableRows(upper)
  const held = { ...before, follows: before.selected === null }
  const position = { ...kept(held, known ?? [], after, rows), follows: false }
  return before.top === 0 ? moved({ ...position, top: 0 }, after, 0, rows) : position
}

interface PublishesNews {
  topic_key: string
  publishes: readonly Publish[]
}

/** Publishes to another topic than the chosen one only mark it. */
export function withPublishes(before: State, { topic_key, publishes }: PublishesNews): State {
  const state = withOpen(before, topic_key, publishes)
  const { audience } = state
  if (chosen(audience.topics ?? [], audience.position)?.key !== topic_key) return state
  const is_same = audience.publishes_of === topic_key
  const shown = is_same ? audience.publishes : []
  const place = is_same ? audience.publish_position : { selected: null, top: 0, follows: true }
  const [, lower] = webhookHeights(layoutOf(state).height, audience.topics?.length ?? 0)
  const publish_position = kept(place, shown, publishes, tableRows(lower))
  const samples = samplesOf(audience, publishes, state.now)
  const changes = { publishes, publishes_of: topic_key, publish_position, samples }
  return withAudience(state, changes)
}

function withOpen(state: State, topic_key: string, publishes: readonly Publish[]): State {
  const { audience } = state
  const running = publishes.filter((publish) => !isOver(publish))
  const open = { ...audience.open, [topic_key]: running }
  const topics = audience.topics && openFirst(audience.topics, open)
  return withAudience(state, { open, topics, position: keptTopics(state, topics) })
}

/** Of those that run. */
function samplesOf({ samples }: AudienceState, publishes: readonly Publish[], at: number) {
  const running = publishes.filter((publish) => !isOver(publish))
  return Object.fromEntries(
    running.map((publish) => {
      const { done } = totalsOf(publish)
      return [publish.id, withSample(samples[publish.id] ?? [], { at, done })]
    }),
  )
}

interface SubscriberNews {
  name: string
  found: SubscriberFacts | null
  problem?: string
}

/** What came of another subscriber than the opened one came too late. */
export function withSubscriber(state: State, { name, found, problem }: SubscriberNews): State {
  const { detail } = state.audience
  if (detail?.name !== name) return state
  const next = { ...detail, found: found ?? detail.found, problem: problem ?? null }
  return withAudience(state, { detail: next })
}

/** Both lists at their places, after the terminal got another size. */
export function keptAudience(state: State): AudienceState {
  const { audience } = state
  const { topics, publishes, position, publish_position } = audience
  const list = topics ?? []
  const [upper, lower] = webhookHeights(layoutOf(state).height, list.length)
  return {
    ...audience,
    position: kept(position, list, list, tableRows(upper)),
    publish_position: kept(publish_position, publishes, publishes, tableRows(lower)),
  }
}
