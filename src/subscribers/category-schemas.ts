import { type Static, Type as t } from "@sinclair/typebox"
import { nameText, oneOf, orNull } from "../http/field-schemas"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { flag, id, maybe, text, time, word } from "../lib/record-fields"
import { CATEGORY_SLUG } from "../lib/text"

const NAME_CHARACTERS = 100
const DESCRIPTION_CHARACTERS = 500

const CRITICAL = "Whether subscribers cannot end it, and quiet hours do not delay it."
const DEFAULT = "What holds for subscribers without a choice: `on` or `off`."
const VISIBILITY = "Whether the preference page shows it: `public` or `private`."
const CHANNELS = "The channels that it may use at all."

export const Category = t.Object(
  {
    id: id(),
    slug: text("newsletter", "It never changes."),
    name: text("Newsletter"),
    description: maybe(text("News of the month.")),
    critical: flag(false, CRITICAL),
    default: word(["on", "off"], DEFAULT),
    visibility: word(["public", "private"], VISIBILITY),
    channels: t.Array(word(AUDIENCE_CHANNELS), {
      examples: [[...AUDIENCE_CHANNELS]],
      description: CHANNELS,
    }),
    created_at: time(),
    updated_at: time(),
  },
  { title: "Category" },
)

const fields = {
  description: t.Optional(orNull(nameText(DESCRIPTION_CHARACTERS))),
  critical: t.Optional(t.Boolean({ description: CRITICAL })),
  default: t.Optional(oneOf("on", "off")),
  visibility: t.Optional(oneOf("public", "private")),
  channels: t.Optional(
    t.Array(oneOf(...AUDIENCE_CHANNELS), {
      minItems: 1,
      maxItems: AUDIENCE_CHANNELS.length,
      description: `${CHANNELS} Default: all four.`,
    }),
  ),
}

export const NewCategoryBody = t.Object({
  name: nameText(NAME_CHARACTERS),
  slug: t.Optional(
    t.String({
      pattern: CATEGORY_SLUG,
      description:
        "1 to 64 lower-case letters, digits, hyphens and underscores. Default: made from the name.",
    }),
  ),
  ...fields,
})

export const CategoryPatch = t.Object({ name: t.Optional(nameText(NAME_CHARACTERS)), ...fields })

export type NewCategory = Static<typeof NewCategoryBody>

export type CategoryChanges = Static<typeof CategoryPatch>
