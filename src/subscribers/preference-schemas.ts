import { type TSchema, Type as t } from "@sinclair/typebox"
import { byChannel } from "../lib/preferences"
import { flag, maybe, time, word } from "../lib/record-fields"
import { CATEGORY_SLUG } from "../lib/text"
import { quietHoursAnswer, quietHoursPatch } from "../tenancy/setting-groups"
import { DECISION_REASONS } from "./decision"

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
    quiet_hours: quietHoursAnswer,
  },
  { title: "Preferences" },
)

const choice = t.Union([t.Boolean(), t.Null()])

const group = <Schema extends TSchema>(schema: Schema) => t.Optional(t.Union([schema, t.Null()]))

const FORGET = "Null forgets the choice."

/** What a request gives. */
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
  quiet_hours: t.Optional(quietHoursPatch),
})

export const EXAMPLE = {
  email: { categories: { newsletter: false } },
  quiet_hours: { start: "21:00", end: "07:00" },
}

export const REACHABILITY_REASONS = ["no_address", ...DECISION_REASONS] as const

const Reach = t.Object({
  allowed: flag(true),
  reason: maybe(word(REACHABILITY_REASONS, "Why not, or why later. Null: nothing is against it.")),
  next_allowed_at: maybe(time("When a message that waits, or the next one, may leave.")),
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
