import {
  type Static,
  type StringOptions,
  type TOptional,
  type TUnknown,
  Type as t,
} from "@sinclair/typebox"
import { invalid, type Problems } from "../core/errors"
import { isPast } from "../core/time"
import { nameText, ONE_LINE, oneOf, orNull } from "../http/field-schemas"
import { readTime } from "../http/page"
import { AUDIENCE_CHANNELS, type AudienceChannel, byChannel } from "../lib/preferences"
import { count, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { CATEGORY_SLUG } from "../lib/text"
import type { PublishContent } from "../messages/planner"
import { readCategory, readScheduledAt } from "../messages/send-fields"

const MOST_EXCLUDED = 1000
const LONGEST_NAME = 255
const LONGEST_TEMPLATE_NAME = 100

/** What each channel takes. */
export type PublishContents = Record<AudienceChannel, PublishContent>

const contentsOf = (contents: PublishContents) =>
  byChannel((channel) => t.Optional(contents[channel].schema) as TOptional<TUnknown>)

const words = (options: StringOptions) => t.Optional(orNull(t.String(options)))

export const newPublish = (contents: PublishContents) =>
  t.Object({
    channels: t.Array(oneOf(...AUDIENCE_CHANNELS), {
      minItems: 1,
      maxItems: AUDIENCE_CHANNELS.length,
      description: "The channels of the publish. Each needs content.",
    }),
    template_id: words({
      minLength: 1,
      maxLength: LONGEST_TEMPLATE_NAME,
      pattern: ONE_LINE,
      description: "The id or the name of a template, in the place of `content`.",
    }),
    content: t.Optional(
      t.Object(contentsOf(contents), {
        description: "The texts of each channel, in the place of `template_id`.",
      }),
    ),
    variables: t.Optional(
      t.Record(t.String(), t.Unknown(), {
        description: "Variables of the texts. Each recipient has the variable `subscriber`, too.",
      }),
    ),
    category: words({ pattern: CATEGORY_SLUG, description: "The category, which people can end." }),
    exclude: t.Optional(
      t.Array(nameText(LONGEST_NAME), {
        maxItems: MOST_EXCLUDED,
        description: `Up to ${MOST_EXCLUDED} ids or external ids of subscribers that get nothing.`,
      }),
    ),
    scheduled_at: words({ description: "When it begins. At most 90 days ahead. Default: now." }),
    expires_at: words({
      description:
        "No message is made after this time. One that still waits then fails with the reason `expired`. Default: never.",
    }),
    dedupe_key: words({
      minLength: 1,
      maxLength: LONGEST_NAME,
      pattern: ONE_LINE,
      description: "The same key for the same topic starts nothing more within 24 hours.",
    }),
    respect_preferences: t.Optional(
      t.Boolean({
        description:
          "false: Belfry ignores the choices of the subscribers. Blocks and suppressions do.",
      }),
    ),
  })

type Input = Static<ReturnType<typeof newPublish>>

export interface PublishIntent {
  channels: AudienceChannel[]
  /** The id or name of a template; null where `content` says it. */
  template: string | null
  content: Partial<Record<AudienceChannel, unknown>> | null
  variables: Record<string, unknown> | null
  category: string | null
  /** The subscribers that get nothing: ids, and in a request external ids, too. */
  exclude: string[]
  respect_preferences: boolean
}

export interface PublishInput extends PublishIntent {
  scheduled_at: string | null
  expires_at: string | null
  dedupe_key: string | null
}

/** Reads the body of a publish. The result counts only while there are no problems. */
export function readPublish(
  contents: PublishContents,
  given: Input,
  problems: Problems,
): PublishInput {
  const channels = [...new Set(given.channels)]
  const template = given.template_id ?? null
  requireContent(given, channels, problems)
  const scheduled_at = readScheduledAt(given.scheduled_at, "scheduled_at", problems)
  const expires_at = readExpiry(given.expires_at, scheduled_at, problems)
  const dedupe_key = given.dedupe_key ?? null
  if (dedupe_key === null && hasExpired(expires_at)) problems.add("expires_at", "invalid", EXPIRED)
  return {
    channels,
    template,
    content: readContents(contents, given, channels, problems),
    variables: given.variables ?? null,
    category: readCategory(given.category, "category", problems),
    exclude: [...new Set(given.exclude)],
    scheduled_at,
    expires_at,
    dedupe_key,
    respect_preferences: given.respect_preferences ?? true,
  }
}

function requireContent(given: Input, channels: AudienceChannel[], problems: Problems): void {
  if (given.template_id != null && given.content !== undefined) {
    problems.add("content", "invalid", "Give either template_id or content.")
  }
  if (given.template_id != null) return
  for (const channel of channels) {
    if (given.content?.[channel] !== undefined) continue
    const message = `The channel ${channel} needs content. Give content.${channel} or template_id.`
    problems.add(`content.${channel}`, "required", message)
  }
}

function readContents(
  contents: PublishContents,
  { content }: Input,
  channels: AudienceChannel[],
  problems: Problems,
): PublishInput["content"] {
  if (!content) return null
  const read = channels.flatMap((channel) => {
    const given = content[channel]
    return given === undefined ? [] : [[channel, contents[channel].read(given, problems)]]
  })
  return Object.fromEntries(read)
}

function readExpiry(
  value: string | null | undefined,
  scheduled_at: string | null,
  problems: Problems,
): string | null {
  if (value == null) return null
  const at = readTime("expires_at", value, problems)
  if (at === undefined) return null
  if (scheduled_at !== null && at <= scheduled_at) {
    problems.add("expires_at", "invalid", "The end must be later than scheduled_at.")
  }
  return at
}

const hasExpired = (expires_at: string | null): boolean => expires_at !== null && isPast(expires_at)

const EXPIRED = "The time has passed. Give a later one."

/**
 * Throws 422 for a new publish whose time has passed. A request with a `dedupe_key` is asked only where it begins
 * a publish: repeated later, it still has the first one as its answer.
 */
export function requireUnexpired({ expires_at }: Pick<PublishInput, "expires_at">): void {
  if (hasExpired(expires_at)) throw invalid("expires_at", "invalid", EXPIRED)
}

const skipped = t.Object({
  no_address: count(3, "They have no address for the channel."),
  preference: count(41, "They chose not to get it, or left the topic before their turn."),
  suppressed: count(2),
  frequency_cap: count(0, "They got as many messages lately as the project allows."),
  quota: count(0, "The monthly quota was used up."),
})

const counts = t.Object({
  planned: count(1250, "The audience of the channel."),
  sent: count(1204, "Messages that were made."),
  skipped,
  failed: count(4, "The messages that bounced, failed or were cancelled."),
})

export const Publish = t.Object(
  {
    id: id(),
    topic_key: text("product-news"),
    status: word([
      "completed",
      "scheduled",
      "queued",
      "fanning_out",
      "paused",
      "failed",
      "cancelled",
    ]),
    status_reason: rarely(
      text(
        "account_frozen",
        "Why it waits or failed. `held_after_restore`: an operator resumes or drops it. `no_provider`: it looks again each minute for one that delivers to the next member. `country_limit`: no more texts may go to a country in this hour.",
      ),
    ),
    audience: count(1250, "The members of the topic when it began. 0 before that."),
    channels: t.Object(byChannel(() => t.Optional(counts))),
    scheduled_at: rarely(time()),
    created_at: time(),
    completed_at: maybe(time()),
  },
  { title: "Publish" },
)
