import { type Static, type TSchema, Type as t } from "@sinclair/typebox"
import { invalid, type Problems } from "../core/errors"
import { settingField, settingGroup } from "../http/setting-fields"
import {
  AUDIENCE_CHANNELS,
  byChannel,
  type ChosenPreferences,
  isTimeOfDay,
  OUTGOING_CHANNELS,
  type QuietHours,
} from "../lib/preferences"
import { flag, maybe, text, time, word } from "../lib/record-fields"
import { reservedProblem } from "../lib/reserved-names"
import { CATEGORY_SLUG, shortened } from "../lib/text"
import {
  changedQuietHours,
  MOST_ZONE_CHARACTERS,
  QUIET_DEFAULTS,
  zoneOf,
} from "../tenancy/settings"
import { noSuchCategory, UNKNOWN_CATEGORY } from "./categories"
import { DECISION_REASONS } from "./decision"

/** What a request chooses; null forgets a choice. */
export type PreferencesChange = Static<typeof PreferencesBody>

const WORKFLOW_KEY = /^[a-z0-9][a-z0-9-]{0,63}$/

/** Entries for topics, and for workflows, of one subscriber. */
export const MOST_ENTRIES = 1000

/** Reads preferences. Whether the categories and topics exist is asked later, with `requireKnown`. */
export function readPreferences(change: PreferencesChange, problems: Problems): PreferencesChange {
  for (const key of Object.keys(change.workflows ?? {})) {
    const problem = reservedProblem(key)
    if (!WORKFLOW_KEY.test(key)) problems.add(`workflows.${key}`, "invalid", NO_WORKFLOW_KEY)
    else if (problem !== undefined) problems.add(`workflows.${key}`, "reserved", problem)
  }
  if (!change.quiet_hours) return change
  const known = Object.entries(change.quiet_hours).filter(([name]) =>
    Object.hasOwn(QUIET_DEFAULTS, name),
  )
  const quiet_hours = quietHours.read(Object.fromEntries(known), "quiet_hours", problems)
  return quiet_hours ? { ...change, quiet_hours } : change
}

const NO_WORKFLOW_KEY =
  "A workflow key has 1 to 64 lower-case letters, digits and hyphens. It begins with a letter or digit."

/** Adds a problem for each category and topic that the project does not have. */
export function requireKnown(
  change: PreferencesChange,
  known: { categories: ReadonlySet<string>; topics: ReadonlySet<string> },
  problems: Problems,
): void {
  for (const channel of AUDIENCE_CHANNELS) {
    for (const slug of Object.keys(change[channel]?.categories ?? {})) {
      if (known.categories.has(slug)) continue
      // To find the nearest costs something, so only the first problem names it.
      const text = noSuchCategory(slug, problems.any ? [] : known.categories)
      problems.add(`${channel}.categories.${slug}`, UNKNOWN_CATEGORY, text)
    }
  }
  for (const key of Object.keys(change.topics ?? {})) {
    if (known.topics.has(key)) continue
    const text = `The project has no topic ${JSON.stringify(shortened(key))}.`
    problems.add(`topics.${key}`, "unknown_topic", text)
  }
}

/**
 * The choices after a change: what it does not name stays. Without `before` it replaces everything. Throws
 * 422 where there would be too many entries.
 */
export function mergedPreferences(
  before: ChosenPreferences | null,
  change: PreferencesChange,
): ChosenPreferences {
  const { workflows, quiet_hours } = change
  const topics =
    change.topics && entriesOf(change.topics, (topic) => pick(topic, AUDIENCE_CHANNELS))
  const channels = byChannel((channel) => pick(change[channel], ["enabled", "categories"]))
  const { quiet_hours: hours, ...chosen } = before ?? {}
  const after: ChosenPreferences = merged(chosen, { ...channels, topics, workflows }) ?? {}
  for (const name of ["topics", "workflows"] as const) {
    if (Object.keys(after[name] ?? {}).length <= MOST_ENTRIES) continue
    throw invalid(name, "too_many", `There must be at most ${MOST_ENTRIES} entries.`)
  }
  const quiet = quiet_hours ? changedQuietHours(hours, quiet_hours) : hours
  return { ...after, ...(quiet && quiet_hours !== null && { quiet_hours: quiet }) }
}

/** The named fields: a body may have others, which are ignored. */
const pick = (given: Choices | null | undefined, names: readonly string[]) =>
  given && entriesOf(given, (value, name) => (names.includes(name) ? value : undefined))

const entriesOf = <Value>(
  given: Record<string, Value>,
  of: (value: Value, name: string) => unknown,
) =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, of(value, name)]),
  ) as Choices

/** Of a body null forgets, and an absent choice stays. */
interface Choices {
  [name: string]: Choices | boolean | null | undefined
}

/** By name, to any depth. Undefined where nothing is chosen. */
function merged(before: Choices, change: Choices): Choices | undefined {
  const own = new Map(Object.entries(before))
  for (const [name, value] of Object.entries(change)) {
    const known = own.get(name)
    if (value === undefined) continue
    if (value === null || typeof value === "boolean") own.set(name, value)
    else own.set(name, merged(known && typeof known === "object" ? known : {}, value))
  }
  const chosen = [...own].filter(([, value]) => value != null)
  return chosen.length > 0 ? Object.fromEntries(chosen) : undefined
}

const timeOfDay = (example: string, description: string) =>
  settingField<string>({
    answer: text(example, description),
    patch: t.String({ pattern: "^\\d\\d:\\d\\d$", description: `As in ${example}.` }),
    keep: (given: string) => (isTimeOfDay(given) ? given : undefined),
    hint: "The value must be a time of day from 00:00 to 23:59.",
  })

type QuietChannels = QuietHours["channels"]

const zone = t.String({ maxLength: MOST_ZONE_CHARACTERS, description: "As in Europe/Vienna." })

/** Hours in which nothing is sent: of a project, and of one subscriber. */
export const quietHours = settingGroup<QuietHours>(
  {
    enabled: settingField({
      answer: flag(true),
      patch: t.Boolean(),
      hint: "The value must be true or false.",
    }),
    start: timeOfDay(
      QUIET_DEFAULTS.start,
      "The first quiet minute, by the clock of the time zone.",
    ),
    end: timeOfDay(QUIET_DEFAULTS.end, "The first minute after them. It may be on the next day."),
    timezone: settingField<string | null>({
      answer: maybe(
        text("Europe/Vienna", "Null: the zone of the subscriber, else that of the project."),
      ),
      patch: t.Union([zone, t.Null()]),
      keep: zoneOf,
      hint: "The value must be a time zone, such as Europe/Vienna, or null.",
    }),
    channels: settingField<QuietChannels>({
      answer: t.Array(word(OUTGOING_CHANNELS), { examples: [["push", "sms"]] }),
      patch: t.Array(word(OUTGOING_CHANNELS), { maxItems: OUTGOING_CHANNELS.length }),
      keep: (given: QuietChannels) => (new Set(given).size === given.length ? given : undefined),
      hint: `The value must be a list of ${OUTGOING_CHANNELS.join(", ")}, each at most once.`,
    }),
  },
  {
    or_null: true,
    title: "QuietHours",
    description: "Messages wait until these hours of the day are over. They are never dropped.",
  },
)

const choices = (example: Record<string, boolean>, description: string) =>
  t.Record(t.String(), t.Boolean(), { examples: [example], description })

const ChannelChoices = t.Object({
  enabled: flag(true, "Whether the channel is used at all. True where nothing was chosen."),
  categories: choices({ newsletter: false }, "By slug, only what was chosen."),
})

export const Preferences = t.Object(
  {
    ...byChannel(() => ChannelChoices),
    topics: t.Record(t.String(), t.Partial(t.Object(byChannel(() => t.Boolean()))), {
      examples: [{ releases: { email: true } }],
      description: "By topic key and channel, only what was chosen.",
    }),
    workflows: choices({ welcome: true }, "By workflow key, only what was chosen."),
    quiet_hours: quietHours.answer,
  },
  { title: "Preferences" },
)

const choice = t.Union([t.Boolean(), t.Null()])

const group = <Schema extends TSchema>(schema: Schema) => t.Optional(t.Union([schema, t.Null()]))

const FORGET = "Null forgets the choice."

export const PreferencesBody = t.Object({
  ...byChannel(() =>
    group(
      t.Object({
        enabled: t.Optional(t.Union([t.Boolean(), t.Null()], { description: FORGET })),
        categories: group(t.Record(t.String(), choice, { description: `By slug. ${FORGET}` })),
      }),
    ),
  ),
  topics: group(
    t.Record(t.String(), t.Union([t.Object(byChannel(() => t.Optional(choice))), t.Null()]), {
      description: `By topic key. ${FORGET}`,
    }),
  ),
  workflows: group(t.Record(t.String(), choice, { description: `By workflow key. ${FORGET}` })),
  quiet_hours: t.Optional(quietHours.patch),
})

export const EXAMPLE = {
  email: { categories: { newsletter: false } },
  quiet_hours: { start: "21:00", end: "07:00" },
}

const REACHABILITY_REASONS = ["no_address", ...DECISION_REASONS] as const

const Reach = t.Object({
  allowed: flag(true),
  reason: maybe(word(REACHABILITY_REASONS, "Why not, or why later. Null: nothing is against it.")),
  next_allowed_at: maybe(time("When Belfry may send a message that waits, or the next one.")),
})

export const Reachability = t.Object(
  byChannel(() => Reach),
  { title: "Reachability" },
)

export const reachabilityQuery = t.Object({
  category: t.Optional(
    t.String({
      pattern: CATEGORY_SLUG,
      description: "Ask for messages of this category. Default: without one.",
    }),
  ),
})
