import { type Static, type TSchema, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { isPast } from "../core/time"
import { nameText, ONE_LINE, oneOf, orNull, ruledText } from "../http/field-schemas"
import { isExactlyCarried } from "../http/json"
import { readTime } from "../http/page"
import { CATEGORY_SLUG, isLonger } from "../lib/text"
import {
  carriedFields,
  REQUIRED,
  readMetadata,
  readTags,
  readTemplateFields,
  type TemplateFields,
  templateFields,
} from "../messages/send-body"
import { type InboxContent, PRIORITY_WORDS } from "./tables"

const LONGEST_NAME = 255
export const LONGEST_TITLE = 200
export const LONGEST_TEXT = 5000
export const LONGEST_LABEL = 100
const LONGEST_URL = 2048
const MOST_RECIPIENTS = 500
const MOST_ACTIONS = 3
const MOST_DATA_BYTES = 16_384

/** It is a segment of the path of its route. */
const ACTION_KEY = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

export const BAD_LINK = `The value must be an http or https URL, or a path that begins with one slash, of at most ${LONGEST_URL} characters.`

/** Browsers drop some control characters, and read `/\host` as another host. */
export function isLink(text: string): boolean {
  if (isLonger(text, LONGEST_URL) || /[\p{Cc}\s\u2028\u2029]/u.test(text)) return false
  return /^\/(?![/\\])/.test(text) || (/^https?:\/\//i.test(text) && URL.canParse(text))
}

const badLink = (text: string) => (isLink(text) ? undefined : (["invalid_url", BAD_LINK] as const))

const link = (description: string) => ruledText({ description }, badLink)

const optional = <Schema extends TSchema>(schema: Schema) => t.Optional(orNull(schema))

const line = (maxLength: number, description: string) =>
  t.String({ minLength: 1, maxLength, pattern: ONE_LINE, description })

/** The texts that a template may say in the place of a request, and that may be Handlebars. */
const texts = {
  title: t.Optional(line(LONGEST_TITLE, "Required without a template.")),
  body: optional(t.String({ maxLength: LONGEST_TEXT, pattern: "^[^\\u0000]*$" })),
  // Of Handlebars, what comes of it is checked.
  action_url: optional(
    t.String({ maxLength: LONGEST_URL, description: "Where the message leads to." }),
  ),
  action_label: optional(line(LONGEST_LABEL, "The text of the button that leads there.")),
}

const expires_at = optional(
  t.String({ description: "After this time the message is removed. ISO 8601 with an offset." }),
)

const Action = t.Object({
  key: t.String({ pattern: ACTION_KEY, description: "Its name, unique in the message." }),
  label: line(LONGEST_LABEL, "The text of the button."),
  url: optional(link("Where the button leads to.")),
  style: optional(line(50, "How it looks: the component knows `primary` and `danger`.")),
})

/** What is the same for all recipients, whatever the texts say. */
const rest = {
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

const category = optional(
  t.String({ pattern: CATEGORY_SLUG, description: "The category, which people can end." }),
)

const kept = {
  collapse_key: optional(
    line(LONGEST_NAME, "An unread message with the same key is replaced, and keeps its id."),
  ),
  expires_at,
}

export const InboxInput = t.Object({
  subscriber_id: t.Optional(nameText(LONGEST_NAME)),
  external_id: t.Optional(nameText(LONGEST_NAME)),
  subscriber_ids: t.Optional(
    t.Array(nameText(LONGEST_NAME), {
      minItems: 1,
      maxItems: MOST_RECIPIENTS,
      description: `Up to ${MOST_RECIPIENTS} ids or external ids.`,
    }),
  ),
  ...texts,
  ...rest,
  category,
  ...kept,
  ...carriedFields,
  ...templateFields("`title`, `body`, `action_url` and `action_label`"),
})

/** The texts of a message, rendered or to be rendered. */
export type NoteTexts = Pick<InboxContent, "title" | "body" | "action_url" | "action_label">

export const TEXT_PARTS = ["title", "body", "action_url", "action_label"] as const

/** What a message says beside its texts. */
export type NoteRest = Omit<InboxContent, keyof NoteTexts>

/** What becomes of a message, beside what it says. */
export interface NoteKept {
  collapse_key: string | null
  expires_at: string | null
}

export interface SendNote extends TemplateFields, NoteKept {
  /** One external id, or ids of which each may be an external one. */
  to: { external_id: string } | { names: string[] }
  texts: NoteTexts
  rest: NoteRest
  category: string | null
  tags: string[]
  metadata: Record<string, unknown>
}

/** Reads the body of `POST /v1/inbox`. The result counts only while there are no problems. */
export function readSendNote(given: Static<typeof InboxInput>, problems: Problems): SendNote {
  const wanted = readTemplateFields(given, problems)
  if (wanted.template === null && given.title === undefined)
    problems.add("title", "required", REQUIRED)
  const said = textsOf(given)
  if (wanted.template === null && wanted.variables === null) checkLink(said.action_url, problems)
  return {
    ...wanted,
    to: readTarget(given, problems),
    texts: said,
    rest: readRest(given, problems),
    ...readKept(given, problems),
    category: given.category ?? null,
    tags: readTags(given.tags, problems),
    metadata: readMetadata(given.metadata, problems),
  }
}

function readTarget(
  { subscriber_id, external_id, subscriber_ids }: Static<typeof InboxInput>,
  problems: Problems,
): SendNote["to"] {
  const given = [subscriber_id, external_id, subscriber_ids].filter((one) => one !== undefined)
  if (given.length === 0) problems.add("subscriber_id", "required", ONE_TARGET)
  if (given.length > 1) problems.add("subscriber_id", "invalid", ONE_TARGET)
  if (external_id !== undefined) return { external_id }
  return { names: subscriber_ids ?? [subscriber_id ?? ""] }
}

const ONE_TARGET = "Give one of subscriber_id, external_id and subscriber_ids."

interface GivenTexts {
  title?: string
  body?: string | null
  action_url?: string | null
  action_label?: string | null
}

const textsOf = ({ title = "", body, action_url, action_label }: GivenTexts): NoteTexts => ({
  ...{ title, body: body ?? null, action_url: action_url ?? null },
  action_label: action_label ?? null,
})

function checkLink(text: string | null | undefined, problems: Problems, path = "action_url") {
  if (text != null && !isLink(text)) problems.add(path, "invalid_url", BAD_LINK)
}

type GivenRest = Static<ReturnType<typeof restObject>>

const restObject = () => t.Object(rest)

function readRest(given: GivenRest, problems: Problems, prefix = ""): NoteRest {
  const { actions = [], icon = null, image_url = null, priority = "normal", data = {} } = given
  checkActions(actions, problems, prefix)
  checkData(data, problems, prefix)
  return { actions: actions.map(storedAction), icon, image_url, priority, data }
}

const storedAction = ({ key, label, url = null, style = null }: Static<typeof Action>) => ({
  ...{ key, label, url, style },
})

function checkActions(actions: Static<typeof Action>[], problems: Problems, prefix: string) {
  for (const [at, { key }] of actions.entries()) {
    if (actions.findIndex((other) => other.key === key) === at) continue
    problems.add(`${prefix}actions.${at}.key`, "duplicate", "Two actions have this key.")
  }
}

function checkData(data: Record<string, unknown>, problems: Problems, prefix: string) {
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

interface GivenKept {
  collapse_key?: string | null
  expires_at?: string | null
}

function readKept(
  { collapse_key = null, expires_at = null }: GivenKept,
  problems: Problems,
  prefix = "",
): NoteKept {
  return { collapse_key, expires_at: readEnd(expires_at, problems, prefix) }
}

function readEnd(value: string | null, problems: Problems, prefix = ""): string | null {
  if (value === null) return null
  const path = `${prefix}expires_at`
  const at = readTime(path, value, problems) ?? null
  if (at !== null && isPast(at)) problems.add(path, "invalid", PASSED)
  return at
}

const PASSED = "The time has passed. Give a later one."
