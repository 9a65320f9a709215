import { isoFrom } from "../core/time"
import {
  AUDIENCE_CHANNELS,
  type AudienceChannel,
  type ChosenPreferences,
  type FrequencyCap,
  type QuietHours,
  quietUntil,
} from "../lib/preferences"
import type { SubscriberStatus } from "./tables"

export interface DecidedSubscriber {
  status: SubscriberStatus
  timezone: string | null
  preferences: ChosenPreferences | null
  unsubscribes: readonly EndedKind[]
}

/** What a subscriber unsubscribed from: "" as category is the whole channel. */
interface EndedKind {
  channel: AudienceChannel
  category: string
}

export interface DecidedCategory {
  slug: string
  critical: boolean
  default: "on" | "off"
  channels: readonly AudienceChannel[]
}

/** One message to one recipient, of which is asked whether it may go out, and when. */
export interface DecisionInput {
  /** Null: a raw address. */
  subscriber: DecidedSubscriber | null
  /** The address is suppressed: in the project, or for the category or topic of the message. */
  is_suppressed: boolean
  /** Of a project without categories: `plainCategory`. */
  category: DecidedCategory | null
  topic: { key: string; default: "on" | "off" } | null
  workflow: { key: string; is_critical: boolean } | null
  /** The intent asks for no preferences (`respect_preferences: false`): as where it is critical. */
  ignores_preferences?: boolean
  channel: AudienceChannel
  stream: "transactional" | "broadcast" | "auth"
  project: DecidingProject
  /** Messages to the subscriber of this channel and category within the time of the cap. */
  recent: number
  /** The moment at which the message would leave, in epoch milliseconds. */
  at: number
}

/** What the decision knows of the project: some of its settings. */
interface DecidingProject {
  default_preferences: ChosenPreferences | null
  quiet_hours: QuietHours | null
  timezone: string
  frequency_cap: FrequencyCap | null
}

export const DECISION_REASONS = [
  "blocked",
  "suppressed",
  "category_channels",
  "unsubscribed",
  "channel_disabled",
  "preference",
  "default",
  "frequency_cap",
  "quiet_hours",
] as const

export type DecisionReason = (typeof DECISION_REASONS)[number]

/** Whether a message may go out: by which row of the table, and why not, or why later. */
export interface SendDecision {
  /** The row of contract 43, section 2, that decided: 1 to 11. */
  row: number
  is_allowed: boolean
  /** Null where nothing stands against the message. */
  reason: DecisionReason | null
  /** The end of the quiet hours; null where the message need not wait. */
  deferred_until: string | null
}

/** What a category means to a project that has none: a name, and no rule. */
export const plainCategory = (slug: string): DecidedCategory => ({
  slug,
  critical: false,
  default: "on",
  channels: [...AUDIENCE_CHANNELS],
})

/** The decision for one recipient and channel (contract 43, section 2), without any look-up. */
export function decide(input: DecisionInput): SendDecision {
  if (input.subscriber?.status === "blocked") return no(1, "blocked")
  if (input.is_suppressed) return no(2, "suppressed")
  if (isRawSend(input)) return yes(9)
  if (input.category && !input.category.channels.includes(input.channel)) {
    return no(3, "category_channels")
  }
  if (isCritical(input)) return yes(4)
  if (hasUnsubscribed(input)) return no(5, "unsubscribed")
  if (input.subscriber?.preferences?.[input.channel]?.enabled === false) {
    return no(6, "channel_disabled")
  }
  const chosen = byChoice(input)
  return chosen.is_allowed ? byRate(input, chosen) : chosen
}

/** Rows 7 to 9: what the subscriber chose, else the project, else the topic and the category. */
function byChoice(input: DecisionInput): SendDecision {
  const own = explicitEntry(input.subscriber?.preferences, input)
  if (own !== undefined) return own ? yes(7) : no(7, "preference")
  const { default_preferences } = input.project
  const given = explicitEntry(default_preferences, input)
  if (given !== undefined) return given ? yes(8) : no(8, "default")
  if (default_preferences?.[input.channel]?.enabled === false) return no(8, "default")
  const is_off = input.topic?.default === "off" || input.category?.default === "off"
  return is_off ? no(8, "default") : yes(9)
}

/** Rows 10 and 11: what may go out must not be too much, nor come at night. */
function byRate(input: DecisionInput, chosen: SendDecision): SendDecision {
  const { subscriber, stream, project, at } = input
  if (stream === "auth") return chosen
  const { frequency_cap } = project
  if (subscriber && frequency_cap && input.recent >= frequency_cap.count) {
    return no(10, "frequency_cap")
  }
  const quiet_until = quietEnd(input)
  if (quiet_until <= at) return chosen
  return {
    row: 11,
    is_allowed: true,
    reason: "quiet_hours",
    deferred_until: isoFrom(quiet_until),
  }
}

/** A send that names neither a subscriber nor a category: only suppressions concern it. */
const isRawSend = ({ subscriber, category, topic, workflow }: DecisionInput): boolean =>
  !subscriber && !category && !topic && !workflow

const isCritical = ({ category, workflow, ignores_preferences }: DecisionInput): boolean =>
  category?.critical === true || workflow?.is_critical === true || ignores_preferences === true

function hasUnsubscribed({ subscriber, channel, category }: DecisionInput): boolean {
  if (!subscriber) return false
  if (subscriber.status === "unsubscribed") return true
  return subscriber.unsubscribes.some(
    (ended) =>
      ended.channel === channel && (ended.category === "" || ended.category === category?.slug),
  )
}

/**
 * The entry that somebody wrote for the workflow, then the topic, then the category; undefined without
 * one. To members of a topic that is off by default a category's yes says nothing.
 */
function explicitEntry(
  chosen: ChosenPreferences | null | undefined,
  { workflow, topic, category, channel }: DecisionInput,
): boolean | undefined {
  if (!chosen) return undefined
  const ofWorkflow = workflow ? entryOf(chosen.workflows, workflow.key) : undefined
  if (ofWorkflow !== undefined) return ofWorkflow
  const ofTopic = topic ? entryOf(chosen.topics, topic.key)?.[channel] : undefined
  if (ofTopic !== undefined) return ofTopic
  const ofCategory = category ? entryOf(chosen[channel]?.categories, category.slug) : undefined
  return ofCategory && topic?.default === "off" ? undefined : ofCategory
}

/** Keys are free text, such as `constructor`. */
const entryOf = <Entry>(entries: Record<string, Entry> | undefined, key: string) =>
  entries && Object.hasOwn(entries, key) ? entries[key] : undefined

/** When the quiet hours of the channel end; `at` itself outside of them. */
function quietEnd({ subscriber, project, channel, at }: DecisionInput): number {
  const quiet = subscriber?.preferences?.quiet_hours ?? project.quiet_hours
  if (!quiet?.enabled || channel === "in_app" || !quiet.channels.includes(channel)) return at
  return quietUntil(at, quiet, quiet.timezone ?? subscriber?.timezone ?? project.timezone)
}

const yes = (row: number): SendDecision => ({
  row,
  is_allowed: true,
  reason: null,
  deferred_until: null,
})

const no = (row: number, reason: DecisionReason): SendDecision => ({
  row,
  is_allowed: false,
  reason,
  deferred_until: null,
})
