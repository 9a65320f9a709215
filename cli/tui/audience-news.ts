import type { Components } from "../../src/client/components"
import { isOver, type Publish, totalsOf, withSample } from "../lib/publish-progress"
import { chosen, kept, layoutOf, tableRows, webhookHeights } from "./layout"
import {
  type AudienceState,
  type State,
  type StateStep,
  type SubscriberFacts,
  step,
  withAudience,
} from "./state"

interface TopicsNews {
  topics?: readonly Components["Topic"][]
  problem?: string
}

/** A new topic does not change the selection. The publishes of the chosen one are asked for. */
export function withTopics(state: State, news: TopicsNews): StateStep {
  const before = state.audience
  const { topics = before.topics, problem = null } = news
  const held = { ...before.position, follows: before.position.selected === null }
  const [upper] = webhookHeights(layoutOf(state).height, topics?.length ?? 0)
  const position = kept(held, before.topics ?? [], topics ?? [], tableRows(upper))
  const next = withAudience(state, { topics, problem, position: { ...position, follows: false } })
  const topic = chosen(topics ?? [], position)
  return topic ? step(next, { do: "load_publishes", topic_key: topic.key }) : step(next)
}

interface PublishesNews {
  topic_key: string
  publishes: readonly Publish[]
}

/** Publishes of another topic than the chosen one came too late. */
export function withPublishes(state: State, { topic_key, publishes }: PublishesNews): State {
  const { audience } = state
  if (chosen(audience.topics ?? [], audience.position)?.key !== topic_key) return state
  const is_same = audience.publishes_of === topic_key
  const before = is_same ? audience.publishes : []
  const place = is_same ? audience.publish_position : { selected: null, top: 0, follows: true }
  const [, lower] = webhookHeights(layoutOf(state).height, audience.topics?.length ?? 0)
  const publish_position = kept(place, before, publishes, tableRows(lower))
  const samples = samplesOf(audience, publishes, state.now)
  const changes = { publishes, publishes_of: topic_key, publish_position, samples }
  return withAudience(state, changes)
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
