import { Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { optionalText, orNull } from "../http/field-schemas"
import { readPhone } from "../lib/phone"
import { CATEGORY_SLUG, isLonger } from "../lib/text"
import { scheduledAt } from "../messages/schemas"
import {
  carriedFields,
  isLine,
  REQUIRED,
  readFlag,
  readMetadata,
  readObject,
  readTags,
  readTemplateFields,
  type TemplateFields,
  templateFields,
} from "../messages/send-body"
import {
  type AudienceFields,
  readCategory,
  readScheduledAt,
  readSubscriberId,
} from "../messages/send-fields"
import { SOURCE_BYTES } from "../templates/limits"

/** A send request, read and checked as far as its own fields go. */
export interface SendText extends TemplateFields, AudienceFields {
  /** In E.164. */
  to: string
  from: string | null
  /** Empty where a template takes its place. */
  body: string
  tags: string[]
  metadata: Record<string, unknown>
  scheduled_at: string | null
  smart_encoding: boolean
  max_segments: number
}

/** Of a text, in characters. */
export const LONGEST_BODY = 1600
export const MOST_SEGMENTS = 10
const LONGEST_SENDER = 20

export const SmsInput = t.Object({
  to: t.String({ description: "A phone number of E.164: `+4915112345678`." }),
  body: optionalText({
    maxLength: SOURCE_BYTES,
    description: `Required without a template. A text has 1 to ${LONGEST_BODY} characters of it. With \`variables\` it is Handlebars, whose source may be longer.`,
  }),
  ...templateFields("`body`"),
  from: optionalText({
    maxLength: LONGEST_SENDER,
    description: "The sender. Without it, the configured provider chooses it.",
  }),
  category: optionalText({
    pattern: CATEGORY_SLUG,
    description:
      "The kind of text that this is, such as `reminders`. Its recipient may have chosen to get none of them.",
  }),
  subscriber_id: optionalText({
    maxLength: 255,
    description:
      "The id or external id of the subscriber that `to` belongs to. Belfry then obeys its preferences, its quiet hours and the frequency cap, and templates know `subscriber`.",
  }),
  ...carriedFields,
  scheduled_at: t.Optional(orNull(scheduledAt())),
  scheduled_for: t.Optional(orNull(t.String({ description: "The same as `scheduled_at`." }))),
  smart_encoding: t.Optional(
    t.Boolean({
      description:
        "Sends typographic quotes, dashes and the like as plain characters, where that makes the text GSM-7.",
    }),
  ),
  max_segments: t.Optional(
    t.Integer({
      minimum: 1,
      maximum: MOST_SEGMENTS,
      default: MOST_SEGMENTS,
      description: "A text of more segments is refused.",
    }),
  ),
})

/** Reads the body of `POST /v1/sms`. The result counts only while there are no problems. */
export function readSendText(body: unknown, problems: Problems): SendText {
  const given = readObject(body, "body", problems, "The body must be a JSON object.")
  const texts = readTemplateFields(given, problems)
  const at = given.scheduled_at ?? given.scheduled_for
  const place = given.scheduled_at == null ? "scheduled_for" : "scheduled_at"
  return {
    to: readNumber(given.to, problems),
    from: readSender(given.from, problems),
    body: texts.template === null ? readBody(given.body, texts, problems) : "",
    ...texts,
    tags: readTags(given.tags, problems),
    metadata: readMetadata(given.metadata, problems),
    category: readCategory(given.category, "category", problems),
    subscriber_id: readSubscriberId(given.subscriber_id, "subscriber_id", problems),
    scheduled_at: readScheduledAt(at, place, problems),
    smart_encoding: readFlag(given.smart_encoding, "smart_encoding", problems) ?? false,
    max_segments: readMost(given.max_segments, problems),
  }
}

function readNumber(value: unknown, problems: Problems): string {
  if (value == null) return problems.add("to", "required", REQUIRED) ?? ""
  return readPhone(typeof value === "string" ? value : "", "to", problems) ?? ""
}

function readSender(value: unknown, problems: Problems): string | null {
  if (value == null) return null
  if (typeof value === "string" && value.trim() !== "" && isLine(value, LONGEST_SENDER))
    return value
  const hint = `The value must be a number, a short code or a name of 1 to ${LONGEST_SENDER} characters.`
  return problems.add("from", "invalid", hint) ?? null
}

/** Handlebars may be longer than what comes of it. */
function readBody(value: unknown, { variables }: TemplateFields, problems: Problems): string {
  if (value == null) return problems.add("body", "required", REQUIRED) ?? ""
  const most = variables === null ? LONGEST_BODY : SOURCE_BYTES
  if (typeof value !== "string" || value.includes("\0")) {
    return problems.add("body", "invalid", "The value must be a text without NUL characters.") ?? ""
  }
  if (value.trim() !== "" && !isLonger(value, most)) return value.toWellFormed()
  const hint = `The value must have 1 to ${most} characters.`
  return problems.add("body", "invalid", hint) ?? ""
}

function readMost(value: unknown, problems: Problems): number {
  if (value == null) return MOST_SEGMENTS
  if (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MOST_SEGMENTS) {
    return Number(value)
  }
  const hint = `The value must be a whole number from 1 to ${MOST_SEGMENTS}.`
  return problems.add("max_segments", "invalid", hint) ?? MOST_SEGMENTS
}
