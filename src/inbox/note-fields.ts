import { type Static, type TSchema, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { isPast } from "../core/time"
import { ONE_LINE, oneOf, orNull, ruledText } from "../http/field-schemas"
import { isExactlyCarried } from "../http/json"
import { readTime } from "../http/page"
import { CATEGORY_SLUG, isLonger } from "../lib/text"
import { type InboxContent, PRIORITY_WORDS } from "./tables"

/* The fields of an inbox message, as requests and publishes give them. */

export const LONGEST_TITLE = 200
export const LONGEST_TEXT = 5000
export const LONGEST_LABEL = 100
const LONGEST_URL = 2048
const LONGEST_KEY = 255
const LONGEST_STYLE = 50
const MOST_ACTIONS = 3
const MOST_DATA_BYTES = 16_384

export const BAD_LINK = `The value must be an http or https URL, or a path that begins with one slash, of at most ${LONGEST_URL} characters.`

/** Browsers drop some control characters, and read `/\host` as another host. */
export function isLink(text: string): boolean {
  if (isLonger(text, LONGEST_URL) || /[\p{Cc}\s]/u.test(text)) return false
  return /^\/(?![/\\])/.test(text) || (/^https?:\/\//i.test(text) && URL.canParse(text))
}

const badLink = (text: string) => (isLink(text) ? undefined : (["invalid_url", BAD_LINK] as const))

export const link = (description: string) => ruledText({ description }, badLink)

export const optional = <Schema extends TSchema>(schema: Schema) => t.Optional(orNull(schema))

export const line = (maxLength: number, description: string) =>
  t.String({ minLength: 1, maxLength, pattern: ONE_LINE, description })

export const NO_NUL = "^[^\\u0000]*$"

/** The texts that a template may say, and that may be Handlebars: of those, what comes of them is checked. */
export const textFields = {
  title: t.Optional(line(LONGEST_TITLE, "Required without a template.")),
  body: optional(t.String({ maxLength: LONGEST_TEXT, pattern: NO_NUL })),
  action_url: optional(t.String({ description: "Where the message leads to." })),
  action_label: optional(line(LONGEST_LABEL, "The text of the button that leads there.")),
}

export const TEXT_PARTS = ["title", "body", "action_url", "action_label"] as const

/** The texts of a message, rendered or to be rendered. */
export type NoteTexts = Pick<InboxContent, (typeof TEXT_PARTS)[number]>

const Action = t.Object({
  key: t.String({
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", // a segment of the path of its route
    description: "Its name, unique in the message.",
  }),
  label: line(LONGEST_LABEL, "The text of the button."),
  url: optional(link("Where the button leads to.")),
  style: optional(line(LONGEST_STYLE, "The component knows `primary` and `danger`.")),
})

/** What is the same for all recipients, whatever the texts say. */
export const otherFields = {
  actions: t.Optional(
    t.Array(Action, { maxItems: MOST_ACTIONS, description: "Buttons whose use is an event." }),
  ),
  icon: optional(link("The URL of an icon.")),
  image_url: optional(link("The URL of an image.")),
  priority: t.Optional(oneOf(...PRIORITY_WORDS)),
  data: t.Optional(
    t.Record(t.String(), t.Unknown(), {
      description: "Data for your app, at most 16 KiB as JSON. The subscriber gets it.",
    }),
  ),
}

const others = t.Object(otherFields)

type OtherContent = Omit<InboxContent, keyof NoteTexts>

export const categoryField = optional(
  t.String({ pattern: CATEGORY_SLUG, description: "The category, which people can end." }),
)

export const expiresField = optional(
  t.String({
    description: "Belfry removes the message at this time. ISO 8601 with an offset.",
  }),
)

export const collapseField = optional(
  line(LONGEST_KEY, "An unread message with the same key gets this content, and keeps its id."),
)

interface GivenTexts {
  title?: string
  body?: string | null
  action_url?: string | null
  action_label?: string | null
}

export const textsOf = ({ title = "", body, action_url, action_label }: GivenTexts): NoteTexts => ({
  ...{ title, body: body ?? null, action_url: action_url ?? null },
  action_label: action_label ?? null,
})

export function checkLink(text: string | null | undefined, problems: Problems, prefix = "") {
  if (text != null && !isLink(text)) problems.add(`${prefix}action_url`, "invalid_url", BAD_LINK)
}

/** `prefix` ends with a dot. */
export function checkOthers(
  { actions = [], data = {} }: Static<typeof others>,
  problems: Problems,
  prefix = "",
): void {
  for (const [at, { key }] of actions.entries()) {
    if (actions.findIndex((other) => other.key === key) === at) continue
    problems.add(`${prefix}actions.${at}.key`, "duplicate", "Two actions have this key.")
  }
  if (Buffer.byteLength(JSON.stringify(data)) > MOST_DATA_BYTES) {
    const hint = `The data must have at most ${MOST_DATA_BYTES} bytes as JSON.`
    problems.add(`${prefix}data`, "too_large", hint)
  }
  for (const [key, value] of Object.entries(data)) {
    if (isExactlyCarried(value)) continue
    const hint = "JSON cannot carry this number exactly. Send it as a string."
    problems.add(`${prefix}data.${key}`, "invalid", hint)
  }
}

export const othersOf = (given: Static<typeof others>): OtherContent => {
  const { actions = [], icon = null, image_url = null, priority = "normal", data = {} } = given
  return { actions: storedActions(actions), icon, image_url, priority, data }
}

export const storedActions = (actions: Static<typeof Action>[]): InboxContent["actions"] =>
  actions.map(({ key, label, url = null, style = null }) => ({ key, label, url, style }))

export const END_PASSED = "The time has passed. Give a later one."

/** A time to come. */
export function readEnd(value: string | null | undefined, problems: Problems): string | null {
  if (value == null) return null
  const at = readTime("expires_at", value, problems) ?? null
  if (at !== null && isPast(at)) problems.add("expires_at", "invalid", END_PASSED)
  return at
}
